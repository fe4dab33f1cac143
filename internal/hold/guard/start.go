//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package guard

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// forkResult is the starter's answer. pid 0 means nothing was started.
type forkResult struct {
	pid   int
	errno syscall.Errno
	why   string
}

// change is what poll saw of a leader.
type change struct {
	stopped syscall.Signal
	ended   bool
	code    int
	signal  syscall.Signal
	usage   Usage
}

// fork hands a run to the starter, which answers on the results channel.
func (k *kernel) fork(r *run) {
	k.forking = r
	k.jobs <- jobOf(r)
}

// forked takes note of the answer and says whose it is.
func (k *kernel) forked() *run {
	r := k.forking
	k.forking = nil
	return r
}

// start is fork and exec, in a group of its own. The clock is judged here, after everything that may take time and can
// come before.
func (k *kernel) start(j job, eof <-chan struct{}) forkResult {
	env, sys := k.setup(j)
	sys.Setpgid = true
	if j.spec.Foreground {
		sys.Ctty, sys.Foreground = k.terminal()
	}
	if c := j.spec.Credential; c != nil {
		sys.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID, Groups: c.Groups}
	}
	stdio, err := openStdio(k.stdio, j.spec)
	if err != nil {
		return refusal(err)
	}
	defer stdio.close()
	files := stdio.fds[:]
	if k.kept != nil {
		files = append(files, k.kept.Fd())
	}
	select {
	case <-eof:
		return forkResult{why: "the wrapper is gone"}
	default:
	}
	if passed(j.term, k.clock()) {
		return forkResult{why: tooLate}
	}
	var pid int
	err = withUmask(j.spec.Umask, func() (err error) {
		attr := &syscall.ProcAttr{Dir: j.spec.Dir, Env: env, Files: files, Sys: sys}
		pid, err = syscall.ForkExec(j.spec.Path, j.spec.Argv, attr)
		return err
	})
	if err != nil {
		return refusal(err)
	}
	return forkResult{pid: pid}
}

// refusal is the answer where nothing was started.
func refusal(err error) forkResult {
	errno := syscall.EINVAL
	errors.As(err, &errno)
	return forkResult{errno: errno, why: err.Error()}
}

// terminal finds the descriptor of a terminal whose foreground group is the wrapper's.
func (k *kernel) terminal() (int, bool) {
	for _, f := range k.stdio {
		group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
		if err == nil && group == k.wrapper {
			return int(f.Fd()), true
		}
	}
	return 0, false
}
