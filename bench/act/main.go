//go:build linux

// Command act is the child whose acts the bench measures. It writes down when it did its first and its last
// act, by itself and on the clock that all processes of the machine share, so that neither the shell nor the
// bench is part of what is measured.
//
//	act FILE DURATION          act for that long, then add "act PID START END" to FILE
//	act FILE DURATION GATE     the same, when GATE, a fifo, was opened for writing and closed again
//	act FILE stubborn          ignore SIGTERM, start a grandchild in a session of its own that does too, add
//	                           "stubborn PID START GRANDCHILD" to FILE, and stay for a minute
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
	"unsafe"
)

func main() {
	start := now()
	if err := act(start, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "act: %v\n", err)
		os.Exit(1)
	}
}

// now reads CLOCK_BOOTTIME, in nanoseconds.
func now() int64 {
	const bootTime = 7
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, bootTime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0 // overlaps with everything: the bench will say so
	}
	return ts.Nano()
}

func act(start int64, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("want a file and a duration")
	}
	file, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if args[1] == "stubborn" {
		return stubborn(start, file)
	}
	d, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	if len(args) > 2 {
		if err := pass(args[2]); err != nil {
			return err
		}
	}
	time.Sleep(d) // the work that is held for

	// The last act. Whatever comes after the second reading is counted as hand-over.
	_, err = fmt.Fprintf(file, "act %d %d %d\n", os.Getpid(), start, now())
	return err
}

// pass waits until somebody opened the fifo for writing and closed it.
func pass(gate string) error {
	f, err := os.Open(gate)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

func stubborn(start int64, file *os.File) error {
	signal.Ignore(syscall.SIGTERM)
	grandchild := exec.Command("sleep", "60") // an ignored signal stays ignored in it
	grandchild.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := grandchild.Start(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(file, "stubborn %d %d %d\n", os.Getpid(), start, grandchild.Process.Pid); err != nil {
		return err
	}
	time.Sleep(time.Minute) // it does not end by itself while the bench runs
	return nil
}
