package supervise

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal while a child has it. The guard gives it to the child's group in
// the moment of its start; taking it back, with the modes as they were, is done here.
type terminal struct {
	tty   *os.File
	group int
	modes *unix.Termios
	given bool // the child had it
}

// openTerminal looks whether there is a terminal and this process is in its foreground. Where there is
// none, or nobody wants it, the result is not ours and restore does nothing.
func openTerminal(wanted bool) *terminal {
	if !wanted {
		return &terminal{}
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return &terminal{}
	}
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		_ = tty.Close()
		return &terminal{}
	}
	modes, err := unix.IoctlGetTermios(int(tty.Fd()), getModes)
	if err != nil {
		_ = tty.Close()
		return &terminal{}
	}
	return &terminal{tty: tty, group: group, modes: modes}
}

// lent is called when the child has the terminal: from now on this process is in the background of it, and
// a line of log there, and the way back, must not stop it. Not earlier, because a child inherits what its
// parent ignores.
//
// A guard whose standard files are all redirected finds no terminal to give: then this process stays in the foreground.
func (t *terminal) lent() {
	if t.tty != nil {
		signal.Ignore(syscall.SIGTTOU)
		t.given = !t.foreground()
	}
}

func (t *terminal) ours() bool { return t.tty != nil }

// foreground reports whether this process's group is the foreground group. It is not ours to say after restore.
func (t *terminal) foreground() bool {
	if t.tty == nil {
		return false
	}
	group, err := unix.IoctlGetInt(int(t.tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == t.group
}

// restore makes this process's group the foreground group again and resets the modes. A terminal that
// went away meanwhile needs neither.
func (t *terminal) restore() {
	if t.tty == nil {
		return
	}
	_ = unix.IoctlSetPointerInt(int(t.tty.Fd()), unix.TIOCSPGRP, t.group)
	_ = unix.IoctlSetTermios(int(t.tty.Fd()), setModes, t.modes)
	signal.Reset(syscall.SIGTTOU)
	_ = t.tty.Close()
	t.tty = nil
}
