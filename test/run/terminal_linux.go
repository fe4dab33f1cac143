package run

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Terminal is a window with a session of its own in it: a process on a pseudo-terminal, which is its standard input, output
// and error, and what it starts. What it shows is kept as it comes, escape sequences and echo included.
type Terminal struct {
	*Process
	master *os.File
	seen   int // how much of what was shown Await has passed
}

// OnTerminal starts a process that leads the session of a terminal. When the test ends it is killed, and what is
// left of the session gets a SIGHUP from the kernel.
func OnTerminal(t T, o Options) *Terminal {
	t.Helper()
	master, slave, err := pseudoTerminal()
	if err != nil {
		t.Fatalf("open terminal: %v", err)
	}
	cmd := exec.Command(o.Path, o.Args...)
	cmd.Env, cmd.Dir = append(clean(os.Environ()), o.Env...), o.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	err = cmd.Start()
	slave.Close()
	if err != nil {
		master.Close()
		t.Fatal(err)
	}
	screen := newOutput(master)
	p := &Process{t: t, cmd: cmd, stdout: screen, stderr: screen, exited: make(chan struct{})}
	go p.reap()
	t.Cleanup(func() { p.Kill(); <-p.exited; screen.stop() })
	return &Terminal{Process: p, master: master}
}

// pseudoTerminal gives both ends of a new one.
func pseudoTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	number := 0
	err = control(master, func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		}
		return err
	})
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

// control uses a descriptor without making its file a blocking one, as File.Fd does.
func control(f *os.File, use func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	return errors.Join(conn.Control(func(fd uintptr) { failed = use(int(fd)) }), failed)
}

// Type types text. A program that is to understand it has to be awaited first.
func (w *Terminal) Type(text string) {
	w.t.Helper()
	if _, err := w.master.WriteString(text); err != nil {
		w.t.Fatalf("type %q: %v", text, err)
	}
}

// Await waits until the terminal shows text, from where the last Await ended, and returns what came before it.
func (w *Terminal) Await(text string) string {
	w.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		w.stdout.mu.Lock()
		shown, changed := w.stdout.buf.String()[w.seen:], w.stdout.changed
		w.stdout.mu.Unlock()
		if before, _, found := strings.Cut(shown, text); found {
			w.seen += len(before) + len(text)
			return before
		}
		select {
		case <-changed:
		case <-w.stdout.ended:
			w.t.Fatalf("the terminal was closed without %q: %q", text, w.Stdout())
		case <-late.C:
			w.t.Fatalf("the terminal does not show %q after %q", text, shown)
		}
	}
}

// Resize gives the window another size; what runs in it hears of that.
func (w *Terminal) Resize(rows, columns int) {
	w.t.Helper()
	err := control(w.master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
	})
	if err != nil {
		w.t.Fatalf("resize the terminal: %v", err)
	}
}

// Modes are the modes of the terminal.
func (w *Terminal) Modes() (modes unix.Termios) {
	w.t.Helper()
	err := control(w.master, func(fd int) error {
		got, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			modes = *got
		}
		return err
	})
	if err != nil {
		w.t.Fatalf("modes of the terminal: %v", err)
	}
	return modes
}

// Group is the foreground process group.
func (w *Terminal) Group() (group int) {
	w.t.Helper()
	err := control(w.master, func(fd int) (err error) {
		group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	if err != nil {
		w.t.Fatalf("foreground group of the terminal: %v", err)
	}
	return group
}

// AwaitGroup waits until a group is in the foreground.
func (w *Terminal) AwaitGroup(group int) {
	w.t.Helper()
	w.until("in the foreground is another group than expected", func() bool { return w.Group() == group })
}

// Raw waits until a program other than those of the group has the terminal, and has switched it to single keys, as editors
// and pagers do. It returns that program's group.
func (w *Terminal) Raw(than int) (group int) {
	w.t.Helper()
	w.until("nobody takes the terminal", func() bool {
		group = w.Group()
		return group != than && w.Modes().Lflag&unix.ICANON == 0
	})
	return group
}

// until polls: the kernel tells nobody of what becomes of a terminal.
func (w *Terminal) until(why string, done func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(2 * time.Millisecond) { // a poll of the terminal
		if time.Now().After(end) {
			w.t.Fatalf("%s; the terminal shows %q", why, w.Stdout())
		}
	}
}
