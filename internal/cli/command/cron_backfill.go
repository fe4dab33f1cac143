package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/hold"
)

// backfillFlags are the flags of "conch cron backfill".
type backfillFlags struct {
	cli.Connection
	from, to point
	most     int
	dry      bool
	why      string
	output   cli.Output
}

const cronBackfillLong = `Asks for a start for each tick of the job from one moment to another, both included, whatever became of it then: as a start of its own,
of the kind backfill. The ticks are those of the schedule as it is now. They are started as nodes have room, in
no order that is promised, and under overlap "forbid" one after the other. They wait as long as it takes.

Exit codes: 0 the requests stand; 1 there is no such job, or no tick; 64 usage, or more ticks than --max; 69 etcd unreachable; 75 paused, or no
node is there; 77 permission denied. Requests that were put before something failed stand: what was put is printed.`

// cronBackfill is "conch cron backfill".
func (c *call) cronBackfill() *cobra.Command {
	f := &backfillFlags{most: 100}
	cmd := &cobra.Command{
		Use:   "backfill NAME --from TIME --to TIME [flags]",
		Short: "Start a job for ticks of the past.",
		Long:  cronBackfillLong,
		Example: `  conch cron backfill report --from 2027-03-01T00:00:00Z --to 2027-03-07T00:00:00Z --dry-run
  conch cron backfill report --from "2027-03-01 00:00" --to "2027-03-07 00:00"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Bind(cmd.Flags(), c.env); err != nil {
				return err
			}
			name, err := jobName(cmd, args)
			switch {
			case err != nil:
				return err
			case f.from.at.IsZero():
				return cli.Usagef("--from is missing: want %s", aPoint)
			case f.to.at.IsZero():
				return cli.Usagef("--to is missing: want %s", aPoint)
			}
			if err := checkWhy(f.why); err != nil {
				return err
			}
			return c.backfill(cmd.Context(), f, name)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&f.from, "from", "the first moment")
	flags.Var(&f.to, "to", "the last moment, which may not be to come")
	flags.Var(cli.Number(&f.most, 10_000), "max", "how many ticks there may be: more are refused, and none is asked for")
	flags.BoolVar(&f.dry, "dry-run", false, "print the ticks, and ask for nothing")
	flags.StringVar(&f.why, "why", "", "a reason, for who reads the results")
	f.output.AddFlags(flags, "how to print")
	f.AddFlags(flags)
	cmd.ValidArgsFunction = c.completeIn(&f.Connection, record.Jobs, 1)
	completeWords(cmd)
	return cmd
}

// filledLine is one line of the answer.
type filledLine struct {
	Job  string `json:"job"`
	Tick int64  `json:"tick"`
	Time string `json:"time"`
	ID   string `json:"id"` // "": it was not asked for
}

func (c *call) backfill(ctx context.Context, f *backfillFlags, name string) error {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return err
	}
	defer client.Close()
	var ticks []schedule.Tick
	var where *time.Location
	err = c.once(ctx, &f.Connection, client, name, func(ctx context.Context) error {
		k, err := lookJob(ctx, client, name)
		if err != nil {
			return err
		}
		where = k.where
		if err = k.readable(); err == nil {
			ticks, err = f.ticks(k, time.Now())
		}
		return err
	})
	if err != nil {
		return err
	}
	want := record.Want{Kind: record.Backfill, Attempt: 1, By: signed(f.why)}
	for _, tick := range ticks {
		ids := []record.ID{{}} // of a dry run: one line
		if !f.dry {
			ids = nil
			err = c.once(ctx, &f.Connection, client, name, func(ctx context.Context) error {
				ids, err = askFor(ctx, client, name, int64(tick), want)
				return err
			})
		}
		if printed := c.printFilled(f, name, tick, ids, where); printed != nil {
			return printed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ticks are those that are meant. All of them are of the past.
func (f *backfillFlags) ticks(k *pictured, now time.Time) ([]schedule.Tick, error) {
	from, to := f.from.in(k.where), f.to.in(k.where)
	switch {
	case to.Before(from):
		return nil, cli.Usagef("--to %s: is before --from %s", stamp(to), stamp(from))
	case to.After(now):
		return nil, cli.Usagef("--to %s: is to come, want a moment of the past", stamp(to))
	}
	after := later(from.Add(-time.Nanosecond), k.job.From.Add(-time.Nanosecond))
	if end := k.job.To; !end.IsZero() && end.Before(to) {
		to = end
	}
	ticks, more := k.job.Schedule.Between(after, to, f.most)
	switch {
	case more:
		return nil, cli.Usagef("--max %d: there are more ticks from %s to %s; want a greater --max, or less time", f.most, stamp(from), stamp(to))
	case len(ticks) == 0:
		return nil, refuse(hold.ErrNo, "%s has no tick from %s to %s", k.name, stamp(from), stamp(to))
	}
	return ticks, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (c *call) printFilled(f *backfillFlags, name string, tick schedule.Tick, ids []record.ID, where *time.Location) error {
	var out strings.Builder
	for _, id := range ids {
		asked := id.String()
		if f.dry {
			asked = ""
		}
		switch {
		case f.output.JSON():
			out.Write(cli.JSONLine(filledLine{Job: name, Tick: int64(tick), Time: tick.Time().In(where).Format(time.RFC3339), ID: asked}))
		case f.dry:
			fmt.Fprintf(&out, "%s/%s would be asked for\n", name, tickText(int64(tick), where))
		default:
			fmt.Fprintf(&out, "%s/%s: asked for, of tick %s\n", name, asked, tickText(int64(tick), where))
		}
	}
	return cli.Print(c.env.Stdout, []byte(out.String()))
}
