package command

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// drainFlags are the flags of "conch cron drain" and "conch cron undrain".
type drainFlags struct {
	cli.Connection
	wait   bool
	why    string
	output cli.Output
}

const cronDrainLong = `Has the node on HOST claim nothing any more, until it is undrained, through restarts of its daemon too. When it has said so, that is
so: a claim that does not know of it fails. What runs there goes on; --wait waits for its end. A host that is not registered can be drained,
before its daemon is started.

Exit codes: 0 drained, and with --wait: nothing runs there; 64 usage; 69 etcd unreachable; 77 permission denied; 128+n signal n came while
waiting. The drain stays where nobody waits any more.`

// cronDrain is "conch cron drain".
func (c *call) cronDrain() *cobra.Command {
	f := &drainFlags{}
	cmd := &cobra.Command{
		Use:     "drain HOST [flags]",
		Short:   "Have a node start nothing any more.",
		Long:    cronDrainLong,
		Example: `  conch cron drain node3 --why "new kernel" --wait && ssh node3 reboot`,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := f.check(cmd, c.env, args)
			if err != nil {
				return err
			}
			return c.drain(cmd.Context(), f, host)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until nothing runs there")
	cmd.Flags().StringVar(&f.why, "why", "", "a reason, for who wonders")
	f.output.AddFlags(cmd.Flags(), "how to print")
	f.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = c.completeIn(&f.Connection, record.Nodes, 1)
	completeWords(cmd)
	return cmd
}

// cronUndrain is "conch cron undrain".
func (c *call) cronUndrain() *cobra.Command {
	f := &drainFlags{}
	cmd := &cobra.Command{
		Use:     "undrain HOST [flags]",
		Short:   "Let a node start jobs again.",
		Long:    "Exit codes: 0 it is not drained any more, or was not; 64 usage; 69 etcd unreachable; 77 permission denied.",
		Example: `  conch cron undrain node3`,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := f.check(cmd, c.env, args)
			if err != nil {
				return err
			}
			return c.undrain(cmd.Context(), f, host)
		},
	}
	cmd.Flags().SortFlags = false
	f.output.AddFlags(cmd.Flags(), "how to print")
	f.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = c.completeIn(&f.Connection, record.Drains, 1)
	completeWords(cmd)
	return cmd
}

func (f *drainFlags) check(cmd *cobra.Command, env cli.Env, args []string) (string, error) {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return "", err
	}
	switch {
	case len(args) == 0:
		return "", cli.Usagef("no host given: %s", usageLine(cmd))
	case len(args) > 1:
		return "", cli.Usagef("one host is accepted, got %s too", cli.Quote(args[1]))
	}
	return args[0], cmp.Or(hold.ValidName(args[0]), checkWhy(f.why))
}

// drainLine is the answer.
type drainLine struct {
	Host    string       `json:"host"`
	Drained bool         `json:"drained"`
	Was     *record.Stop `json:"was"`     // the drain that there was; null: none
	Rev     int64        `json:"rev"`     // nothing is claimed there after it; undrain: 0
	Running int          `json:"running"` // how many starts there have not ended
	Up      bool         `json:"up"`      // a daemon is registered there
}

func (f *drainFlags) needs(host string) []cli.Need {
	return append(reads(store.LookAreas("")...), writes(record.Drains+host)...)
}

func (c *call) drain(ctx context.Context, f *drainFlags, host string) error {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return err
	}
	defer client.Close()
	stop := record.Stop{By: caller(), Why: f.why, At: time.Now().UnixMilli()}
	line := drainLine{Host: host, Drained: true}
	err = reached(ctx, &f.Connection, client, f.needs(host), func(ctx context.Context, client *clientv3.Client) (err error) {
		line.Rev, err = store.Change(ctx, client, record.Drains+host, func(value []byte) (string, bool, error) {
			is, _ := record.Decode[record.Stop](value)
			if value != nil && is != stop {
				line.Was = &is
			}
			return record.Encode(stop), value != nil && is == stop, nil
		})
		if err != nil {
			return err
		}
		return line.look(ctx, client)
	})
	switch {
	case err != nil:
		return err
	case !f.wait:
		return c.printDrain(f, &line)
	}
	log := cli.NewLogger(c.env.Stderr, f.Quiet, f.LogFormat)
	log.Info("drained", "host", host, "rev", line.Rev, "running", line.Running)
	c.code, err = c.stream(ctx, func(ctx context.Context) error {
		opens, stop := followBelow(ctx, client, record.Opens, log)
		defer stop()
		for line.Running > 0 {
			select {
			case <-opens.news:
				if err := line.look(ctx, client); err != nil {
					return lacking(client, f.Settings, f.needs(host), cli.Classify(err))
				}
			case err := <-opens.ended:
				return cmp.Or(context.Cause(ctx), cli.Classify(err))
			}
		}
		return c.printDrain(f, &line)
	})
	return err
}

// look counts what runs there.
func (l *drainLine) look(ctx context.Context, client *clientv3.Client) error {
	is, err := store.Look(ctx, client, "")
	if err != nil {
		return err
	}
	l.Running, l.Up = is.Running(l.Host), is.Peer(l.Host) != nil
	return nil
}

func (c *call) undrain(ctx context.Context, f *drainFlags, host string) error {
	line := drainLine{Host: host}
	err := c.withEtcd(ctx, &f.Connection, f.needs(host), func(ctx context.Context, client *clientv3.Client) error {
		was, ok, err := store.Undrain(ctx, client, host)
		switch {
		case err != nil:
			return err
		case ok:
			line.Was = &was
		}
		return line.look(ctx, client)
	})
	if err != nil {
		return err
	}
	return c.printDrain(f, &line)
}

func (c *call) printDrain(f *drainFlags, l *drainLine) error {
	if f.output.JSON() {
		return cli.Print(c.env.Stdout, cli.JSONLine(l))
	}
	text, up := "", ""
	if !l.Up {
		up = "; no daemon is registered there"
	}
	switch {
	case l.Drained:
		text = fmt.Sprintf("%s is drained: it claims nothing after revision %d, and %d runs go on there%s\n", l.Host, l.Rev, l.Running, up)
	case l.Was == nil:
		text = l.Host + " is not drained" + up + "\n"
	default:
		text = l.Host + " is not drained any more: it was " + stopText(*l.Was) + up + "\n"
	}
	return cli.Print(c.env.Stdout, []byte(text))
}
