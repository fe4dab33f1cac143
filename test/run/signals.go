package run

import (
	"os"
	"os/signal"
	"syscall"
)

// Unignore is for the begin of a TestMain. Under nohup, or in a shell's background, a test process ignores hangups and
// interrupts, and so would whatever it starts: what is caught is not inherited.
func Unignore() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
