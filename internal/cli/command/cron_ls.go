package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/hold"
)

// cronLsFlags are the flags of "conch cron ls".
type cronLsFlags struct {
	cli.Connection
	last   bool
	output cli.Output
}

const cronLsLong = `Prints the jobs, by name: their schedule, and their next tick in their time zone, in UTC, and from now. --last adds
its newest result: how a start ended, or why there was none.

Exit codes: 0; 1 there is no job; 64 usage; 69 etcd unreachable; 77 permission denied.`

// cronLs is "conch cron ls".
func (c *call) cronLs() *cobra.Command {
	f := &cronLsFlags{}
	cmd := &cobra.Command{
		Use:     "ls [flags] [NAME...]",
		Short:   "Print the jobs, and when they are due.",
		Long:    cronLsLong,
		Example: "  conch cron ls\n  conch cron ls --last backup\n  conch cron ls -o json | jq -r 'select(.paused) | .name'",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Bind(cmd.Flags(), c.env); err != nil {
				return err
			}
			if err := jobArguments(args, 0, len(args), ""); err != nil {
				return err
			}
			return c.withJobs(cmd.Context(), &f.Connection, func(a *cronJobs) error { return c.listJobs(cmd.Context(), a, f, args) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.last, "last", false, "its newest result, too")
	f.output.AddFlags(flags, "how to print")
	f.AddFlags(flags)
	cmd.ValidArgsFunction = c.completeIn(&f.Connection, record.Jobs, 1<<10)
	completeWords(cmd)
	return cmd
}

func (c *call) listJobs(ctx context.Context, a *cronJobs, f *cronLsFlags, names []string) error {
	stored, err := a.some(ctx, names)
	if err != nil {
		return err
	}
	var last map[string]record.Result
	if f.last {
		if last, err = a.last(ctx, stored); err != nil {
			return err
		}
	}
	zones, err := schedule.OpenZones()
	if err != nil {
		return err
	}
	var all []known
	for _, s := range stored {
		all = append(all, knownOf(zones, s))
	}
	var out bytes.Buffer
	switch {
	case f.output.JSON():
		for _, k := range all {
			out.Write(cli.JSONLine(k.line(a.now(), last)))
		}
	case len(all) == 0:
		fmt.Fprintln(&out, "there are no jobs")
	default:
		printJobs(&out, all, a.now(), f.last, last)
	}
	c.code = answer(len(all) > 0)
	return cli.Print(c.env.Stdout, out.Bytes())
}

// jobLine is one job as a program reads it.
type jobLine struct {
	Name     string         `json:"name"`
	Schedule []string       `json:"schedule"`
	TZ       string         `json:"tz"`
	NextTick *int64         `json:"next_tick"` // null: there is none
	Next     string         `json:"next"`      // RFC 3339 in the zone; "": there is none
	NextIn   int64          `json:"next_in_ms"`
	Paused   bool           `json:"paused"`
	RunOn    string         `json:"run_on"`
	Overlap  string         `json:"overlap"`
	Rev      int64          `json:"rev"`
	Error    string         `json:"error"` // why it cannot be read; "": it can
	Last     *record.Result `json:"last,omitempty"`
}

func (k known) line(now time.Time, last map[string]record.Result) jobLine {
	l := jobLine{Name: k.Name, Schedule: []string{}, Rev: k.Rev}
	if r, ok := last[k.Name]; ok {
		l.Last = &r
	}
	if k.err != nil {
		l.Error = k.err.Error()
		return l
	}
	l.Schedule, l.TZ, l.Paused, l.RunOn, l.Overlap = k.job.Schedule, k.zone(), k.job.PausedAt(now), "one", string(k.job.Overlaps())
	if k.job.OnAll() {
		l.RunOn = k.job.RunOn
	}
	if tick, ok := k.ticks.next(now); ok {
		at := int64(tick)
		l.NextTick, l.Next, l.NextIn = &at, k.ticks.local(tick).Format(time.RFC3339), tick.Time().Sub(now).Milliseconds()
	}
	return l
}

// zone is the name of the zone.
func (k known) zone() string {
	if k.job.TZ == "" {
		return "UTC"
	}
	return k.job.TZ
}

func printJobs(w io.Writer, all []known, now time.Time, withLast bool, last map[string]record.Result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "NAME\tSCHEDULE\tTZ\tNEXT (TZ)\tNEXT (UTC)\tDUE\tPAUSED")
	if withLast {
		fmt.Fprint(t, "\tLAST")
	}
	fmt.Fprintln(t)
	for _, k := range all {
		if k.err != nil {
			fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t-\t-", k.Name, hold.EscapeCut(k.err.Error(), 100))
		} else {
			there, utc, in := "-", "-", "-"
			if tick, ok := k.ticks.next(now); ok {
				there, utc, in = k.ticks.localText(tick), tick.Time().Format(time.RFC3339), away(now, tick.Time())
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s", k.Name, schedules(k.job), k.zone(), there, utc, in, dash(pausedText(k.job, now)))
		}
		if withLast {
			fmt.Fprint(t, "\t", dash(lastResult(last, k.Name, now)))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // into memory
}

// lastResult says how the newest start of a job ended; nothing where none is known.
func lastResult(last map[string]record.Result, name string, now time.Time) string {
	r, ok := last[name]
	if !ok {
		return ""
	}
	text := shown(string(r.Status))
	if r.Reason != "" {
		text += " (" + shown(string(r.Reason)) + ")"
	}
	if !r.EndedAt.IsZero() {
		text += " " + away(now, r.EndedAt.Time)
	}
	if r.Host != "" {
		text += " on " + shown(r.Host)
	}
	return text
}
