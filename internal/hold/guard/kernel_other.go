//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord/internal/hold"
)

// leftIsSilent: what is left of a group is nobody's child here, and its end no signal.
const leftIsSilent = true

// kernel is the loop's hand in the system where there is neither subreaper nor parent-death signal: it knows process
// groups only. What leaves its group is lost from sight.
type kernel struct {
	config
	forking *run
	jobs    chan job
	groups  *groups
}

func newKernel(c config, eof <-chan struct{}, results chan<- forkResult) (*kernel, error) {
	g, ok := c.kin.(*groups)
	if !ok {
		return nil, errors.New("a guard needs a wrapper in its process here")
	}
	k := &kernel{config: c, jobs: make(chan job, 1), groups: g}
	go func() {
		for j := range k.jobs {
			f := k.start(j, eof)
			if f.pid != 0 {
				k.groups.add(f.pid)
			}
			results <- f
		}
	}()
	return k, nil
}

func (k *kernel) close() { close(k.jobs) }

// setup is what a start has here: nothing but its group.
func (k *kernel) setup(j job) (env []string, sys *syscall.SysProcAttr) {
	return j.spec.Env, &syscall.SysProcAttr{}
}

// watch is told of each new leader, and stirred lists those that it may be worth to poll: all of them here.
func (k *kernel) watch(*run)                 {}
func (k *kernel) stirred(runs []*run) []*run { return runs }

// poll reaps the leader when it has ended: from then on the group's number is safe only while the group has members.
func (k *kernel) poll(r *run) change {
	var status unix.WaitStatus
	var used unix.Rusage
	pid, err := unix.Wait4(r.pid, &status, unix.WNOHANG|unix.WUNTRACED, &used)
	switch {
	case err != nil || pid != r.pid:
		return change{}
	case status.Stopped():
		return change{stopped: status.StopSignal()}
	case status.Signaled():
		r.reaped = true
		return change{ended: true, signal: status.Signal(), usage: usageOf(&used)}
	}
	r.reaped = true
	return change{ended: true, code: status.ExitStatus(), usage: usageOf(&used)}
}

func (k *kernel) signal(r *run, sig syscall.Signal) {
	if r.pid != 0 {
		_ = unix.Kill(-r.pid, sig)
	}
}

func (k *kernel) terminate(r *run, _ []*run) {
	k.signal(r, unix.SIGTERM)
	k.signal(r, unix.SIGCONT)
}

func (k *kernel) kill(r *run, _ []*run) { k.signal(r, unix.SIGKILL) }

// left shows a group with members as its own number.
func (k *kernel) left(runs []*run) (map[*run][]int, bool) {
	left := map[*run][]int{}
	for _, r := range runs {
		if r.exited && alive(r.pid) {
			left[r] = []int{r.pid}
		}
	}
	return left, true
}

func (k *kernel) bury(r *run, _ bool) bool {
	k.groups.remove(r.pid)
	return true
}

// execute has nothing to execute: a loop in the wrapper's process does not outlive it.
func (k *kernel) execute(_ []byte, _ bool, answer func(bool)) { answer(false) }

// alive reports whether a process group has members.
func alive(group int) bool { return unix.Kill(-group, 0) != unix.ESRCH }

// groups are the process groups that are not proven empty.
type groups struct {
	mu  sync.Mutex
	ids []int
}

func relatives() (*groups, error) { return &groups{}, nil }

func (g *groups) add(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ids = append(g.ids, id)
}

func (g *groups) remove(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ids = slices.DeleteFunc(g.ids, func(i int) bool { return i == id })
}

// sweep kills every group until all are empty.
func (g *groups) sweep(ctx context.Context) error {
	for {
		g.mu.Lock()
		for _, id := range g.ids {
			_ = unix.Kill(-id, unix.SIGKILL)
			_, _ = unix.Wait4(id, nil, unix.WNOHANG, nil)
		}
		g.ids = slices.DeleteFunc(g.ids, func(id int) bool { return !alive(id) })
		rest := slices.Clone(g.ids)
		g.mu.Unlock()
		if len(rest) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("sweep: groups %v not gone: %w", rest, context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func ownGroup() int { return unix.Getpgrp() }

func clockOf(o Options) func() hold.Instant {
	if o.Clock != nil {
		return o.Clock
	}
	started := time.Now()
	return func() hold.Instant { return time.Since(started) + 1 }
}

// Start is InProcess here.
func Start(o Options) (*Client, error) { return InProcess(o) }

// Main has nothing to do here: a guard in a process of its own could not become the parent of what it has to end.
func Main() int {
	_, _ = os.Stderr.WriteString("holdguard: this system needs none\n")
	return 64
}
