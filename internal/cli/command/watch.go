package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/view"
	"github.com/go-coord/coord/internal/view/live"
)

// watch prints each change of who holds a name until a signal comes, or nobody reads any more.
func (c *call) watch(ctx context.Context, conn *cli.Connection, output *cli.Output, n view.Name) (int, error) {
	client, err := c.connect(ctx, conn)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	return c.stream(ctx, func(ctx context.Context) error {
		// Whatever is to be read is read once, so that what is not permitted is found out now.
		err := conn.Reach(ctx, client, func(ctx context.Context) error {
			_, err := live.Look(ctx, client, n)
			return err
		})
		if err != nil {
			return lacking(client, conn.Settings, lookNeeds(n), err)
		}
		p := &changePrinter{to: c.env.Stdout, json: output.JSON()}
		o := warnings(cli.NewLogger(c.env.Stderr, conn.Quiet, conn.LogFormat), "name", n.Name)
		err = live.Follow(ctx, client, n, o, func(changes []view.Seat, is view.Standing) error { return p.print(is.Name, changes) })
		return lacking(client, conn.Settings, lookNeeds(n), cli.Classify(err))
	})
}

// warnings say when what was printed may be out of date, and when that is over.
func warnings(log *slog.Logger, about ...any) live.FollowOptions {
	return live.FollowOptions{
		Stale: func(why error) { log.Warn(staleText, append(about, "reason", staleReason(why))...) },
		Fresh: func() { log.Warn("etcd answers again", about...) },
	}
}

const staleText = "etcd does not answer: what was printed last may be out of date"

func staleReason(why error) string {
	if why == nil {
		return "no answer"
	}
	return cli.OneLine(why)
}

// changePrinter prints one line a change, each with one write.
type changePrinter struct {
	to    io.Writer
	json  bool
	kinds bool // lines for people say what kind of a name it is
}

func (p *changePrinter) print(n view.Name, changes []view.Seat) error {
	at := time.Now().UTC().Format(time.RFC3339)
	for _, seat := range changes {
		var line []byte
		if p.json {
			l := n.Line(seat)
			l.At = at
			line = cli.JSONLine(l)
		} else {
			name := n.Name
			if p.kinds {
				name = n.Kind + " " + name
			}
			line = fmt.Appendf(nil, "%s  %s  %s%s\n", at, name, slotText(seat.Max, seat.Slot), standingText(seat))
		}
		if err := printLine(p.to, line); err != nil {
			return err
		}
	}
	return nil
}
