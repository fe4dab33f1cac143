//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// runEnv marks everything that a run starts, by what is in its environment.
const runEnv = "CHAOS_RUN"

// launcher starts processes that the kernel kills when this one dies: they belong to the thread that forked them, so there is one
// that lives as long as the process.
type launcher struct {
	jobs chan func()
	mark string // of everything that it starts
}

func newLauncher(mark string) *launcher {
	l := &launcher{jobs: make(chan func()), mark: mark}
	go func() {
		runtime.LockOSThread()
		for job := range l.jobs {
			job()
		}
	}()
	return l
}

// process is a child of ours.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	code   int // 128+n: by signal n. Set before exited is closed
}

// start starts a program in a folder. What it says goes to the end of a file.
func (l *launcher) start(argv, env []string, dir, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(append(plain(os.Environ()), runEnv+"="+l.mark), env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	l.jobs <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go p.reap()
	return p, nil
}

func (p *process) reap() {
	defer close(p.exited)
	var exit *exec.ExitError
	if err := p.cmd.Wait(); errors.As(err, &exit) {
		status := exit.Sys().(syscall.WaitStatus)
		if p.code = status.ExitStatus(); status.Signaled() {
			p.code = 128 + int(status.Signal())
		}
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// signal sends a signal; whoever has ended gets none.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill kills the process, also one that is stopped, and waits until it is reaped.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// plain is an environment without what acts on the commands: a run says by itself what it wants.
func plain(environ []string) (kept []string) {
	for _, v := range environ {
		if !acts(v) {
			kept = append(kept, v)
		}
	}
	return kept
}
