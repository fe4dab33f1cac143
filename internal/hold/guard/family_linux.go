package guard

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// family lists the children of this process. The kernel keeps them by the thread that has them: a fork belongs to the
// thread that made it, while orphans are given to the process's first thread. So the threads that fork (the
// starter, the executor) are known, and the children of all others are orphans of ours.
type family struct {
	starter int          // the thread that forks leaders
	foreign map[int]bool // children from before: a shell's that replaced itself by us

	reaping sync.Mutex // held while pids are listed and used, where others may reap

	mu      sync.Mutex
	ignored map[int]bool // threads whose children are no orphans; an entry stays, since no orphan ever comes to them
}

// newFamily fails where the kernel does not list children (it needs CONFIG_PROC_CHILDREN).
func newFamily() (*family, error) {
	f := &family{foreign: map[int]bool{}, ignored: map[int]bool{}}
	before, err := f.orphans()
	if err != nil {
		return nil, fmt.Errorf("list own children: %w", err)
	}
	for _, pid := range before {
		f.foreign[pid] = true
	}
	return f, nil
}

// ignore takes a thread out of the picture. It is called on that thread, before its first fork.
func (f *family) ignore(tid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ignored[tid] = true
}

func (f *family) ignores(tid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ignored[tid]
}

// orphans lists the children that nobody here forked.
func (f *family) orphans() ([]int, error) {
	tids, err := listProc("/proc/self/task")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range tids {
		tid, err := strconv.Atoi(name)
		if err != nil || f.ignores(tid) { // a starter has a child a run, and they are not asked for here
			continue
		}
		own, err := childrenOf("self", name)
		if os.IsNotExist(err) && tid != unix.Getpid() {
			continue // the thread ended meanwhile
		}
		if err != nil {
			return nil, err
		}
		// Asked after the list was read: who is in it was forked after its thread said so.
		if !f.ignores(tid) {
			pids = append(pids, own...)
		}
	}
	return slices.DeleteFunc(pids, func(pid int) bool { return f.foreign[pid] }), nil
}

// stable lists the orphans twice. The kernel may leave a child out of a list when the one before it is reaped at
// that moment, which shows as a difference; two equal lists leave nothing out. Nor does an empty one: nobody is before
// whoever it might leave out.
func (f *family) stable() ([]int, bool) {
	first, err1 := f.orphans()
	if err1 == nil && len(first) == 0 && len(f.foreign) == 0 {
		return nil, true
	}
	second, err2 := f.orphans()
	return second, err1 == nil && err2 == nil && slices.Equal(first, second)
}

// unborn lists what the starter has forked and the table does not know yet: at most one, between fork and exec.
func (f *family) unborn(runs []*run) []int {
	own, err := childrenOf("self", strconv.Itoa(f.starter))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(own, func(pid int) bool {
		return f.foreign[pid] || slices.ContainsFunc(runs, func(r *run) bool { return r.pid == pid })
	})
}

// empty asks the kernel itself whether there is no child at all, dead or alive. Children from before cannot be told
// apart by it: with them the lists are the proof.
func (f *family) empty() bool {
	if len(f.foreign) > 0 {
		return true
	}
	var si unix.Siginfo
	err := ignoreEINTR(func() error {
		return unix.Waitid(unix.P_ALL, 0, &si, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	})
	return err == unix.ECHILD
}
