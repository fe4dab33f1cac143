package command

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/view"
	"github.com/go-coord/coord/internal/view/live"
)

// assert answers whether this holder leads: nothing is printed but, on stderr, why not. The read is
// linearizable, so yes is what etcd vouches for at a moment between question and answer; what it is good for
// after that is the caller's to judge (see docs/elect.md).
func (c *call) assert(ctx context.Context, conn *cli.Connection, q *question, n view.Name) (int, error) {
	client, err := c.connect(ctx, conn)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var s view.Standing
	err = conn.Reach(ctx, client, func(ctx context.Context) error {
		s, err = live.LookHolders(ctx, client, n)
		return err
	})
	if err != nil {
		return 0, lacking(client, conn.Settings, lookNeeds(n), err)
	}
	why := q.against(hostname(), s)
	if why != "" && !conn.Quiet {
		cli.Say(c.env, conn.LogFormat, slog.LevelInfo, n.Name+": "+why)
	}
	return answer(why == ""), nil
}

// against is what speaks against the claim that the holder on host leads; empty: nothing.
func (q *question) against(host string, s view.Standing) string {
	if s.Vacant() {
		return "nobody leads"
	}
	first := s.Seats[0]
	who := standingText(first)
	switch {
	case first.State != view.Held, first.Holder.Host != host, q.pid != 0 && first.Holder.PID != q.pid:
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
