package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// keepWord makes this program the keeper of one run of a test binary. A guard that is broken on purpose leaves processes
// behind; they come to the keeper, which ends them, and so no run meets those of another.
const keepWord = "keep"

// keep runs a command and ends all that it leaves.
func keep(argv []string) int {
	if err := adopt(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants: keep:", err)
		return 1
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, os.Interrupt)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants: keep:", err)
		return 1
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-told:
		_ = cmd.Process.Kill() // its end is what is waited for
		err = <-ended
	}
	sweep()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode()
	}
	return 1
}
