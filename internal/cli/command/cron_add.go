package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// cronAddFlags are the flags of "conch cron add".
type cronAddFlags struct {
	cli.Connection
	spec    specFlags
	replace bool
}

const cronAddExample = `  conch cron add backup --schedule '30 2 * * *' -- backup --all
  conch cron add report --schedule @daily --tz Europe/Berlin --jitter 10m -- report --mail
  conch cron add tidy --schedule '*/10 * * * *' --run-on all --script 'cd /tmp && tidy'
  conch cron add sync --schedule '@every 90s' --retry 3 --run-ttl 1m -- sync`

const cronAddLong = `CMD is not looked for here: it runs on the hosts of conchd. What is not said is as docs/jobs.md has it. A job of that
name is left alone, unless --replace is given: then its pause, and who added it, stay as they are.

A job adds nothing to the past: no tick before now counts.

Exit codes: 0; 1 there is a job of that name; 64 usage; 69 etcd unreachable; 77 permission denied.`

// cronAdd is "conch cron add".
func (c *call) cronAdd() *cobra.Command {
	f := &cronAddFlags{}
	cmd := &cobra.Command{
		Use:     "add NAME --schedule EXPR [flags] -- CMD [ARG...]",
		Short:   "Add a job.",
		Long:    cronAddLong,
		Example: cronAddExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, j, err := f.check(cmd, c.env, args)
			if err != nil {
				return err
			}
			return c.withJobs(cmd.Context(), &f.Connection, func(a *cronJobs) error { return c.addJob(cmd.Context(), a, f, name, j) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.spec.declare(cmd)
	flags.BoolVar(&f.replace, "replace", false, "overwrite a job of that name")
	f.AddFlags(flags)
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp // a new name
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
	completeWords(cmd)
	return cmd
}

// check makes a job of the flags. It contacts nobody.
func (f *cronAddFlags) check(cmd *cobra.Command, env cli.Env, args []string) (string, *job.Job, error) {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return "", nil, err
	}
	dash := cmd.ArgsLenAtDash()
	name, argv, err := named(args, dash, "job", "cron add NAME --schedule EXPR [flags] -- CMD [ARG...]")
	if err != nil {
		return "", nil, err
	}
	switch {
	case f.spec.given("script") && len(argv) > 0:
		return "", nil, cli.Usagef("--script %s: cannot be combined with the command %s", cli.Quote(f.spec.first("script")), cli.Quote(argv[0]))
	case len(argv) == 0 && dash >= 0:
		return "", nil, cli.Usagef("no command given after --")
	case len(argv) == 0 && !f.spec.given("script"):
		return "", nil, cli.Usagef("no command given: -- CMD [ARG...] or --script is missing")
	}
	j, err := f.spec.job(name, argv)
	if err != nil {
		return "", nil, err
	}
	plan, err := j.Plan(name, nil)
	if err == nil {
		err = plan.Check(time.Now())
	}
	if err != nil {
		return "", nil, cli.Usagef("--schedule %s: %w", cli.Quote(f.spec.first("schedule")), err)
	}
	return name, j, nil
}

// addJob writes it, where none stands or it may be overwritten.
func (c *call) addJob(ctx context.Context, a *cronJobs, f *cronAddFlags, name string, j *job.Job) error {
	decide := func(was store.Stored) (jobChange, error) {
		ch := a.changeTo(was, j)
		if was.Rev != 0 && !f.replace {
			return ch, refuse(hold.ErrNo, "job %s exists already; --replace overwrites it", name)
		}
		return ch, nil
	}
	was, err := a.look(ctx, name)
	if err != nil {
		return err
	}
	ch, err := decide(was)
	if err != nil {
		return err
	}
	if ch, err = a.insist(ctx, ch, decide); err != nil {
		return err
	}
	return cli.Print(c.env.Stdout, fmt.Appendf(nil, "%s %s\n", ch.verb, name))
}
