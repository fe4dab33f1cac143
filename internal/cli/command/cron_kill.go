package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// cronKillFlags are the flags of "conch cron kill".
type cronKillFlags struct {
	cli.Connection
	wait   bool
	why    string
	output cli.Output
	name   string
	id     record.ID
	one    bool // id was given
}

const cronKillLong = `Asks the daemons that run the job to end what runs of it: all of it, or the starts of a TICK, or the one with that id, as ps prints it.
They end it as at a timeout: SIGTERM, then SIGKILL after kill_after, nothing of it left. Its result has the status killed. Ticks to come
are not touched: see conch cron pause.

Exit codes: 0 asked, or with --wait: it has ended; 1 nothing such runs, or its daemon is gone; 64 usage; 69 etcd unreachable; 77 permission
denied; 128+n signal n came while waiting. A request stays where nobody waits for it any more.`

// cronKill is "conch cron kill".
func (c *call) cronKill() *cobra.Command {
	f := &cronKillFlags{}
	cmd := &cobra.Command{
		Use:   "kill NAME [TICK|ID] [flags]",
		Short: "End what runs of a job.",
		Long:  cronKillLong,
		Example: `  conch cron kill backup --why "disk is full"
  conch cron kill backup 1805007600.1 --wait`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := f.Bind(cmd.Flags(), c.env)
			if err != nil {
				return err
			}
			which := ""
			f.name, which, err = nameAndRest(args, usageLine(cmd))
			if which != "" && err == nil {
				f.one = true
				f.id, err = startArg(which)
			}
			if err = cmp.Or(err, checkWhy(f.why)); err != nil {
				return err
			}
			return c.killRuns(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.wait, "wait", false, "wait until it has ended")
	flags.StringVar(&f.why, "why", "", "a reason, for who reads the result")
	f.output.AddFlags(flags, "how to print")
	f.AddFlags(flags)
	cmd.ValidArgsFunction = c.completeRuns(f)
	completeWords(cmd)
	return cmd
}

// completeRuns gives jobs, and behind one what runs of it.
func (c *call) completeRuns(f *cronKillFlags) cobra.CompletionFunc {
	jobs := c.completeIn(&f.Connection, record.Jobs, 1)
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != 1 || hold.ValidName(args[0]) != nil {
			return jobs(cmd, args, begun)
		}
		return c.completeFrom(cmd, &f.Connection, func(ctx context.Context, client *clientv3.Client) (ids []string) {
			is, err := store.Look(ctx, client, args[0])
			if err != nil {
				return nil
			}
			for i := range is.Starts {
				if id := is.Starts[i].ID.String(); strings.HasPrefix(id, begun) {
					ids = append(ids, id)
				}
			}
			return ids
		})
	}
}

// needs are what it takes. A put on a lease takes permission to write every key that is on it: those of the daemon.
func (f *cronKillFlags) needs() []cli.Need {
	return append(reads(store.LookAreas(f.name)...), writes(record.Range(record.Kills, f.name), record.Runs, record.Nodes, record.Cards)...)
}

// means reports whether a start is one of those that are meant.
func (f *cronKillFlags) means(id record.ID) bool {
	return !f.one || id == f.id || f.id == record.ID{Tick: id.Tick}
}

func (c *call) killRuns(ctx context.Context, f *cronKillFlags) error {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return err
	}
	defer client.Close()
	kill := record.Kill{By: caller(), Why: f.why, Reason: record.ReasonKill, At: time.Now().UnixMilli()}
	var asked []plan.Pictured
	err = reached(ctx, &f.Connection, client, f.needs(), func(ctx context.Context, client *clientv3.Client) (err error) {
		asked, err = askToEnd(ctx, client, f, kill)
		return err
	})
	if err != nil {
		return err
	}
	log := cli.NewLogger(c.env.Stderr, f.Quiet, f.LogFormat)
	if !f.wait {
		return c.printKills(f, asked)
	}
	for i := range asked {
		log.Info("asked to end", "job", f.name, "id", asked[i].ID.String(), "host", shown(asked[i].Host))
	}
	c.code, err = c.stream(ctx, func(ctx context.Context) error {
		for i := range asked {
			w := &awaited{job: f.name, id: asked[i].ID, log: log, first: true}
			r, err := w.end(ctx, client)
			if err != nil {
				return lacking(client, f.Settings, append(f.needs(), reads(record.Range(record.Results, f.name))...), err)
			}
			if err := printLine(c.env.Stdout, resultLine(&r, f.output.JSON())); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// askToEnd asks for the end of what is meant, and runs. What has ended meanwhile need not be asked.
func askToEnd(ctx context.Context, client *clientv3.Client, f *cronKillFlags, kill record.Kill) (asked []plan.Pictured, err error) {
	is, err := store.Look(ctx, client, f.name)
	if err != nil {
		return nil, err
	}
	var gone []string
	for _, s := range is.Starts {
		if !f.means(s.ID) {
			continue
		}
		k := store.Killing{Job: f.name, ID: s.ID, OpenRev: s.Rev, Lease: s.Lease, Kill: kill}
		there, err := k.Ask(ctx, client)
		switch {
		case errors.Is(err, store.ErrNoDaemon):
			gone = append(gone, s.ID.String()+" on "+shown(s.Host))
		case err != nil:
			return nil, err
		case there:
			asked = append(asked, s)
		}
	}
	switch {
	case len(asked) > 0:
		return asked, nil
	case len(gone) > 0:
		return nil, refuse(hold.ErrNo, "the daemon of %s is gone, and with it what it ran; another one says so within its ttl",
			strings.Join(gone[:min(len(gone), nameMost)], ", "))
	}
	return nil, nothingRuns(is, f)
}

// nothingRuns says so, and what waits: that cannot be ended.
func nothingRuns(is *plan.Picture, f *cronKillFlags) error {
	what := f.name
	if f.one {
		what += "/" + f.id.String()
	}
	text := ""
	for _, a := range is.Asked {
		if f.means(a.ID) {
			text = fmt.Sprintf("; %s (%s) waits to be started", a.ID, shown(string(a.Kind)))
		}
	}
	return refuse(hold.ErrNo, "nothing of %s runs%s", what, text)
}

func (c *call) printKills(f *cronKillFlags, asked []plan.Pictured) error {
	var out strings.Builder
	for i := range asked {
		s := &asked[i]
		if f.output.JSON() {
			line := runLines(&plan.Picture{Starts: asked[i : i+1]})[0]
			line.State, line.By = stateEnding, signed(f.why)
			out.Write(cli.JSONLine(line))
		} else {
			fmt.Fprintf(&out, "%s/%s: %s was asked to end it\n", f.name, s.ID, shown(s.Host))
		}
	}
	return cli.Print(c.env.Stdout, []byte(out.String()))
}
