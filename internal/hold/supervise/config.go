package supervise

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// Config says what is to be run, and within which bounds. Run copies it.
type Config struct {
	Kind string // hold.KindElect or hold.KindSema; used in lines and reasons only
	Name string // office or semaphore; CONCH_NAME

	Path string   // the file to execute, resolved
	Argv []string // the child's arguments, the command's own name first
	Env  []string // the child's environment; CONCH_NAME, _REV, _LEASE and _SLOT are replaced here, unless Inherit is set
	Dir  string   // the child's working folder; empty: the guard's

	// Stdin, Stdout, Stderr, Credential and Umask are the child's, and not the hooks'; see guard.Spec.
	Stdin, Stdout, Stderr string
	Credential            *guard.Credential
	Umask                 *int

	// Inherit leaves Env as it is: what is held goes with a hold around it, and that one's name, token and lease count.
	Inherit bool

	// KillAfter is the time between SIGTERM and SIGKILL. When the operator stops the wrapper it is
	// honoured in full, renewals going on; on loss it is cut at the deadline of the hold.
	KillAfter time.Duration

	// Margin is what the hold's deadline leaves for scheduling and reaping (--kill-margin). A guard that
	// has not said "gone" half a margin past the deadline is taken for frozen, and killed.
	Margin time.Duration

	// OnAcquire is a shell script that runs when the hold is won, under its deadlines, before the child: only if it
	// exits 0 in time does the child start. Empty: none.
	OnAcquire string

	// OnLose is a shell script that runs once nothing of the child is left: before the release while the hold is kept, and
	// after a loss too, with nothing held. It runs also where the child never came, if OnAcquire had begun.
	OnLose string

	// FenceOnLose: if OnLose was due and did not exit 0 in time, or could not be run, nothing is released. The guard is
	// left no testament, because it would release without OnLose.
	FenceOnLose bool

	// HookTimeout is how long either of them may take until SIGTERM; SIGKILL follows after KillAfter.
	HookTimeout time.Duration

	// Foreground gives the terminal to the child and takes it back at the end, where there is one and
	// this process has it.
	Foreground bool

	// NowFunc reads the clock that deadlines count on; it has to run through suspend. Required.
	NowFunc func() hold.Instant

	// Started is called when the child has been started, Beat when Run begins and then at least every BeatEvery,
	// by the one loop that everything depends on: a Beat that does not come means that the loop hangs. Neither may block.
	// nil, or 0: not called.
	Started   func(pid int, at time.Duration)
	Beat      func()
	BeatEvery time.Duration

	// Logger gets one line a transition. nil: nothing is logged.
	Logger *slog.Logger
}

// Guard is the second process, as the loop sees it.
type Guard interface {
	// Send passes a request on, in order. It never waits for the guard, and fails once the guard has ended
	// or was killed.
	Send(guard.Request) error
	// Events yields what the guard says, in order. KindLost is the last one.
	Events() <-chan guard.Event
	// Kill ends the guard process at once. What it was the parent of becomes this process's.
	Kill()
	// Sweep kills everything that reparented to this process, and returns nil only if nothing is left.
	// It is called when the guard is gone.
	Sweep(ctx context.Context) error
	// Close ends the guard in an orderly way. Run never calls it: whoever started the guard does.
	Close() error
}

// Outcome is how a run ended. Status.Code is the exit code of the wrapper.
type Outcome struct {
	Status hold.Status
	// Started: the child ran, for however short a time, or may have.
	Started bool
	// Clean: nothing of the child and of the hooks is left, and that is proven.
	Clean bool
	// Signalled: a signal asked this process to end.
	Signalled bool
	// Interrupted: a Ctrl-C at the terminal ended the child, or this process before the child started. Who started this
	// process learns of that only if it ends by SIGINT too. Status.Code is 130 then.
	Interrupted bool
	// Released: the hold was given up and etcd said so. False after an acquisition means that the key is
	// left to its TTL; Status.Reason says why.
	Released bool
	// Usage is what the child used; zero where its end was not heard of.
	Usage guard.Usage
	// Err is why there is no child's exit to report: what Acquire returned, or the cause of a loss. It is
	// nil after a child-exit and a child-signal.
	Err error
}
