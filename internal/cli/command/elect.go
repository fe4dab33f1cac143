package command

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// electFlags are the flags of "conch elect".
type electFlags struct {
	cli.Connection
	ttl      time.Duration
	wait     time.Duration
	waits    bool // --wait was given
	nonblock bool
	childFlags
	settle    string // auto or off
	noCmd     bool
	restart   bool
	hooks     hooks
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
				c.code, err = c.ask(cmd.Context(), f, office)
				return err
			}
			c.code, err = c.run(cmd.Context(), f, office, argv)
			return err
		},
	}
	f.declare(cmd)
	cmd.ValidArgsFunction = c.completeOffice(f)
	completeWords(cmd)
	return cmd
}

func (f *electFlags) declare(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(cli.Duration(&f.wait, "a duration, such as 30s; 0 is --nonblock", cli.NotNegative), "wait",
		"how long to wait for the office (default for as long as it takes)")
	flags.BoolVar(&f.nonblock, "nonblock", false, "do not wait: 75 if the office is held")
	cli.AddTTL(flags, &f.ttl)
	f.childFlags.declare(flags)
	flags.Var(cli.Choice(&f.settle, "auto", "off"), "settle", "wait out a hold that ended early, or not")
	flags.BoolVar(&f.noCmd, "no-cmd", false, "do not publish CMD in etcd")
	flags.BoolVar(&f.restart, "restart", false, "when it has ended, whatever the reason, campaign and run CMD again")
	flags.Var(cli.Duration(&f.vacantFor, "a duration above 0, such as 10s", cli.Positive), "campaign-after",
		"campaign only once the office has been vacant for this long without a break")
	f.hooks.declare(flags)
	f.question.declare(flags)
	f.AddFlags(flags)
}

// check reads flags, variables and arguments, and accepts all of them or none. It contacts nobody.
func (f *electFlags) check(cmd *cobra.Command, env cli.Env, args []string) (office string, argv []string, err error) {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return "", nil, err
	}
	f.waits = cmd.Flags().Changed("wait")
	if office, argv, err = split(args, cmd.ArgsLenAtDash()); err != nil {
		return "", nil, err
	}
	if err := hold.ValidName(office); err != nil {
		return "", nil, err
	}
	if len(f.asked()) > 0 {
		return office, nil, f.question.check(cmd, argv, actFlags)
	}
	return office, argv, f.checkRun(cmd, argv)
}

// split takes the arguments apart at "--".
func split(args []string, dash int) (office string, argv []string, err error) {
	own := args
	if dash >= 0 {
		own, argv = args[:dash], args[dash:]
	}
	switch {
	case len(own) == 0:
		return "", nil, cli.Usagef("no office given: conch elect OFFICE [flags] -- CMD [ARG...]")
	case len(own) > 1 && dash < 0:
		return "", nil, cli.Usagef("-- is missing before the command %s", cli.Quote(own[1]))
	case len(own) > 1:
		return "", nil, cli.Usagef("one office is accepted, got %s too", cli.Quote(own[1]))
	}
	return own[0], argv, nil
}

// actFlags make no sense in a question.
var actFlags = slices.Concat([]string{"wait", "nonblock", "ttl", "settle", "no-cmd", "restart", "campaign-after"}, childFlagNames, hookFlags)

func (f *electFlags) checkRun(cmd *cobra.Command, argv []string) error {
	flags := cmd.Flags()
	if err := f.stray(flags); err != nil {
		return err
	}
	switch {
	case f.waits && f.nonblock:
		return cli.Usagef("--wait %v: cannot be combined with --nonblock, which waits for nothing", f.wait)
	case f.vacantFor > 0 && (f.nonblock || f.waits && f.wait == 0):
		return cli.Usagef("--campaign-after %v: cannot be combined with --nonblock, which waits for nothing", f.vacantFor)
	case f.waits && f.vacantFor >= f.wait && f.vacantFor > 0:
		return cli.Usagef("--campaign-after %v: want less than --wait %v, or the wait is over before the campaign begins", f.vacantFor, f.wait)
	case len(argv) == 0 && flags.ArgsLenAtDash() < 0:
		return cli.Usagef("no command given: -- CMD [ARG...] is missing")
	case len(argv) == 0:
		return cli.Usagef("no command given after --")
	}
	if err := f.hooks.check(flags); err != nil {
		return err
	}
	if f.waits && f.wait == 0 {
		f.nonblock = true
	}
	return f.childFlags.check(flags, f.ttl) // the last of all: it touches the disk
}
