//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// outerRole, as first argument, makes the test binary chaos, with the arguments behind it.
const outerRole = "act-as-chaos"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == outerRole {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		main()
		os.Exit(codeFine)
	}
	if os.Getenv(innerEnv) != "" || len(os.Args) > 1 && roles()[os.Args[1]] != nil {
		main()
		os.Exit(codeFine)
	}
	os.Exit(m.Run())
}

// A run that is interrupted in the middle of it leaves no process and no folder.
func TestAnInterruptedRunLeavesNothing(t *testing.T) {
	for name, how := range map[string]func(*exec.Cmd){
		"interrupted": func(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGINT) },
		"the inner process killed": func(cmd *exec.Cmd) {
			for _, pid := range family(cmd.Process.Pid) {
				if environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && bytes.Contains(environ, []byte(innerEnv+"=")) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tmp, err := os.MkdirTemp("", "c") // short: sockets are made below it
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(tmp) })
			cmd := exec.Command(os.Args[0], outerRole, "-for", "1m", "-seed", "1", "-v", "-bin", "../../bin", "-workloads", "elect")
			cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
			said := &watched{want: " fault ", seen: make(chan struct{})}
			cmd.Stderr = said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { _ = cmd.Wait(); close(ended) }()
			t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
			select {
			case <-said.seen:
			case <-ended:
				t.Fatalf("it has ended by itself: %s", said.buf.String())
			}
			how(cmd)
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatal("it does not end")
			}
			if code := cmd.ProcessState.ExitCode(); code != codeTrouble {
				t.Errorf("code %d, want %d: %s", code, codeTrouble, said.buf.String())
			}
			if left := marked(markOf(cmd.Process.Pid)); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// watched is an output in which something is waited for.
type watched struct {
	buf  bytes.Buffer
	want string
	seen chan struct{}
	done bool
}

func (w *watched) Write(p []byte) (int, error) {
	w.buf.Write(p)
	if !w.done && strings.Contains(w.buf.String(), w.want) {
		w.done = true
		close(w.seen)
	}
	return len(p), nil
}

func TestWhatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-for 5s":               "-for 5s: want 10s to 2h",
		"-faults kill":          `-faults "kill": want of kill-wrapper,`,
		"-workloads x":          `-workloads "x": want of elect,`,
		"-bin /nowhere":         "make build tools builds it",
		"now":                   `argument "now": want flags only`,
		"-seed -1":              "invalid value",
		"-bin ../../bin -dir .": "want a new or an empty folder",
	} {
		var said bytes.Buffer
		if _, err := parse(strings.Fields(args), &said); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
