package command

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// assert answers whether this holder leads: nothing is printed but, on stderr, why not. The read is
// linearizable, so yes is what etcd vouches for at a moment between question and answer; what it is good for
// after that is the caller's to judge (see docs/elect.md).
func (c *call) assert(ctx context.Context, f *electFlags, name string) (int, error) {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var why string
	err = f.Reach(ctx, client, func(ctx context.Context) error {
		queue, open, err := readOffice(ctx, client, name)
		why = f.against(hostname(), name, queue, open)
		return err
	})
	if err != nil {
		return 0, lacking(client, f.Settings, lookNeeds(name), err)
	}
	if why != "" && !f.Quiet {
		cli.Say(c.env, f.LogFormat, slog.LevelInfo, name+": "+why)
	}
	return answer(why == ""), nil
}

// against is what speaks against the claim that the holder on host leads; empty: nothing.
func (q *question) against(host, name string, queue []coord.Candidate, open *openHold) string {
	if len(queue) == 0 {
		return "nobody leads"
	}
	first := queue[0]
	h, ours := hold.DecodeHolder([]byte(first.Identity))
	var unsettled *openHold
	if open != nil && !open.of(name, first) {
		unsettled = open
	}
	who := standingText(first, unsettled)
	switch {
	case !ours || h.Host != host || q.pid != 0 && h.PID != q.pid, unsettled != nil, h.Fenced:
		return who
	case first.Token < q.minRev:
		return fmt.Sprintf("%s, which is below %d", who, q.minRev)
	}
	return ""
}

// hostname is how this host is named in what is written to etcd.
func hostname() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "unknown"
	}
	return host
}
