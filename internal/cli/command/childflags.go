package command

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// childFlags are the flags of every command that runs a child while it holds something.
type childFlags struct {
	killAfter  time.Duration
	killMargin time.Duration
	guard      string // auto or off
	statusFile string
}

// childFlagNames are their names.
var childFlagNames = []string{"kill-after", "kill-margin", "guard", "status-file"}

func (f *childFlags) declare(flags *pflag.FlagSet) {
	f.killAfter, f.killMargin = coord.DefaultGrace, coord.DefaultMargin
	flags.Var(cli.Duration(&f.killAfter, "a duration above 0, such as 5s", cli.Positive), "kill-after",
		"from SIGTERM to SIGKILL; cut short on a loss where the ttl has no room for it")
	flags.Var(cli.Duration(&f.killMargin, "a duration above 0, such as 500ms", cli.Positive), "kill-margin",
		"what killing and reaping may take")
	flags.Var(cli.Choice(&f.guard, "auto", "off"), "guard", "start the second process that outlives this one, or not")
	flags.StringVar(&f.statusFile, "status-file", "", "write how it ended to this file, as JSON")
}

// check judges the flags under a lease time. It tries whether the status file can be written.
func (f *childFlags) check(flags *pflag.FlagSet, ttl time.Duration) error {
	if err := checkBounds(ttl, f.killMargin, f.killAfter); err != nil {
		return err
	}
	return checkPath(flags, "status-file", f.statusFile)
}

// checkPath tries whether a file can be put where a flag says, if it says anything.
func checkPath(flags *pflag.FlagSet, name, path string) error {
	if path == "" {
		if flags.Changed(name) {
			return cli.Usagef(`--%s "": want the path of a file`, name)
		}
		return nil
	}
	if err := hold.CheckStatusFile(path); err != nil {
		return cli.Usagef("--%s %s: want a path where a file can be written: %v", name, cli.Quote(path), cli.WithoutPath(err))
	}
	return nil
}
