package supervise

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// These two change how the whole process takes signals, so they do not run in parallel.

func TestSignalsReachTheLoop(t *testing.T) {
	received, stop := Signals()
	defer stop()
	for _, want := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE,
	} {
		if err := syscall.Kill(os.Getpid(), want); err != nil {
			t.Fatal(err)
		}
		if got := <-received; got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestAHangUpThatWasIgnoredStaysIgnored(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	received, stop := Signals()
	defer stop()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-received; got != syscall.SIGTERM {
		t.Errorf("got %v, want the signal sent after the hang-up", got)
	}
}
