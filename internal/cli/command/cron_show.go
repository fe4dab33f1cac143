package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/manifest"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// cronShowFlags are the flags of "conch cron show".
type cronShowFlags struct {
	cli.Connection
	output string
}

const cronShowLong = `Prints a job: what its schedule means, its next ticks, how its newest start ended, and all that it says. -o yaml and
-o json print what stands in etcd alone, with the name.

Exit codes: 0; 1 there is no such job, or it cannot be read; 64 usage; 69 etcd unreachable; 77 permission denied.`

// cronShow is "conch cron show".
func (c *call) cronShow() *cobra.Command {
	f := &cronShowFlags{}
	cmd := &cobra.Command{
		Use:     "show NAME [flags]",
		Short:   "Print all about one job.",
		Long:    cronShowLong,
		Example: "  conch cron show backup\n  conch cron show backup -o yaml",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Bind(cmd.Flags(), c.env); err != nil {
				return err
			}
			if err := jobArguments(args, 1, 1, "show NAME"); err != nil {
				return err
			}
			return c.withJobs(cmd.Context(), &f.Connection, func(a *cronJobs) error { return c.showJob(cmd.Context(), a, f, args[0]) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(cli.Choice(&f.output, "text", "yaml", "json"), "output", "o", "how to print")
	f.AddFlags(flags)
	cmd.ValidArgsFunction = c.completeIn(&f.Connection, record.Jobs, 1)
	completeWords(cmd)
	return cmd
}

func (c *call) showJob(ctx context.Context, a *cronJobs, f *cronShowFlags, name string) error {
	s, err := a.find(ctx, name)
	if err != nil {
		return err
	}
	zones, err := schedule.OpenZones()
	if err != nil {
		return err
	}
	k := knownOf(zones, s)
	if k.err != nil {
		return refuse(hold.ErrNo, "%s; it says %s", k.err, hold.EscapeCut(string(s.Value), 1000))
	}
	var out bytes.Buffer
	switch f.output {
	case "json":
		out.Write(cli.JSONLine(json.RawMessage(manifest.JSON(name, k.job))))
	case "yaml":
		out.Write(manifest.YAML(name, k.job))
	default:
		last, err := a.last(ctx, []store.Stored{s})
		if err != nil {
			return err
		}
		k.describe(&out, a.now(), last)
	}
	return cli.Print(c.env.Stdout, out.Bytes())
}

// showTicks is how many next ticks are shown.
const showTicks = 3

// describe is a job for people.
func (k known) describe(out *bytes.Buffer, now time.Time, last map[string]record.Result) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "name\t%s\nrevision\t%d\nmeaning\t%s\n", k.Name, k.Rev, k.ticks.plan.Explain())
	label, from := "next", now
	for range showTicks {
		tick, ok := k.ticks.next(from)
		if !ok {
			break
		}
		line := fmt.Sprintf("%s, %s", k.ticks.localText(tick), away(now, tick.Time()))
		if clocks := k.ticks.clocks(tick); clocks != "" {
			line += "; " + clocks
		}
		fmt.Fprintf(t, "%s\t%s\n", label, line)
		label, from = "", tick.Time()
	}
	if label != "" {
		fmt.Fprintf(t, "next\tnone\n")
	}
	if shift := k.job.Shift(k.Name); shift > 0 {
		fmt.Fprintf(t, "jitter\teach %s later than that\n", shift)
	}
	if paused := pausedText(k.job, now); paused != "" {
		line := paused
		if k.job.Paused.By != "" {
			line += ", by " + shown(k.job.Paused.By)
		}
		if k.job.Paused.Why != "" {
			line += ": " + shown(k.job.Paused.Why)
		}
		fmt.Fprintf(t, "paused\t%s\n", line)
	}
	fmt.Fprintf(t, "last\t%s\n", dash(lastResult(last, k.Name, now)))
	_ = t.Flush() // into memory
	fmt.Fprintf(out, "\n%s", manifest.YAML(k.Name, k.job))
}
