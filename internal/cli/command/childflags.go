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
	if flags.Changed("status-file") && f.statusFile == "" {
		return cli.Usagef(`--status-file "": want the path of a file`)
	}
	if err := checkBounds(ttl, f.killMargin, f.killAfter); err != nil {
		return err
	}
	if f.statusFile != "" {
		if err := hold.CheckStatusFile(f.statusFile); err != nil {
			return cli.Usagef("--status-file %s: want a path where a file can be written: %v", cli.Quote(f.statusFile), cli.WithoutPath(err))
		}
	}
	return nil
}
