package guard

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// walkBudget bounds one round, so that a fork bomb cannot keep the loop from its timers. The next round goes on.
	walkBudget = 2000
	// walkDepth bounds the descriptors that one round holds, one a generation. What is deeper becomes an orphan
	// when its ancestors die, and is found by the next round.
	walkDepth = 64
	// runVariable names, in a child's environment, the runs that it is part of: one entry a guard, the innermost last.
	runVariable = "CONCH_RUN"
	// tornReads is how often an empty environment is read before it is believed.
	tornReads = 8
	// doubtFor is how long a process may be in the middle of an exec before it counts as anybody's. The program is read
	// from a disk meanwhile; SIGKILL is a second or more before anything it could touch.
	doubtFor = 100 * time.Millisecond
)

// walk sends one signal down the tree.
type walk struct {
	sig    unix.Signal
	budget int
}

// tree signals an own child that nobody reaps meanwhile, and all that descends from it. The parent goes first: after
// SIGKILL it forks no more, so the list of its children that is read then is the last one.
func (w *walk) tree(pid int) {
	_ = unix.Kill(pid, w.sig)
	w.below(pid, walkDepth, func() bool { return true })
}

// below signals what descends from a process. pinned says whether its pid still means that process.
func (w *walk) below(parent, depth int, pinned func() bool) {
	if depth == 0 {
		return
	}
	for _, pid := range allChildrenOf(parent) {
		if w.budget--; w.budget < 0 {
			return
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// The descriptor holds a process, the list gave a number: they belong together if the process still
		// has the parent from whose list the number is (or us, if that one died).
		p := parentOf(pid)
		if p == parent && pinned() || p == unix.Getpid() {
			_ = unix.PidfdSendSignal(fd, w.sig, nil, 0)
			w.below(pid, depth-1, func() bool { return unix.PidfdSendSignal(fd, 0, nil, 0) == nil })
		}
		_ = unix.Close(fd)
	}
}

// unborn signals children between fork and exec. The starter may reap such a child at any moment, when its exec
// fails: so it is held by a descriptor first, then checked.
func (w *walk) unborn(pids []int) {
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if parentOf(pid) == unix.Getpid() {
			_ = unix.PidfdSendSignal(fd, w.sig, nil, 0)
		}
		_ = unix.Close(fd)
	}
}

// orphans lists what has come to us of a run. What is in doubt is in nobody's list: the next look knows more.
func (k *kernel) orphans(r *run, runs []*run) []int {
	all, _ := k.family.orphans()
	return slices.DeleteFunc(all, func(pid int) bool { return !slices.Contains(k.ownersOf(pid, runs), r) })
}

// ownersOf says which runs an orphan may be part of: by its process group, else by its environment, else every run that
// was alive when it was first seen. The answer stays, because a process may clear its traces later. It is nobody while
// the orphan is in the middle of an exec, and more than one run is alive: it may be an innocent one's.
func (k *kernel) ownersOf(pid int, runs []*run) []*run {
	if owners, ok := k.owners[pid]; ok {
		return owners
	}
	var owners []*run
	group, _ := unix.Getpgid(pid)
	names, settled := runsOf(pid)
	for _, r := range runs {
		// A run whose fork is not answered yet may well have descendants: its child does not wait for us.
		if r.pid == 0 && r != k.forking {
			continue
		}
		if r.pid == group && !r.reaped || slices.Contains(names, k.tag+"."+r.id) {
			owners, settled = []*run{r}, true
			break
		}
		owners = append(owners, r)
	}
	if !settled && len(owners) > 1 {
		since, ok := k.doubts[pid]
		if !ok {
			since = k.clock()
			k.doubts[pid] = since
		}
		if k.clock()-since < doubtFor {
			return nil
		}
	}
	if len(owners) > 0 {
		k.owners[pid] = owners
	}
	return owners
}

// forget drops what was known of a process that is no more: its number may come back as somebody else.
func (k *kernel) forget(pid int) {
	delete(k.owners, pid)
	delete(k.doubts, pid)
}

// forgetOthers drops what was known of orphans that are no more.
func (k *kernel) forgetOthers(alive []int) {
	for pid := range k.owners {
		if !slices.Contains(alive, pid) {
			k.forget(pid)
		}
	}
	for pid := range k.doubts {
		if !slices.Contains(alive, pid) {
			k.forget(pid)
		}
	}
}

// runsOf reads the runs that a process says it is part of: none when its environment may not be read, or is empty.
// settled is false in the middle of an exec, where a process has neither environment nor arguments for a moment.
func runsOf(pid int) (names []string, settled bool) {
	proc := "/proc/" + strconv.Itoa(pid)
	// The two are not read at once. Arguments that are there say that no exec was under way, but one may have
	// been before, or begin after: so an empty environment is believed when it is found around them twice, and once
	// more for each exec that might have hit just there.
	for range tornReads {
		data, _ := readProc(proc + "/environ")
		for v := range bytes.SplitSeq(data, []byte{0}) {
			if value, ok := bytes.CutPrefix(v, []byte(runVariable+"=")); ok {
				return strings.Split(string(value), ":"), true
			}
		}
		if len(data) > 0 {
			return nil, true
		}
		if argv, _ := readProc(proc + "/cmdline"); len(argv) == 0 {
			return nil, false
		}
	}
	return nil, true
}

// withRun adds a run to an environment, after those of the guards outside.
func withRun(env []string, name string) []string {
	out := make([]string, 0, len(env)+1)
	for _, v := range env {
		if outer, ok := strings.CutPrefix(v, runVariable+"="); ok {
			name = outer + ":" + name
			continue
		}
		out = append(out, v)
	}
	return append(out, runVariable+"="+name)
}

// sweep kills whatever has come to this process, round after round, until nothing is left. It is for a
// process whose guard is dead, and which has forked nothing else.
func (f *family) sweep(ctx context.Context) error {
	pause := time.Millisecond
	for {
		pids, gone := f.sweepOnce()
		if gone {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("sweep: %v not gone: %w", pids, context.Cause(ctx))
		case <-time.After(pause):
			pause = min(2*pause, 20*time.Millisecond)
		}
	}
}

// sweepOnce is one round. Nobody else reaps during it: a pid that it has listed stays the same process.
func (f *family) sweepOnce() (pids []int, gone bool) {
	f.reaping.Lock()
	defer f.reaping.Unlock()
	pids, stable := f.stable()
	if len(pids) == 0 && stable && f.empty() {
		return nil, true
	}
	w := walk{sig: unix.SIGKILL, budget: walkBudget}
	for _, pid := range pids {
		w.tree(pid)
	}
	for _, pid := range pids {
		reap(pid)
	}
	return pids, false
}

// reap takes ended orphans away, except one child that somebody else waits for. The first process of a container does
// so with the children from before, too: they may be orphans that came to the shell which became us, and if
// not, that shell waits for them no more.
func (f *family) reap(except int) {
	f.reaping.Lock()
	defer f.reaping.Unlock()
	pids, _ := f.orphans()
	for _, pid := range pids {
		if pid != except {
			reap(pid)
		}
	}
	if unix.Getpid() != 1 {
		return
	}
	for pid := range f.foreign {
		if reap(pid) {
			delete(f.foreign, pid) // the number may come back as an orphan
		}
	}
}
