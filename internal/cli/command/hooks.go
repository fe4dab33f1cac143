package command

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// hooks are what runs before the child and after it.
type hooks struct {
	onAcquire, onLose string
	fence             bool
	timeout           time.Duration
}

const (
	hookTimeout = 30 * time.Second
	// hookTimeoutLeast is room for a shell to be started. With less no hook could ever succeed.
	hookTimeoutLeast = 10 * time.Millisecond
)

func hookTime(d time.Duration) bool { return d >= hookTimeoutLeast }

// hookFlags are the names of the flags.
var hookFlags = []string{"on-acquire", "on-lose", "fence-on-lose", "hook-timeout"}

func (h *hooks) declare(flags *pflag.FlagSet) {
	h.timeout = hookTimeout
	flags.StringVar(&h.onAcquire, "on-acquire", "", "shell script to run before CMD, under the hold; if it fails, CMD does not start: 75")
	flags.StringVar(&h.onLose, "on-lose", "", "shell script to run when nothing of CMD is left, before the release; after a loss too")
	flags.BoolVar(&h.fence, "fence-on-lose", false, "if --on-lose fails, release nothing: 71")
	flags.Var(cli.Duration(&h.timeout, "a duration from 10ms, such as 30s", hookTime), "hook-timeout",
		"SIGTERM to a hook that takes longer; SIGKILL follows after --kill-after")
}

func (h *hooks) check(flags *pflag.FlagSet) error {
	for _, name := range []string{"on-acquire", "on-lose"} {
		f := flags.Lookup(name)
		switch script := f.Value.String(); {
		case f.Changed && script == "":
			return cli.Usagef(`--%s "": want a shell script`, name)
		case hold.CheckArg(supervise.HookText(script)) != nil:
			return cli.Usagef("--%s %s: the script has %d bytes, at most %d are accepted", name, cli.Quote(script), len(script),
				hold.ArgLimit()-len(supervise.HookText("")))
		}
	}
	switch {
	case h.fence && h.onLose == "":
		return cli.Usagef("--fence-on-lose: goes with --on-lose only")
	case flags.Changed("hook-timeout") && h.onAcquire == "" && h.onLose == "":
		return cli.Usagef("--hook-timeout %v: goes with --on-acquire or --on-lose only", h.timeout)
	}
	return nil
}
