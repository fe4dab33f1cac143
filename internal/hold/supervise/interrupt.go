package supervise

import (
	"os"
	"syscall"

	"github.com/go-coord/coord/internal/hold"
)

// A shell ends a loop only when what it ran was killed by SIGINT: an exit with 130 tells it that the program has dealt
// with the Ctrl-C and that it may go on (M. Cracauer, "Proper handling of SIGINT/SIGQUIT"). The Ctrl-C of a child that
// has the terminal reaches the child's group alone, so the shell learns of it from this process, or not at all.

// interrupted reports whether a Ctrl-C ended the run, as far as can be told: the child was killed by SIGINT while it had the
// terminal from us, or a SIGINT came before it started, while this process was in the foreground. Somebody who sends
// such a SIGINT by kill(1) counts as well: the kernel tells the two apart, and Go does not pass it on.
func (t *terminal) interrupted(o Outcome) bool {
	if o.Status.Code != hold.SignalCode(int(syscall.SIGINT)) {
		return false
	}
	switch o.Status.Outcome {
	case hold.ResultChildSignal:
		return t.given
	case hold.ResultSignalled:
		return t.foreground()
	}
	return false
}

// IsInterrupt reports the same of a signal that comes between two runs.
func IsInterrupt(sig os.Signal) bool {
	t := openTerminal(sig == syscall.SIGINT)
	if !t.ours() {
		return false
	}
	_ = t.tty.Close()
	return true
}
