package command

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
	"github.com/go-coord/coord/internal/view/live"
)

// statusFlags are the flags of "conch status".
type statusFlags struct {
	cli.Connection
	kind   string
	watch  bool
	output cli.Output
	names  []string // none: all
}

const anyKind = "all"

const statusExample = `  conch status                 everything that is held, what runs of jobs, and the hosts that are up
  conch status reports uploads  what is called that
  conch status --kind sema      semaphores only
  conch status --kind cron      runs of jobs, and which jobs are paused
  conch status --watch          the same, kept up to date; in a pipe, a line for each change`

const statusLong = `Prints the offices and semaphores that are held, waited for, or have been held, the jobs of "conch cron" that run
or are paused, and the hosts that are up: who holds, since when, what its lease has left, how many wait, and of
what is vacant how its last hold ended. A host is named by its UUID or its host name, a run by its job.

--watch keeps the table up to date on a terminal. Elsewhere, and with --json, it prints what there is, and then a
line for each change, until interrupted.

Exit codes: 0 something is held or waited for, a job runs, or a host is up; 1 nothing does; 64 usage; 69 etcd cannot say; 77
permission denied. --watch ends with 128+n by signal n, and with 0 when nobody reads its output any more.`

// status is "conch status".
func (c *call) status() *cobra.Command {
	f := &statusFlags{}
	cmd := &cobra.Command{
		Use:     "status [flags] [NAME...]",
		Short:   "Print everything that is held, at a glance.",
		Long:    statusLong,
		Example: statusExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err = f.check(cmd, c.env, args); err != nil {
				return err
			}
			if f.watch {
				c.code, err = c.watchStatus(cmd.Context(), f)
			} else {
				c.code, err = c.tellStatus(cmd.Context(), f)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(cli.Choice(&f.kind, anyKind, hold.KindElect, hold.KindSema, hold.KindCron, hold.KindHost), "kind", "offices, semaphores, runs of jobs or hosts only")
	flags.BoolVar(&f.watch, "watch", false, "keep it up to date, until interrupted")
	f.output.AddFlags(flags, "how to print")
	f.AddFlags(flags)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return c.completeNames(cmd, &f.Connection, begun, f.kinds()...)
	}
	completeWords(cmd)
	return cmd
}

// check reads flags, variables and arguments. It contacts nobody.
func (f *statusFlags) check(cmd *cobra.Command, env cli.Env, args []string) error {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return err
	}
	for _, name := range args {
		if err := hold.ValidName(name); err != nil {
			return err
		}
	}
	slices.Sort(args)
	f.names = slices.Compact(args)
	return nil
}

// kinds are what is asked for.
func (f *statusFlags) kinds() []string {
	if f.kind == anyKind {
		return []string{hold.KindElect, hold.KindSema, hold.KindCron, hold.KindHost}
	}
	return []string{f.kind}
}

// asks reports whether a kind is asked for.
func (f *statusFlags) asks(kind string) bool { return slices.Contains(f.kinds(), kind) }

// held are those of the kinds that can be held.
func (f *statusFlags) held() []string {
	return slices.DeleteFunc(f.kinds(), func(kind string) bool { return kind == hold.KindCron || kind == hold.KindHost })
}

// means reports whether one of these names is asked for.
func (f *statusFlags) means(names ...string) bool {
	return len(f.names) == 0 || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(f.names, name) })
}

// asksFor reports whether a name is asked for; the keys that have none are, unless names are given.
func (f *statusFlags) asksFor(n view.Name) bool {
	return f.means(n.Name) && (n.Kind == "" || slices.Contains(f.held(), n.Kind))
}

// needs are what it takes: to watch, everything there is; else of names that were given no more than these.
func (f *statusFlags) needs() (all []cli.Need) {
	var ranges []string
	for _, kind := range f.held() {
		switch {
		case f.watch:
			ranges = []string{hold.Root}
		case len(f.names) == 0:
			ranges = append(ranges, view.KindRanges(kind)...)
		}
		for _, name := range f.names {
			if !f.watch {
				ranges = append(ranges, view.Name{Kind: kind, Name: name}.Ranges()...)
			}
		}
	}
	if f.asks(hold.KindCron) {
		ranges = append(ranges, f.rosterRanges()...)
	}
	if f.asks(hold.KindHost) {
		ranges = append(ranges, coord.HostsPrefix)
	}
	for _, r := range ranges {
		all = append(all, cli.Need{Key: r, Writes: false})
	}
	return all
}

// overview is all that was asked for.
type overview struct {
	empty     string // what to say where there is nothing
	standings []view.Standing
	runs      []view.Run
	pauses    []view.Pause
	hosts     []view.Host
}

// nothing reports whether nobody holds or waits, no job runs, and no host is up.
func (o overview) nothing() bool {
	return len(o.hosts)+len(o.runs) == 0 && !slices.ContainsFunc(o.standings, func(s view.Standing) bool { return !s.Vacant() })
}

// overview is one of nothing yet.
func (f *statusFlags) overview() overview {
	switch f.kind {
	case hold.KindHost:
		return overview{empty: "no host is up"}
	case hold.KindCron:
		return overview{empty: "no job runs"}
	case anyKind:
		return overview{empty: "nothing is held, no job runs, and no host is up"}
	}
	return overview{empty: "nothing is held"}
}

// look reads it, linearizably.
func (f *statusFlags) look(ctx context.Context, client *clientv3.Client) (o overview, err error) {
	o = f.overview()
	kinds := f.held()
	if len(f.names) == 0 {
		if o.standings, err = live.LookAll(ctx, client, kinds...); err != nil {
			return overview{}, err
		}
	}
	for _, kind := range kinds {
		for _, name := range f.names {
			s, err := live.Look(ctx, client, view.Name{Kind: kind, Name: name})
			if err != nil {
				return overview{}, err
			}
			if s.Known() {
				o.standings = append(o.standings, s)
			}
		}
	}
	if f.asks(hold.KindCron) {
		roster, err := live.LookJobs(ctx, client, f.names...)
		if err != nil {
			return overview{}, err
		}
		o.take(f, roster, time.Now())
	}
	if f.asks(hold.KindHost) {
		all, err := live.Hosts(ctx, client)
		if err != nil {
			return overview{}, err
		}
		o.hosts = slices.DeleteFunc(all, func(h view.Host) bool { return !f.means(h.UUID, h.Hostname) })
	}
	return o, nil
}

// tellStatus prints how things are. Where etcd cannot vouch for an answer there is none.
func (c *call) tellStatus(ctx context.Context, f *statusFlags) (int, error) {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var o overview
	err = f.Reach(ctx, client, func(ctx context.Context) error {
		o, err = f.look(ctx, client)
		return err
	})
	if err != nil {
		return 0, lacking(client, f.Settings, f.needs(), err)
	}
	o.setLeft(live.Left(ctx, client, o.leases()))

	var out bytes.Buffer
	if f.output.JSON() {
		printLines(&out, o.lines())
	} else {
		for _, line := range o.table(time.Now()) {
			fmt.Fprintln(&out, line)
		}
	}
	return answer(!o.nothing()), cli.Print(c.env.Stdout, out.Bytes())
}
