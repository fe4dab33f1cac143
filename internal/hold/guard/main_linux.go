package guard

import (
	"encoding/json"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Main is the guard's process from beginning to end. It returns the exit status.
func Main() int {
	// First of all: what the wrapper handed over, and what it inherited itself, is not for children.
	closeOnExec()
	_ = os.WriteFile("/proc/self/comm", []byte(Name), 0)
	outlive(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)

	c := config{
		requests: pipeEnd(requestsFD, "requests"),
		events:   pipeEnd(eventsFD, "events"),
		stdio:    [3]*os.File{os.Stdin, os.Stdout, os.Stderr},
		clock:    now,
	}
	c.wrapper, _ = unix.Getpgid(os.Getppid())
	err := c.take(os.Args[2:])
	if err == nil {
		err = serve(c)
	}
	if err != nil {
		return refuseToServe(c.events, err)
	}
	return 0
}

// take takes what was handed over beside the pipes, as the words of the command line say.
func (c *config) take(words []string) error {
	next := extraFD
	for _, word := range words {
		switch word {
		case withRelease:
			c.settings = os.NewFile(uintptr(next), "settings")
			// High enough that no list of files for a child reaches it, and below 64: for a number beyond, the kernel
			// grows the table of descriptors, and in a process with threads that takes it some ten milliseconds.
			fd, err := unix.FcntlInt(uintptr(next+1), unix.F_DUPFD_CLOEXEC, 32)
			if err != nil {
				return os.NewSyscallError("fcntl", err)
			}
			_ = unix.Close(next + 1)
			c.program = os.NewFile(uintptr(fd), "release")
			next += 2
		case withKept:
			c.kept = os.NewFile(uintptr(next), "kept")
			next++
		}
	}
	return nil
}

// refuseToServe tells the wrapper why: the standard error belongs to the child.
func refuseToServe(events *os.File, err error) int {
	_ = json.NewEncoder(events).Encode(Event{Kind: KindLost, Reason: err.Error()})
	return 1
}

// outlive catches signals and forgets them. To ignore them would be inherited by the child; but what was
// ignored when this process started stays so (nohup).
func outlive(signals ...os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// closeOnExec marks every descriptor above the standard ones.
func closeOnExec() {
	if unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	// Before Linux 5.11.
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// pipeEnd makes a handed-over descriptor a file that takes deadlines and that closing wakes up.
func pipeEnd(fd int, name string) *os.File {
	_ = unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), name)
}
