package guard

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord/internal/hold"
)

// Start starts a guard in a process of its own and returns at once: that it is up is an event. From here on this
// process is a subreaper, and must have no children but the guard and those that it had before.
func Start(o Options) (*Client, error) {
	c, err := start(o)
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	return c, nil
}

func start(o Options) (*Client, error) {
	guard := &process{}
	var err error
	if guard.kin, err = relatives(); err != nil {
		return nil, err
	}
	p, err := pipes()
	if err != nil {
		return nil, err
	}
	defer p.guardIn.Close()
	defer p.guardOut.Close()
	if guard.pid, err = spawn(o, p.guardIn, p.guardOut); err != nil {
		_ = p.requests.Close()
		_ = p.events.Close()
		return nil, err
	}
	return newClient(guard, p.requests, p.events), nil
}

// spawn forks and execs the guard: a process group of its own, but the session of the terminal.
func spawn(o Options, requests, events *os.File) (pid int, err error) {
	stdio := o.stdio()
	files := []*os.File{stdio[0], stdio[1], stdio[2], requests, events}
	argv := []string{Name, roleWord}
	if o.Release != nil {
		settings, err := sealed("settings", o.Settings)
		if err != nil {
			return 0, err
		}
		defer settings.Close()
		files = append(files, settings, o.Release)
		argv = append(argv, withRelease)
	}
	if o.Kept != nil {
		files = append(files, o.Kept)
		argv = append(argv, withKept)
	}
	path := o.Path
	if path == "" {
		path = "/proc/self/exe"
	}
	// A guard outside that of this process has to recognise this one.
	env := o.Env
	if outer, ok := os.LookupEnv(runVariable); ok {
		env = append(env[:len(env):len(env)], runVariable+"="+outer)
	}
	if env == nil {
		env = []string{} // nil would mean ours
	}
	var fds []uintptr
	for _, f := range files {
		fds = append(fds, f.Fd())
	}
	// Package os would fork once more, to try out whether it may use a pidfd.
	pid, err = syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: env, Files: fds, Sys: &syscall.SysProcAttr{Setpgid: true}})
	runtime.KeepAlive(files)
	return pid, os.NewSyscallError("fork/exec", err)
}

// process is the peer in a process of its own.
type process struct {
	pid int
	kin *family

	mu     sync.Mutex
	reaped bool // its pid means nothing any more
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = unix.Kill(p.pid, unix.SIGKILL)
	}
}

func (p *process) wait() string {
	// Waited for as a zombie first: who kills must not meet another process under its pid.
	var si unix.Siginfo
	err := ignoreEINTR(func() error { return unix.Waitid(unix.P_PID, p.pid, &si, unix.WEXITED|unix.WNOWAIT, nil) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	if err != nil {
		return err.Error()
	}
	var status unix.WaitStatus
	err = ignoreEINTR(func() error { _, err := unix.Wait4(p.pid, &status, 0, nil); return err })
	switch {
	case err != nil:
		return err.Error()
	case status.Signaled():
		return "signal: " + status.Signal().String()
	}
	return "exit status " + strconv.Itoa(status.ExitStatus())
}

func (p *process) reap() { p.kin.reap(p.pid) }

func (p *process) sweep(ctx context.Context) error { return p.kin.sweep(ctx) }

// relatives makes this process a subreaper and notes which children it has already.
func relatives() (*family, error) {
	if err := adopt(); err != nil {
		return nil, err
	}
	return newFamily()
}

func ownGroup() int { return unix.Getpgrp() }

// leftIsSilent is false: what is left of a run is our child, and its end a signal.
const leftIsSilent = false

// clockOf is CLOCK_BOOTTIME, which is what the alarm rings by.
func clockOf(Options) func() hold.Instant { return now }
