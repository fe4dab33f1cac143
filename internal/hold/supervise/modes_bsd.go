//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package supervise

import "golang.org/x/sys/unix"

// The two calls on a terminal's modes; the second one lets pending output out first.
const (
	getModes = unix.TIOCGETA
	setModes = unix.TIOCSETAW
)
