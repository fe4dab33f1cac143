package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
)

// historyFlags are the flags of "conch cron history".
type historyFlags struct {
	cli.Connection
	count    int
	statuses []record.Status // none: all
	output   cli.Output
}

const cronHistoryLong = `Prints how the starts of the job ended, and what was not started and why: a line each, the newest last. How many are kept is up to the
job ("history"). The history of a job that was removed stays until it expires. With -o json: the results as they are documented in
docs/schema/result.json, one a line.

Exit codes: 0 there is a result; 1 there is none; 64 usage; 69 etcd cannot say; 77 permission denied.`

// cronHistory is "conch cron history".
func (c *call) cronHistory() *cobra.Command {
	f := &historyFlags{}
	cmd := &cobra.Command{
		Use:   "history NAME [flags]",
		Short: "Print how the starts of a job ended.",
		Long:  cronHistoryLong,
		Example: `  conch cron history backup                       the last 20
  conch cron history backup --status failed,timeout,lost
  conch cron history backup -n 1000 -o json       for a program`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := f.Bind(cmd.Flags(), c.env)
			if err != nil {
				return err
			}
			name, err := jobName(cmd, args)
			if err != nil {
				return err
			}
			return c.tellHistory(cmd.Context(), f, name)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.count = 20
	flags.VarP(cli.Number(&f.count, 100_000), "number", "n", "how many of the newest")
	flags.Var(&statusList{&f.statuses}, "status", "only results with one of these, joined by commas")
	f.output.AddFlags(flags, "how to print")
	f.AddFlags(flags)
	cmd.ValidArgsFunction = c.completeIn(&f.Connection, record.Jobs, 1)
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statusNames(), cobra.ShellCompDirectiveNoFileComp))
	completeWords(cmd)
	return cmd
}

// statusList is the flag that chooses statuses.
type statusList struct{ to *[]record.Status }

func (l *statusList) Set(s string) error {
	var all []record.Status
	for name := range strings.SplitSeq(s, ",") {
		if !slices.Contains(statusNames(), name) {
			return fmt.Errorf("want %s", l.Accepts())
		}
		all = append(all, record.Status(name))
	}
	*l.to = all
	return nil
}

func (l *statusList) String() string { return "" }
func (l *statusList) Type() string   { return "list" }
func (l *statusList) Accepts() string {
	return strings.Join(statusNames(), ", ") + ", joined by commas"
}

func statusNames() (all []string) {
	for _, s := range record.Statuses() {
		all = append(all, string(s))
	}
	return all
}

func (c *call) tellHistory(ctx context.Context, f *historyFlags, name string) error {
	var all []record.Result
	needs := reads(record.Range(record.Results, name))
	err := c.withEtcd(ctx, &f.Connection, needs, func(ctx context.Context, client *clientv3.Client) (err error) {
		all, err = store.History(ctx, client, name, f.count, func(r *record.Result) bool {
			return len(f.statuses) == 0 || slices.Contains(f.statuses, r.Status)
		})
		return err
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if f.output.JSON() {
		for i := range all {
			out.Write(cli.JSONLine(&all[i]))
		}
	} else {
		printHistory(&out, name, all)
	}
	c.code = answer(len(all) > 0)
	return cli.Print(c.env.Stdout, out.Bytes())
}

func printHistory(w io.Writer, name string, all []record.Result) {
	if len(all) == 0 {
		fmt.Fprintf(w, "no such result of %s is kept\n", name)
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tTICK\tKIND\tATTEMPT\tSTATUS\tREASON\tHOST\tLATE\tTOOK\tCODE\tTICKS")
	for i := range all {
		r := &all[i]
		late, took, code, ticks := "-", "-", "-", "-"
		if !r.StartedAt.IsZero() {
			late, took, code = brief(msec(r.LateMS)), brief(msec(r.WallMS)), fmt.Sprint(r.ExitCode)
		}
		if r.Ticks > 0 {
			ticks = countText(r.Ticks) + " from " + stamp(time.Unix(r.From, 0))
		}
		if r.Signal != "" {
			code = shown(r.Signal)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", idOf(r), stamp(time.Unix(r.Tick, 0)), dash(shown(string(r.Kind))), r.Attempt,
			dash(shown(string(r.Status))), dash(shown(string(r.Reason))), dash(shown(r.Host)), late, took, code, ticks)
	}
	_ = t.Flush() // into memory
}
