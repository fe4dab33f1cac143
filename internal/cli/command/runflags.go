package command

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// runFlags are the flags of a command that campaigns for something and runs a child while it is held.
type runFlags struct {
	cli.Connection
	ttl      time.Duration
	wait     time.Duration
	waits    bool // --wait was given
	nonblock bool
	childFlags
	settle  string // auto or off
	noCmd   bool
	restart bool
	hooks   hooks
}

// runFlagNames are the names of all of them but the connection's.
var runFlagNames = slices.Concat([]string{"wait", "nonblock", "ttl", "settle", "no-cmd", "restart"}, childFlagNames, hookFlags)

// declare declares them; what is what is waited for, taken says when there is none.
func (f *runFlags) declare(cmd *cobra.Command, what, taken string) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(cli.Duration(&f.wait, "a duration, such as 30s; 0 is --nonblock", cli.NotNegative), "wait",
		"how long to wait for "+what+" (default for as long as it takes)")
	flags.BoolVar(&f.nonblock, "nonblock", false, "do not wait: 75 if "+taken)
	cli.AddTTL(flags, &f.ttl)
	f.childFlags.declare(flags)
	flags.Var(cli.Choice(&f.settle, "auto", "off"), "settle", "wait out a hold that ended early, or not")
	flags.BoolVar(&f.noCmd, "no-cmd", false, "do not publish CMD in etcd")
	flags.BoolVar(&f.restart, "restart", false, "when it has ended, whatever the reason, campaign and run CMD again")
	f.hooks.declare(flags)
}

// check judges them, with the command that is to be run. It comes after every other check: it touches the disk.
func (f *runFlags) check(cmd *cobra.Command, argv []string) error {
	flags := cmd.Flags()
	switch {
	case f.waits && f.nonblock:
		return cli.Usagef("--wait %v: cannot be combined with --nonblock, which waits for nothing", f.wait)
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
	return f.childFlags.check(flags, f.ttl)
}

// session are the options of the session of one attempt.
func (f *runFlags) session() coord.SessionOptions {
	return coord.SessionOptions{TTL: f.ttl, Grace: f.killAfter, Margin: f.killMargin}
}

// named takes the arguments apart at "--": the name of what is to be held, and the command. thing is what the name
// names, usage how the command is called.
func named(args []string, dash int, thing, usage string) (name string, argv []string, err error) {
	own := args
	if dash >= 0 {
		own, argv = args[:dash], args[dash:]
	}
	switch {
	case len(own) == 0:
		return "", nil, cli.Usagef("no %s given: conch %s", thing, usage)
	case len(own) > 1 && dash < 0:
		return "", nil, cli.Usagef("-- is missing before the command %s", cli.Quote(own[1]))
	case len(own) > 1:
		return "", nil, cli.Usagef("one %s is accepted, got %s too", thing, cli.Quote(own[1]))
	}
	return own[0], argv, hold.ValidName(own[0])
}
