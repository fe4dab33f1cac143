//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// processFaults are those of wrappers, guards, children, daemons and programs.
func processFaults() []kind {
	const long = 9 * time.Second // more than two of the shorter leases
	wrappers, fenced, daemons := []role{roleWrapper, roleFenced}, []role{roleFenced}, []role{roleDaemon}
	kill := func(name string, rows []int, roles []role, of ...func(int) int) kind {
		return kind{name: name, rows: rows, lane: laneProcess, roles: roles, inject: hit{roles, of, unix.SIGKILL}.inject}
	}
	stop := func(name string, rows []int, roles []role, least, most time.Duration, of ...func(int) int) kind {
		return kind{name: name, rows: rows, lane: laneProcess, roles: roles, least: least, most: most, inject: hit{roles, of, unix.SIGSTOP}.inject}
	}
	term := func(name string, rows []int, roles []role) kind {
		return kind{name: name, rows: rows, lane: laneProcess, roles: roles, inject: hit{roles, []func(int) int{itself}, unix.SIGTERM}.inject}
	}
	return []kind{
		kill("kill-wrapper", []int{1, 7}, wrappers, itself),
		kill("kill-guard", []int{3}, wrappers, guardOf),
		kill("kill-child", nil, wrappers, childOf),
		kill("kill-both", []int{4}, fenced, guardOf, itself),
		{name: "kill-host", rows: []int{1, 40}, lane: laneProcess, roles: append(wrappers, daemons...), inject: killHost},
		stop("stop-wrapper", []int{2}, wrappers, time.Second, long, itself),
		stop("stop-guard", []int{3}, wrappers, time.Second, long, guardOf),
		stop("stop-child", []int{8}, wrappers, time.Second, 4*time.Second, childOf),
		{name: "stop-tree", rows: []int{5}, lane: laneProcess, roles: wrappers, least: time.Second, most: 4 * time.Second, inject: stopTree},
		stop("stop-both", []int{4}, fenced, 6*time.Second, long, guardOf, itself),
		term("term-wrapper", []int{44, 45}, wrappers),
		kill("kill-daemon", []int{49}, daemons, itself),
		stop("stop-daemon", []int{2, 38}, daemons, time.Second, long, itself),
		term("term-daemon", nil, daemons),
		kill("kill-program", nil, []role{roleProgram}, itself),
		stop("stop-program", []int{2}, []role{roleProgram}, time.Second, long, itself),
	}
}

func itself(pid int) int { return pid }

// hit is a signal to some processes of a part, found by the part's own.
type hit struct {
	roles  []role
	of     []func(pid int) int
	signal unix.Signal
}

// inject sends it to the part that the target says, or to the next one that runs. What was stopped goes on at the end.
func (h hit) inject(_ context.Context, s strike) (string, func() error, error) {
	for _, p := range s.holders(s.turn(h.roles), len(h.of) > 1) {
		victims, ok := h.victims(p)
		if !ok {
			continue
		}
		if h.signal == unix.SIGKILL {
			p.doom()
		}
		name := p.name
		for _, v := range victims {
			v.signal(h.signal)
			name += fmt.Sprintf(" %d", v.pid)
		}
		if h.signal != unix.SIGSTOP {
			releaseAll(victims)
			return name, nil, nil
		}
		return name, func() error {
			for _, v := range victims {
				v.signal(unix.SIGCONT)
			}
			releaseAll(victims)
			return nil
		}, nil
	}
	return "", nil, errMissed
}

// victims are the processes that are meant, all of them or none.
func (h hit) victims(p *part) (all []victim, ok bool) {
	for _, of := range h.of {
		pid := p.pid()
		if pid != 0 {
			pid = of(pid)
		}
		v, ok := capture(pid)
		if !ok {
			releaseAll(all)
			return nil, false
		}
		all = append(all, v)
	}
	return all, true
}

func releaseAll(victims []victim) {
	for _, v := range victims {
		v.release()
	}
}

// turn are the parts of some roles, beginning with the one that the target says.
func (s strike) turn(roles []role) (all []*part) {
	for _, p := range s.parts {
		for _, r := range roles {
			if p.role == r {
				all = append(all, p)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	first := s.target % len(all)
	return append(all[first:len(all):len(all)], all[:first]...)
}

// holders puts the parts that have a child first: what happens to who waits is soon got over. It leaves one fault of three to
// chance, unless it always matters.
func (s strike) holders(all []*part, always bool) (first []*part) {
	if !always && s.target/len(s.parts)%3 == 0 {
		return all
	}
	var others []*part
	for _, p := range all {
		if pid := p.pid(); pid != 0 && childOf(pid) != 0 {
			first = append(first, p)
		} else {
			others = append(others, p)
		}
	}
	return append(first, others...)
}

// killHost ends a wrapper and everything below it as the end of a machine does: they are stopped first, so that none sees another's
// end.
func killHost(_ context.Context, s strike) (string, func() error, error) {
	for _, p := range s.holders(s.turn([]role{roleWrapper, roleFenced, roleDaemon}), false) {
		pid := p.pid()
		if pid == 0 {
			continue
		}
		p.doom()
		frozen := freeze(pid)
		for _, v := range frozen {
			v.signal(unix.SIGKILL)
		}
		releaseAll(frozen)
		return p.name, nil, nil
	}
	return "", nil, errMissed
}

// stopTree stops a child with all that it has started, as a frozen container is, and lets it go on.
func stopTree(_ context.Context, s strike) (string, func() error, error) {
	for _, p := range s.holders(s.turn(contenders()), true) {
		pid := p.pid()
		if pid != 0 {
			pid = childOf(pid)
		}
		if pid == 0 {
			continue
		}
		frozen := freeze(pid)
		return fmt.Sprintf("%s %d and %d below", p.name, pid, len(frozen)-1), func() error {
			for _, v := range frozen {
				v.signal(unix.SIGCONT)
			}
			releaseAll(frozen)
			return nil
		}, nil
	}
	return "", nil, errMissed
}

// freeze stops a process and its descendants: what was started before its parent stood still comes in the next round.
func freeze(pid int) (frozen []victim) {
	known := map[int]bool{}
	for more := true; more; {
		more = false
		for _, pid := range family(pid) {
			if known[pid] {
				continue
			}
			if v, ok := capture(pid); ok {
				v.signal(unix.SIGSTOP)
				frozen = append(frozen, v)
				known[pid], more = true, true
			}
		}
	}
	return frozen
}
