package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
)

const cronWhyLong = `Says what became of a moment of the job, or what will: whether its schedule has a tick there, how that ended, where it runs, what it waits
for, why it was not started, who paused it, which nodes would run it and what the others lack. The moment is a tick in unix seconds, an id
as ps and history print it, a time in RFC 3339, or a time on the clocks of the job's time zone. Without one it is the last tick, and the
next; of a job that has no ticks, what runs and what ended last. What it says of times to come holds as of now.

Exit codes: 0 it is said; 1 there is no such job; 64 usage; 69 etcd cannot say; 77 permission denied.`

// cronWhy is "conch cron why".
func (c *call) cronWhy() *cobra.Command {
	var conn cli.Connection
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "why NAME [TICK|TIME] [flags]",
		Short: "Say why a job ran, did not, or when it will.",
		Long:  cronWhyLong,
		Example: `  conch cron why backup                       the last tick, and the next
  conch cron why backup 1805007600
  conch cron why backup "2027-03-14 02:30"    on the clocks of its time zone`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := conn.Bind(cmd.Flags(), c.env); err != nil {
				return err
			}
			name, text, err := nameAndRest(args, usageLine(cmd))
			if err != nil {
				return err
			}
			q := whyAbout{name: name}
			if err = q.read(text); err != nil {
				return err
			}
			return c.tellWhy(cmd.Context(), &conn, &output, &q)
		},
	}
	cmd.Flags().SortFlags = false
	output.AddFlags(cmd.Flags(), "how to print")
	conn.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = c.completeIn(&conn, record.Jobs, 1)
	completeWords(cmd)
	return cmd
}

// whyAbout is what is asked about.
type whyAbout struct {
	name string
	at   point
	id   record.ID // with a number or a host: that one start
	one  bool      // id was given
	now  time.Time
}

// read reads the moment; "" is the last tick and the next one.
func (q *whyAbout) read(text string) (err error) {
	switch {
	case text == "":
		return nil
	case ofOneStart(text):
		q.one = true
		q.id, err = startArg(text)
		return err
	}
	if err = q.at.Set(text); err != nil {
		return cli.Usagef("%s: %w", cli.Quote(text), err)
	}
	return nil
}

func (c *call) tellWhy(ctx context.Context, conn *cli.Connection, output *cli.Output, q *whyAbout) error {
	var k *pictured
	var all []plan.Account
	needs := reads(append(store.LookAreas(q.name), record.Range(record.Results, q.name))...)
	err := c.withEtcd(ctx, conn, needs, func(ctx context.Context, client *clientv3.Client) (err error) {
		if k, err = lookJob(ctx, client, q.name); err == nil {
			err = k.readable()
		}
		if err == nil {
			q.now = time.Now()
			all, err = q.accounts(ctx, client, k)
		}
		return err
	})
	if err != nil {
		return err
	}
	var out strings.Builder
	if output.JSON() {
		for i := range all {
			out.Write(cli.JSONLine(accountOf(q.name, &all[i])))
		}
		return cli.Print(c.env.Stdout, []byte(out.String()))
	}
	if len(all) == 0 {
		out.WriteString(k.name + " has no ticks, and nothing of it is known: conch cron run starts it\n")
	}
	for i := range all {
		t := telling{pictured: k, now: q.now, Account: &all[i]}
		out.WriteString(t.text())
	}
	return cli.Print(c.env.Stdout, []byte(out.String()))
}

// accounts are the answers.
func (q *whyAbout) accounts(ctx context.Context, client *clientv3.Client, k *pictured) (all []plan.Account, err error) {
	inquiry := plan.Inquiry{Picture: k.Picture, Spec: k.spec, Job: k.job, Now: q.now}
	about := func(at int64) error {
		var err error
		inquiry.Results, err = store.About(ctx, client, k.name, at)
		all = append(all, inquiry.About(at)...)
		return err
	}
	switch {
	case q.one:
		if inquiry.Results, err = store.About(ctx, client, k.name, q.id.Tick); err != nil {
			return nil, err
		}
		if one, ok := inquiry.Of(q.id); ok {
			return []plan.Account{one}, nil
		}
		return inquiry.About(q.id.Tick), nil
	case !q.at.at.IsZero():
		err = about(q.at.in(k.where).Unix())
		return all, err
	}
	ticks, err := q.ticks(ctx, client, &inquiry)
	for i := 0; i < len(ticks) && err == nil; i++ {
		err = about(ticks[i])
	}
	return all, err
}

// ticks are the last one and the next one. Of a job that has none they are those of what runs, waits or ended last.
func (q *whyAbout) ticks(ctx context.Context, client *clientv3.Client, i *plan.Inquiry) (all []int64, err error) {
	if last, next := i.Around(); last != 0 || next != 0 {
		return slices.DeleteFunc([]int64{last, next}, func(tick int64) bool { return tick == 0 }), nil
	}
	newest, err := store.History(ctx, client, q.name, 1, func(*record.Result) bool { return true })
	for _, r := range newest {
		all = append(all, r.Tick)
	}
	for _, s := range i.Picture.Starts {
		all = append(all, s.ID.Tick)
	}
	for _, a := range i.Picture.Asked {
		all = append(all, a.ID.Tick)
	}
	slices.Sort(all)
	return slices.Compact(all), err
}
