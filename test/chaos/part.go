//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// role says what a part is, and so what can happen to it.
type role string

const (
	roleWrapper role = "wrapper" // conch with a guard, and a child below that
	// roleFenced is a wrapper whose child is judged by its writes only: wrapper and guard may be stopped or killed together.
	roleFenced  role = "fenced"
	roleDaemon  role = "daemon"  // conchd
	roleProgram role = "program" // one of ours, with no other process
)

// part is a process of a workload. It is started again when it ends.
type part struct {
	name string // unique
	role role
	host int
	argv []string
	env  []string
	// codes are those that it may end with by itself, by a fault or by a stop; by SIGKILL it may end if it was sent one.
	codes []int
	// office and kind are what a wrapper contends for; empty: nothing in etcd that is to be hit.
	kind, office string

	mu     sync.Mutex
	run    *process
	killed bool // by a fault, in its present run
}

// patience is how long something that has to happen is waited for, before it counts as a violation.
const patience = time.Minute

// live starts the part again and again, until ctx ends; then it is told to stop.
func (p *part) live(ctx context.Context, a *arena) {
	for ctx.Err() == nil {
		run, err := a.launch.start(a.hosts[p.host%hosts].enter(p.argv...), append(a.environ(), p.env...), a.scratch(), a.path("log", p.name))
		if err != nil {
			a.history.add(event{What: whatExit, Part: p.name, Code: -1, Text: err.Error()})
			return
		}
		p.mu.Lock()
		p.run, p.killed = run, false
		p.mu.Unlock()
		a.history.add(event{What: whatPart, Part: p.name, Pid: run.pid()})
		select {
		case <-run.exited:
		case <-ctx.Done():
			p.stop(a, run)
		}
		p.ended(a, run)
		pause := rand.N(300 * time.Millisecond)
		if run.code == hold.CodeUnreachable {
			pause += time.Second
		}
		sleep(ctx, pause) // as a service manager does
	}
}

// stop ends a part as an operator does.
func (p *part) stop(a *arena, run *process) {
	run.signal(syscall.SIGTERM)
	select {
	case <-run.exited:
	case <-time.After(patience):
		a.history.add(event{What: whatStuck, Part: p.name, Pid: run.pid()})
		p.mu.Lock()
		p.killed = true
		p.mu.Unlock()
		run.kill()
	}
}

// ended notes how a run of the part ended: its code, and the outcome in the status file of a wrapper.
func (p *part) ended(a *arena, run *process) {
	e := event{What: whatExit, Part: p.name, Pid: run.pid(), Code: run.code}
	p.mu.Lock()
	if e.Target = "self"; p.killed {
		e.Target = "killed"
	}
	p.mu.Unlock()
	status := a.scratch("status", p.name)
	if text, err := os.ReadFile(status); err == nil {
		var said struct{ Outcome string }
		if json.Unmarshal(text, &said) == nil {
			e.Text = said.Outcome
		}
		_ = os.Remove(status) // it is told once
	}
	a.history.add(e)
}

// pid is the process of the part; 0: there is none now.
func (p *part) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || !p.run.alive() {
		return 0
	}
	return p.run.pid()
}

// doom notes that a fault kills the present run.
func (p *part) doom() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
}

// wrapper is a part that runs a child under conch.
func (a *arena) wrapper(kind, office string, i int, flags ...string) *part {
	name := fmt.Sprintf("%s.%s.%d", kind, office, i)
	p := &part{name: name, role: roleWrapper, host: i, kind: kind, office: office, codes: wrapperCodes}
	p.argv = append([]string{a.program("conch"), kind, office, "--status-file", a.scratch("status", name)}, flags...)
	p.command(a.child()...)
	return p
}

// ours is a part that is a program of our own.
func (a *arena) ours(role, name string, i int) *part {
	return &part{
		name: fmt.Sprintf("%s.%s.%d", role, name, i), role: roleProgram, host: i, argv: []string{a.Self, role, a.ledgerPath(), name},
		codes: []int{hold.CodeOK, hold.SignalCode(int(syscall.SIGTERM))}, // the latter before it listens
	}
}

// child is the usual command below a wrapper.
func (a *arena) child() []string {
	return []string{a.Self, childRole, a.ledgerPath(), a.scratch("locks")}
}

// command gives a wrapper a command to run, in the place of the one that it had.
func (p *part) command(argv ...string) {
	if i := slices.Index(p.argv, "--"); i >= 0 {
		p.argv = p.argv[:i]
	}
	p.argv = append(append(p.argv, "--"), argv...)
}
