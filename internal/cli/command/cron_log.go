package command

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

const cronLogLong = `Prints the end of what a run of the job wrote to stdout and stderr, as much of it as the job keeps ("output"), and how the run ended: of
the latest run that was started, or of that TICK, which may be the id of one start as ps and history print it. The ending goes to stderr,
so that stdout is the output alone. With -f: those of the runs that end from now on, too, until interrupted.

Exit codes: 0 there is a run; 1 there is none; 64 usage; 69 etcd cannot say; 77 permission denied; -f ends with 128+n by signal n.`

// cronLog is "conch cron log".
func (c *call) cronLog() *cobra.Command {
	var conn cli.Connection
	follow := false
	cmd := &cobra.Command{
		Use:   "log NAME [TICK] [flags]",
		Short: "Print the end of the output of a run.",
		Long:  cronLogLong,
		Example: `  conch cron log backup               of the latest run
  conch cron log backup 1805007600.1  of that one
  conch cron log backup -f            and of each that ends`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := conn.Bind(cmd.Flags(), c.env); err != nil {
				return err
			}
			name, which, err := nameAndRest(args, usageLine(cmd))
			if err != nil {
				return err
			}
			l := &logging{call: c, conn: &conn, name: name}
			if which != "" {
				if l.id, err = startArg(which); err != nil {
					return err
				}
				l.one = true
				if follow {
					return cli.Usagef("-f: goes without TICK, it follows what comes")
				}
			}
			return l.run(cmd.Context(), follow)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with the runs that end from now on")
	conn.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = c.completeIn(&conn, record.Jobs, 1)
	completeWords(cmd)
	return cmd
}

// logging is one run of "conch cron log".
type logging struct {
	*call
	conn *cli.Connection
	name string
	id   record.ID
	one  bool // id was given
}

func (l *logging) needs() []cli.Need { return reads(record.Range(record.Results, l.name)) }

func (l *logging) run(ctx context.Context, follow bool) error {
	client, err := l.connect(ctx, l.conn)
	if err != nil {
		return err
	}
	defer client.Close()
	var found []record.Result
	err = reached(ctx, l.conn, client, l.needs(), func(ctx context.Context, client *clientv3.Client) (err error) {
		found, err = l.find(ctx, client)
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case follow:
		l.code, err = l.stream(ctx, func(ctx context.Context) error { return l.follow(ctx, client) })
	case len(found) == 0:
		err = refuse(hold.ErrNo, "no such run of %s is kept; conch cron history %s lists what is", l.name, l.name)
	}
	for i := 0; i < len(found) && !follow && err == nil; i++ {
		err = l.print(&found[i])
	}
	return err
}

// find reads the result that is meant: that of an id, or of the tick and what followed it, or the latest.
func (l *logging) find(ctx context.Context, client *clientv3.Client) ([]record.Result, error) {
	if !l.one {
		return store.History(ctx, client, l.name, 1, func(r *record.Result) bool { return r.Status.Started() })
	}
	all, err := store.About(ctx, client, l.name, l.id.Tick)
	var meant []record.Result
	for _, r := range all {
		id, _ := r.ID() // of its key
		if id.Tick == l.id.Tick && (id == l.id || l.id == record.ID{Tick: id.Tick}) {
			meant = append(meant, r)
		}
	}
	return meant, err
}

// print writes the output to stdout, and how it ended to stderr.
func (l *logging) print(r *record.Result) error {
	if text := tailText(r); text != "" {
		if err := printLine(l.env.Stdout, []byte(text)); err != nil {
			return err
		}
	}
	_, _ = io.WriteString(l.env.Stderr, "== "+string(resultLine(r, false))) // for people: whoever closed stderr does not want it
	return nil
}

// follow prints the latest run, and then what ends from now on.
func (l *logging) follow(ctx context.Context, client *clientv3.Client) error {
	f, stop := followBelow(ctx, client, record.Range(record.Results, l.name), cli.NewLogger(l.env.Stderr, l.conn.Quiet, l.conn.LogFormat))
	defer stop()
	var known int64 // all results up to this mod revision were looked at
	for first := true; ; first = false {
		select {
		case kvs := <-f.news:
			fresh := started(kvs, known)
			if first {
				fresh = fresh[max(0, len(fresh)-1):]
			}
			for i := range fresh {
				if err := l.print(&fresh[i]); err != nil {
					return err
				}
			}
			for _, kv := range kvs {
				known = max(known, kv.ModRevision)
			}
		case err := <-f.ended:
			return cmp.Or(context.Cause(ctx), lacking(client, l.conn.Settings, l.needs(), cli.Classify(err)))
		}
	}
}

// started are the results of what was started, of those that were written after a revision, in the order of their ids.
func started(kvs []*mvccpb.KeyValue, after int64) (all []record.Result) {
	for _, kv := range kvs {
		if r, ok := store.ReadResult(kv); ok && kv.ModRevision > after && r.Status.Started() {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b record.Result) int {
		x, _ := a.ID() // of their keys
		y, _ := b.ID()
		return x.Compare(y)
	})
	return all
}
