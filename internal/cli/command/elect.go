package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// electFlags are the flags of "conch elect".
type electFlags struct {
	runFlags
	vacantFor time.Duration // --campaign-after
	question
}

const electExample = `  conch elect reports -- ./make-reports             wait for the office, run, give it up
  conch elect reports --nonblock -- ./make-reports  75 if somebody else holds it
  conch elect reports --wait 30s -- ./make-reports  75 if it is not ours within 30 seconds
  conch elect reports --who                         who leads, and who waits
  conch elect reports --watch                       each change of leader
  conch elect reports --assert                      does this host lead?`

const electLong = `CMD runs only while this process holds OFFICE, and sees CONCH_NAME, CONCH_REV (the fencing token)
and CONCH_LEASE. If the hold is lost, CMD and everything it started is ended before anybody else's starts.

Exit codes: CMD's own, 128+n if signal n ended it; 64 usage; 69 etcd unreachable, or no guard; 70 hold
lost; 75 not acquired; 77 permission denied; 126, 127 CMD cannot be executed, or does not exist;
128+n signal n came while waiting. --who and --assert: 0 yes, 1 no.

conch help exit-codes says more, conch help environment which variables stand in for flags.`

// elect is "conch elect".
func (c *call) elect() *cobra.Command {
	f := &electFlags{}
	cmd := &cobra.Command{
		Use:     "elect OFFICE [flags] -- CMD [ARG...]",
		Short:   "Run a command while holding an office that one process at a time can hold.",
		Long:    electLong,
		Example: electExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			office, argv, err := f.check(cmd, c.env, args)
			if err != nil {
				return err
			}
			if len(f.asked()) > 0 {
				c.code, err = c.ask(cmd.Context(), &f.Connection, &f.question, view.Name{Kind: hold.KindElect, Name: office})
				return err
			}
			c.code, err = f.run(cmd.Context(), c, office, argv)
			return err
		},
	}
	f.declare(cmd)
	cmd.ValidArgsFunction = c.completeName(&f.Connection, hold.KindElect)
	completeWords(cmd)
	return cmd
}

func (f *electFlags) declare(cmd *cobra.Command) {
	f.runFlags.declare(cmd, "the office", "the office is held")
	flags := cmd.Flags()
	flags.Var(cli.Duration(&f.vacantFor, "a duration above 0, such as 10s", cli.Positive), "campaign-after",
		"campaign only once the office has been vacant for this long without a break")
	f.question.declare(flags)
	f.AddFlags(flags)
}

// check reads flags, variables and arguments, and accepts all of them or none. It contacts nobody.
func (f *electFlags) check(cmd *cobra.Command, env cli.Env, args []string) (office string, argv []string, err error) {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return "", nil, err
	}
	f.waits = cmd.Flags().Changed("wait")
	if office, argv, err = named(args, cmd.ArgsLenAtDash(), "office", "elect OFFICE [flags] -- CMD [ARG...]"); err != nil {
		return "", nil, err
	}
	if len(f.asked()) > 0 {
		return office, nil, f.question.check(cmd, argv, append([]string{"campaign-after"}, runFlagNames...))
	}
	return office, argv, f.checkRun(cmd, argv)
}

func (f *electFlags) checkRun(cmd *cobra.Command, argv []string) error {
	if err := f.stray(cmd.Flags()); err != nil {
		return err
	}
	switch {
	case f.vacantFor > 0 && (f.nonblock || f.waits && f.wait == 0):
		return cli.Usagef("--campaign-after %v: cannot be combined with --nonblock, which waits for nothing", f.vacantFor)
	case f.waits && f.vacantFor >= f.wait && f.vacantFor > 0:
		return cli.Usagef("--campaign-after %v: want less than --wait %v, or the wait is over before the campaign begins", f.vacantFor, f.wait)
	}
	return f.runFlags.check(cmd, argv)
}

// run runs argv while the office is held.
func (f *electFlags) run(ctx context.Context, c *call, name string, argv []string) (int, error) {
	open, last := hold.OfficeKeys(name)
	settle := settling(f.settle == "off", open, last)
	return c.run(ctx, &f.runFlags, task{
		kind: hold.KindElect, name: name, doing: "leading " + name, standby: f.vacantFor > 0,
		contest: func(p *progress) contest {
			return &office{name: name, settle: settle, vacantFor: f.vacantFor, waiting: p.waiting, log: p.log}
		},
	}, argv)
}
