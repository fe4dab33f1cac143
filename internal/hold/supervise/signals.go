package supervise

import (
	"os"
	"os/signal"
	"syscall"
)

// signalRoom is more than anybody sends while one event is handled.
const signalRoom = 64

// AsksToEnd reports whether a signal is there to end a program. What else Signals yields is for a child.
func AsksToEnd(sig os.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}

// Signals subscribes to the signals that Run understands, until stop is called.
//
// A SIGHUP that was ignored when this process started stays ignored (nohup). SIGPIPE is received and comes
// to nothing: a log that nobody reads any more does not end the process, and, unlike an ignored signal,
// this is not inherited by what the process starts.
func Signals() (received <-chan os.Signal, stop func()) {
	want := []os.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
		syscall.SIGPIPE,
	}
	if !signal.Ignored(syscall.SIGHUP) {
		want = append(want, syscall.SIGHUP)
	}
	c := make(chan os.Signal, signalRoom)
	signal.Notify(c, want...)
	return c, func() { signal.Stop(c) }
}
