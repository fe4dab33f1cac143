package command

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordination/fence"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// fenceFlags are the flags of "conch fence -- CMD".
type fenceFlags struct {
	fenceFile
	wait       time.Duration
	waits      bool // --wait was given
	killAfter  time.Duration
	guard      string // auto or off
	statusFile string
}

func (f *fenceFlags) declare(flags *pflag.FlagSet) {
	f.fenceFile.declare(flags)
	flags.Var(cli.Duration(&f.wait, "a duration, such as 30s; 0 is not at all", cli.NotNegative), "wait",
		"how long to wait for the lock (default for as long as it takes)")
	f.killAfter = coord.DefaultGrace
	flags.Var(cli.Duration(&f.killAfter, "a duration above 0, such as 5s", cli.Positive), "kill-after", "from SIGTERM to SIGKILL")
	flags.Var(cli.Choice(&f.guard, "auto", "off"), "guard", "start the second process that outlives this one, or not")
	flags.StringVar(&f.statusFile, "status-file", "", "write how it ended to this file, as JSON")
	cli.AddLogFormat(flags, &f.logFormat)
}

// check reads flags, variables and arguments, and accepts all of them or none. It tries whether the files can be written.
func (f *fenceFlags) check(cmd *cobra.Command, env cli.Env, args []string) (argv []string, err error) {
	flags := cmd.Flags()
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0 && len(args) > 0:
		return nil, cli.Usagef("unknown command %s%s; a command to run goes after --", cli.Quote(args[0]), nearCommand(cmd, args[0]))
	case dash > 0:
		return nil, cli.Usagef("nothing is accepted before --, got %s", cli.Quote(args[0]))
	case len(args) == 0 && dash < 0:
		return nil, cli.Usagef("no command given: -- CMD [ARG...] is missing")
	case len(args) == 0:
		return nil, cli.Usagef("no command given after --")
	}
	if err := f.fenceFile.check(flags, env); err != nil {
		return nil, err
	}
	f.waits = flags.Changed("wait")
	if err := checkPath(flags, "file", f.path); err != nil {
		return nil, err
	}
	return args, checkPath(flags, "status-file", f.statusFile)
}

// runFenced runs argv under a file whose token is not higher than ours, and returns the exit code.
func (c *call) runFenced(ctx context.Context, f *fenceFlags, argv []string) (int, error) {
	signals, stop := c.env.Signals()
	defer stop()
	out := c.fenced(ctx, f, argv, signals)
	if !errors.Is(out.Err, hold.ErrUsage) { // a bad call leaves no status file
		c.writeStatus(cli.Connection{Settings: cli.Settings{LogFormat: f.logFormat}}, f.statusFile, out.Status)
	}
	c.interrupted(out.Interrupted)
	return out.Status.Code, c.failure(out)
}

// fenced takes the lock and runs argv under it. The command is looked for first: a typo makes no token seen.
func (c *call) fenced(ctx context.Context, f *fenceFlags, argv []string, signals <-chan os.Signal) supervise.Outcome {
	path, err := c.resolve(argv[0])
	if err != nil {
		return notBegun(err)
	}
	taken, sig, err := f.take(ctx, signals)
	switch {
	case sig != 0:
		return interruptedBy(sig)
	case err != nil:
		return notBegun(f.failed(err))
	}
	g, err := keeper(f.guard, taken.Lock())
	if err != nil {
		_ = taken.Close()
		return notBegun(errors.Join(hold.ErrNoGuard, err))
	}
	defer reaping(g)()
	manager := cli.NewNotifier(c.env)
	defer manager.Close()
	tidy := time.AfterFunc(tidyAfter, debug.FreeOSMemory)
	defer tidy.Stop()
	out := supervise.Run(ctx, supervise.Config{
		Kind: hold.KindFence, Name: f.path, Path: path, Argv: argv,
		Env: withToken(c.env.ChildEnviron(), f.token), Inherit: true,
		KillAfter: f.killAfter, Margin: coord.DefaultMargin, Foreground: true, NowFunc: coord.Now,
		Started: func(int, time.Duration) { manager.Ready("running under " + f.path) }, Beat: manager.Beat, BeatEvery: manager.BeatEvery(),
		Logger: cli.NewLogger(c.env.Stderr, true, f.logFormat), // what goes as it should is not told
	}, &locked{taken, f}, g, signals)
	if out.Clean {
		farewell := make(chan error, 1)
		go func() { farewell <- g.Close() }()
		parted(farewell, g, out)
	}
	// Else the guard is left as it is. When this process has ended it goes on alone, with the lock, until nothing is left.
	return out
}

// take waits for the lock and has the token stored. A signal that asks to end ends the wait.
func (f *fenceFlags) take(ctx context.Context, signals <-chan os.Signal) (*fence.Taken, syscall.Signal, error) {
	file, err := fence.NewFile(f.path)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.waits {
		ctx, cancel = context.WithTimeout(ctx, f.wait)
		defer cancel()
	}
	type answer struct {
		taken *fence.Taken
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		taken, err := file.Take(ctx, f.token)
		done <- answer{taken, err}
	}()
	var asked syscall.Signal
	for {
		select {
		case a := <-done:
			if asked != 0 && a.taken != nil {
				_ = a.taken.Close()
			}
			return a.taken, asked, a.err
		case sig := <-signals:
			if supervise.AsksToEnd(sig) && asked == 0 {
				asked = sig.(syscall.Signal)
				cancel()
			}
		}
	}
}

// interruptedBy is the outcome of a signal that came while the lock was waited for.
func interruptedBy(sig syscall.Signal) supervise.Outcome {
	return supervise.Outcome{
		Status: hold.Status{
			Outcome: hold.ResultSignalled, Code: hold.SignalCode(int(sig)), Reason: "signal " + unix.SignalName(sig) + " before the child started",
		},
		Clean: true, Signalled: true, Interrupted: supervise.IsInterrupt(sig),
	}
}

// keeper starts the guard, or what stands in for it. It keeps the lock, and so does all that it starts.
func keeper(mode string, lock *os.File) (*guard.Client, error) {
	if mode == "off" {
		return guard.InProcess(guard.Options{Kept: lock})
	}
	o := guard.Options{Kept: lock}
	if self, err := os.Executable(); err == nil {
		o.Path = guard.Locate(self)
	}
	return guard.Start(o)
}

// withToken is env with the token that was checked. What an outer wrapper says besides stands: it is its hold.
func withToken(env []string, token uint64) []string {
	env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "CONCH_REV=") })
	return append(env, "CONCH_REV="+strconv.FormatUint(token, 10))
}

// locked is the lock of a file guard as a hold.Hold: it does not run out, and nobody can take it away.
type locked struct {
	taken *fence.Taken
	flags *fenceFlags
}

// Acquire has nothing to wait for.
func (l *locked) Acquire(context.Context, func([]byte)) (hold.Hold, error) { return l, nil }

func (l *locked) Info() hold.Info {
	return hold.Info{Kind: hold.KindFence, Name: l.flags.path, Rev: l.flags.token, Slot: -1}
}

func (l *locked) Deadlines() hold.Deadlines {
	return hold.Deadlines{Term: hold.Never, Kill: hold.Never}
}
func (l *locked) Renewed() <-chan struct{} { return nil }
func (l *locked) Lost() <-chan struct{}    { return nil }
func (l *locked) Cause() error             { return nil }
func (l *locked) Evicted() <-chan error    { return nil }
func (l *locked) Testament() []byte        { return nil }

// Release closes this process's part of the lock. It never unlocks: whoever else has it open may be at work.
func (l *locked) Release(context.Context, hold.End) error {
	_ = l.taken.Close() // it was opened to be locked only: nothing can be lost
	return nil
}
