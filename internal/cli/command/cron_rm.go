package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
)

const cronRmLong = `Removes jobs, where each of them is there; else none. What runs goes on, and its end is recorded; what was to run, by a
retry or by hand, is not. Results stay for their time.

Exit codes: 0; 1 there is no such job: none was removed; 64 usage; 69 etcd unreachable; 77 permission denied.`

// cronRm is "conch cron rm".
func (c *call) cronRm() *cobra.Command {
	f := &cli.Connection{}
	cmd := &cobra.Command{
		Use:     "rm NAME... [flags]",
		Short:   "Remove jobs.",
		Long:    cronRmLong,
		Example: "  conch cron rm backup report",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Bind(cmd.Flags(), c.env); err != nil {
				return err
			}
			if err := jobArguments(args, 1, len(args), "rm NAME..."); err != nil {
				return err
			}
			return c.withJobs(cmd.Context(), f, func(a *cronJobs) error { return c.removeJobs(cmd.Context(), a, args) })
		},
	}
	cmd.Flags().SortFlags = false
	f.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = c.completeIn(f, record.Jobs, 1<<10)
	completeWords(cmd)
	return cmd
}

func (c *call) removeJobs(ctx context.Context, a *cronJobs, names []string) error {
	all, err := a.some(ctx, names)
	if err != nil {
		return err
	}
	for _, s := range all {
		decide := func(was store.Stored) (jobChange, error) { return jobChange{was: was, verb: jobRemoved}, nil }
		ch, _ := decide(s)
		if ch, err = a.insist(ctx, ch, decide); err != nil {
			return err
		}
		if err := cli.Print(c.env.Stdout, fmt.Appendf(nil, "%s %s\n", ch.verb, s.Name)); err != nil {
			return err
		}
	}
	return nil
}
