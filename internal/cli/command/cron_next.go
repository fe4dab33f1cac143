package command

import (
	"bytes"
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/hold"
)

// expressionFlags say how an expression is read that belongs to no job.
type expressionFlags struct {
	tz, dst, name string
	seconds       bool
}

// expressionFlagNames are their names.
var expressionFlagNames = []string{"tz", "dst", "seconds", "name"}

func (f *expressionFlags) declare(flags *pflag.FlagSet) {
	flags.StringVar(&f.tz, "tz", "", "of an expression: its time zone, such as Europe/Berlin (default UTC)")
	flags.Var(cli.Choice(&f.dst, dstWords()...), "dst", "of an expression: times that the clocks show never, or twice")
	flags.BoolVar(&f.seconds, "seconds", false, "of an expression: it has six fields, the first of them the second")
	flags.StringVar(&f.name, "name", "", "of an expression with H: the job's name, which H is made from")
}

// parse reads an expression.
func (f *expressionFlags) parse(expr string) (t ticks, err error) {
	zones, err := schedule.OpenZones()
	if err != nil {
		return t, err
	}
	if t.zone, err = zones.Load(f.tz); err != nil {
		return t, cli.Usagef("--tz %s: %w", cli.Quote(f.tz), err)
	}
	if f.name != "" && hold.ValidName(f.name) != nil {
		return t, cli.Usagef("--name %s: want the name of a job", cli.Quote(f.name))
	}
	t.plan, err = schedule.Parse(schedule.Options{Seconds: f.seconds, Zone: t.zone, DST: schedule.DST(f.dst), Name: f.name}, expr)
	if err != nil {
		return t, cli.Usagef("expression %s: %w", cli.Quote(expr), err)
	}
	return t, nil
}

// cronNextFlags are the flags of "conch cron next".
type cronNextFlags struct {
	cli.Connection
	expressionFlags
	n      int
	from   point
	output cli.Output
}

const cronNextExample = `  conch cron next backup                                            its next five ticks
  conch cron next '30 2 * * *' --tz America/New_York --from 2027-03-13T12:00:00Z
  conch cron next '@every 90s' -n 100 -o json`

const cronNextLong = `Prints the next ticks of a job, or of an expression, which takes no etcd: in unix seconds, as the clocks of its time
zone show them, in UTC, and from now. A day on which these clocks are set is marked.

With -o json each tick is a line {"tick": unix seconds, "time": RFC 3339 in the zone}.

Exit codes: 0; 1 there is no such job, or no such tick; 64 usage; 69 etcd unreachable; 77 permission denied.`

// ticksMost is how many ticks can be asked for.
const ticksMost = 100_000

// cronNext is "conch cron next".
func (c *call) cronNext() *cobra.Command {
	f := &cronNextFlags{n: 5}
	cmd := &cobra.Command{
		Use:     "next NAME|EXPR [flags]",
		Short:   "Print the next ticks of a job, or of an expression.",
		Long:    cronNextLong,
		Example: cronNextExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, c.env, args); err != nil {
				return err
			}
			if hold.ValidName(args[0]) == nil {
				return c.withJobs(cmd.Context(), &f.Connection, func(a *cronJobs) error { return c.nextOfJob(cmd.Context(), a, f, args[0]) })
			}
			t, err := f.parse(args[0])
			if err != nil {
				return err
			}
			return c.printTicks(f, t, time.Now(), nil)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarP(cli.Number(&f.n, ticksMost), "number", "n", "how many ticks")
	flags.Var(&f.from, "from", "from this moment on, not from now: RFC 3339, unix seconds, or a time on the clocks of the zone")
	f.expressionFlags.declare(flags)
	f.output.AddFlags(flags, "how to print")
	f.AddFlags(flags)
	cmd.ValidArgsFunction = c.completeIn(&f.Connection, record.Jobs, 1)
	completeWords(cmd)
	completeZones(cmd)
	return cmd
}

// check reads flags, variables and arguments. What is no name is an expression: that has a blank, or an @.
func (f *cronNextFlags) check(cmd *cobra.Command, env cli.Env, args []string) error {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return err
	}
	switch {
	case len(args) == 0:
		return cli.Usagef("no job and no expression given: conch cron next NAME|EXPR")
	case len(args) > 1:
		return cli.Usagef("one job or expression is accepted, got %s too; an expression has to stand in quotes", cli.Quote(args[1]))
	}
	for _, name := range expressionFlagNames {
		if hold.ValidName(args[0]) == nil && cmd.Flags().Changed(name) {
			return cli.Usagef("--%s goes with an expression only: the job %s has its own", name, args[0])
		}
	}
	return nil
}

func (c *call) nextOfJob(ctx context.Context, a *cronJobs, f *cronNextFlags, name string) error {
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
		return refuse(hold.ErrNo, "%s", k.err.Error())
	}
	var remarks []string
	if shift := k.job.Shift(name); shift > 0 {
		remarks = append(remarks, fmt.Sprintf("by its jitter it is due %s after each of them", shift))
	}
	if paused := pausedText(k.job, a.now()); paused != "" {
		remarks = append(remarks, "it is paused: "+paused)
	}
	return c.printTicks(f, k.ticks, a.now(), remarks)
}

// printTicks prints ticks, and what there is to remark.
func (c *call) printTicks(f *cronNextFlags, t ticks, now time.Time, remarks []string) error {
	after := now
	if !f.from.at.IsZero() {
		after = f.from.in(t.zone.Location()).Add(-1) // that moment may be a tick itself
	}
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	if !f.output.JSON() {
		fmt.Fprintf(table, "TICK\t%s\tUTC\tDUE\tCLOCKS\n", t.zone.Name())
	}
	n := 0
	for ; n < f.n; n++ {
		tick, ok := t.next(after)
		if !ok {
			break
		}
		after = tick.Time()
		if f.output.JSON() {
			out.Write(cli.JSONLine(tickLine{int64(tick), t.local(tick).Format(time.RFC3339)}))
			continue
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", tick, t.localText(tick), tick.Time().Format(time.RFC3339), away(now, tick.Time()), dash(t.clocks(tick)))
	}
	if n == 0 {
		return noTick(t, after)
	}
	_ = table.Flush() // into memory
	for _, line := range remarks {
		if !f.output.JSON() {
			fmt.Fprintln(&out, line)
		}
	}
	return cli.Print(c.env.Stdout, out.Bytes())
}

// noTick says why there is none.
func noTick(t ticks, after time.Time) error {
	if err := t.plan.Check(after); err != nil {
		return refuse(hold.ErrNo, "%s", err.Error())
	}
	if t.plan.Manual() {
		return refuse(hold.ErrNo, "%s", t.plan.Explain())
	}
	return refuse(hold.ErrNo, "no tick up to end_at, %s", t.end.UTC().Format(time.RFC3339))
}

// tickLine is a tick as a program reads it.
type tickLine struct {
	Tick int64  `json:"tick"`
	Time string `json:"time"`
}

// completeZones lets a shell complete --tz.
func completeZones(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("tz", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		zones, err := schedule.OpenZones()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return zones.Names(), cobra.ShellCompDirectiveNoFileComp
	})
}
