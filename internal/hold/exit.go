package hold

import (
	"context"
	"errors"
)

// The exit codes of a command that runs a child under a hold. They are public: scripts depend on them.
// Any other code is the child's own. A child may exit with one of these numbers too; the status file
// says which of the two it was.
const (
	CodeOK            = 0   // what was asked for is so; for a wrapper: the child exited 0
	CodeNo            = 1   // a question was answered with no or with nothing; never given by a wrapper
	CodeUsage         = 64  // the command line makes no sense; nothing was contacted
	CodeUnreachable   = 69  // etcd cannot be reached, no session could be made, or no guard could be started
	CodeLost          = 70  // the hold was lost or evicted; nothing of the child is left, unless a WARN line says otherwise
	CodeHookFailed    = 71  // on-lose did not succeed under --fence-on-lose: the hold was left to its TTL
	CodeUnprinted     = 74  // a question has an answer, and it could not be printed; never given by a wrapper
	CodeNotAcquired   = 75  // the hold could not be had: it is taken, the wait ran out, or another maximum is in use
	CodeFenced        = 76  // a token is below the highest one seen
	CodePermission    = 77  // etcd refused for want of permission
	CodeNotExecutable = 126 // the command was found and cannot be run
	CodeNotFound      = 127 // the command was not found
	codeSignal        = 128 // plus n: signal n ended the child, or reached the wrapper while it waited
)

// SignalCode is the exit code that stands for signal n.
func SignalCode(n int) int { return codeSignal + n }

// Errors that say how an attempt to hold or to run something ended. Each has one exit code.
var (
	// ErrUsage is returned when what the user typed is not acceptable, before anything is contacted.
	ErrUsage = errors.New("usage")
	// ErrUnreachable is returned when no endpoint answered in time or no session could be made.
	ErrUnreachable = errors.New("etcd unreachable")
	// ErrNoGuard is returned when the guard cannot be started or ended before anything was started.
	ErrNoGuard = errors.New("no guard")
	// ErrUnprinted is returned when what was asked for could not be written to stdout.
	ErrUnprinted = errors.New("the answer could not be printed")
	// ErrNotAcquired is returned when the hold is taken and the caller does not want to wait any longer.
	ErrNotAcquired = errors.New("not acquired")
	// ErrFenced is returned when a token is below the highest one seen.
	ErrFenced = errors.New("fenced")
	// ErrPermission is returned when etcd refused for want of permission.
	ErrPermission = errors.New("permission denied by etcd")
	// ErrLost is the cause of a hold that ended against the will of its holder.
	ErrLost = errors.New("hold lost")
	// ErrEvicted is the cause of a hold that an operator took away.
	ErrEvicted = errors.New("hold evicted")
	// ErrNotEvicted is returned when nobody was asked to leave: nobody holds, or not whoever was meant.
	ErrNotEvicted = errors.New("not evicted")
	// ErrNotGone is returned when the wait ran out before whoever was asked to leave had left and somebody else had begun.
	ErrNotGone = errors.New("not handed over yet")
	// ErrNo is returned when the answer is no: what was asked for is not there, or is refused as things are.
	ErrNo = errors.New("no")
	// ErrNotFound is returned when there is no such command.
	ErrNotFound = errors.New("command not found")
	// ErrNotExecutable is returned when the command is there and cannot be run.
	ErrNotExecutable = errors.New("command not executable")
)

// ExitCode is the exit code for err: 0 for nil, the code of the first sentinel of this package that err
// wraps, and 69 for everything else: an error without a name of its own means that no hold came about.
// A cancelled context counts as not acquired.
func ExitCode(err error) int {
	if err == nil {
		return CodeOK
	}
	for _, m := range []struct {
		is   error
		code int
	}{
		{ErrUsage, CodeUsage},
		{ErrUnprinted, CodeUnprinted},
		{ErrNotFound, CodeNotFound},
		{ErrNotExecutable, CodeNotExecutable},
		{ErrFenced, CodeFenced},
		{ErrPermission, CodePermission},
		{ErrEvicted, CodeLost},
		{ErrLost, CodeLost},
		{ErrNotAcquired, CodeNotAcquired},
		{ErrNotGone, CodeNotAcquired}, // try again later
		{ErrNotEvicted, CodeNo},
		{ErrNo, CodeNo},
		{ErrNoGuard, CodeUnreachable},
		{ErrUnreachable, CodeUnreachable},
		{context.Canceled, CodeNotAcquired},
	} {
		if errors.Is(err, m.is) {
			return m.code
		}
	}
	return CodeUnreachable
}
