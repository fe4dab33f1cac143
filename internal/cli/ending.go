package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// flushWithin is how long the end waits for a reader of stderr.
	flushWithin = time.Second
	// dieWithin is how long a signal to this very process may take. It comes at once, unless it does nothing at all.
	dieWithin = time.Second
)

// Ending is how this process ends: with an exit code, or killed by SIGINT.
type Ending struct {
	stderr      *Sink
	interrupted bool
}

func (e *Ending) interrupt() { e.interrupted = true }

// Close passes on what was logged, and returns for the process to exit with its code, unless a SIGINT was asked for: that
// ends the process here. The first process of a container returns in any case, because no signal of its own ends it.
func (e *Ending) Close() {
	e.stderr.Close(flushWithin)
	if !e.interrupted || os.Getpid() == 1 {
		return
	}
	signal.Reset(syscall.SIGINT)
	if syscall.Kill(os.Getpid(), syscall.SIGINT) == nil {
		time.Sleep(dieWithin) // the signal may come to another thread: this one waits for its own end
	}
}
