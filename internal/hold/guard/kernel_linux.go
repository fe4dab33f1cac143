package guard

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord/internal/hold"
)

// kernel is the loop's hand in the system: it forks, waits and signals.
//
// Two rules make every number it signals the right one. Only its loop reaps (but for a failed exec, see
// family.stable), so an own child that was not reaped keeps its pid, and a kept leader its group's. And what is no own child is
// signalled through a pidfd only, after its parent was checked (see sweep_linux.go).
type kernel struct {
	config
	family *family
	tag    string // names this guard in CONCH_RUN

	exits   exits
	jobs    chan job
	forking *run // handed to the starter, not yet answered
	owners  map[int][]*run
	doubts  map[int]hold.Instant // orphans whose owners cannot be told yet, and since when
}

func newKernel(c config, eof <-chan struct{}, results chan<- forkResult) (*kernel, error) {
	if err := adopt(); err != nil {
		return nil, err
	}
	f, err := newFamily()
	if err != nil {
		return nil, err
	}
	k := &kernel{
		config: c,
		family: f,
		exits:  newExits(),
		tag:    strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(int64(c.clock()), 36),
		jobs:   make(chan job, 1),
		owners: map[int][]*run{},
		doubts: map[int]hold.Instant{},
	}
	ready := make(chan struct{})
	onOwnThread(func() {
		k.family.starter = unix.Gettid()
		k.family.ignore(unix.Gettid())
		close(ready)
		// The parent-death signal is about this thread: it lives as long as the guard.
		for j := range k.jobs {
			results <- k.start(j, eof)
		}
	})
	<-ready
	return k, nil
}

// adopt makes this process the parent of whatever descends from it and loses its own.
func adopt() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// close ends the starter's thread, and with it what still has its parent-death signal.
func (k *kernel) close() {
	close(k.jobs)
	k.exits.close()
}

// watch is told of each new leader, and stirred lists those that it may be worth to poll.
func (k *kernel) watch(r *run)               { k.exits.watch(r) }
func (k *kernel) stirred(runs []*run) []*run { return k.exits.stirred(runs) }

// setup is what a start has here: a mark to know its descendants by, and an end when this guard ends.
func (k *kernel) setup(j job) (env []string, sys *syscall.SysProcAttr) {
	return withRun(j.spec.Env, k.tag+"."+j.id), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// poll looks at a leader without reaping it.
func (k *kernel) poll(r *run) change {
	var c change
	if code, status := waitid(unix.P_PID, r.pid, unix.WSTOPPED, nil); code == cldStopped {
		c.stopped = syscall.Signal(status)
	}
	var used unix.Rusage
	switch code, status := waitid(unix.P_PID, r.pid, unix.WEXITED|unix.WNOWAIT, &used); code {
	case cldExited:
		c.ended, c.code, c.usage = true, status, usageOf(&used)
	case cldKilled, cldDumped:
		c.ended, c.signal, c.usage = true, syscall.Signal(status), usageOf(&used)
	}
	if c.ended {
		k.exits.unwatch(r)
	}
	return c
}

// The values of si_code for SIGCHLD.
const (
	cldExited  = 1
	cldKilled  = 2
	cldDumped  = 3
	cldStopped = 5
)

// waitid asks about one child, or any, and does not wait: si_code (0 for nothing to tell), si_status, and what it used.
func waitid(idType, pid, options int, used *unix.Rusage) (code, status int) {
	var si unix.Siginfo
	err := ignoreEINTR(func() error { return unix.Waitid(idType, pid, &si, options|unix.WNOHANG, used) })
	if err != nil || si.Signo == 0 {
		return 0, 0
	}
	// si_pid, si_uid and si_status follow the first three words, aligned as a pointer is.
	const word = unsafe.Sizeof(uintptr(0))
	const fields = (3*4 + word - 1) &^ (word - 1)
	return int(si.Code), int(*(*int32)(unsafe.Add(unsafe.Pointer(&si), fields+8)))
}

// signal goes to the run's process group, while the kept leader pins its number.
func (k *kernel) signal(r *run, sig syscall.Signal) {
	if r.pid != 0 && !r.reaped {
		_ = unix.Kill(-r.pid, sig)
	}
}

// terminate sends SIGTERM to everything left of a run, also to what has left its group.
func (k *kernel) terminate(r *run, runs []*run) {
	k.signal(r, unix.SIGTERM)
	k.signal(r, unix.SIGCONT)
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGCONT} {
		w := walk{sig: sig, budget: walkBudget}
		for _, pid := range k.orphans(r, runs) {
			w.tree(pid)
		}
	}
}

// kill is one round of SIGKILL to everything of a run. The group goes first, atomically; then every
// orphan, each with what descends from it, so that no generation costs a round of its own.
func (k *kernel) kill(r *run, runs []*run) {
	w := walk{sig: unix.SIGKILL, budget: walkBudget}
	switch {
	case r == k.forking:
		w.unborn(k.family.unborn(runs))
	case r.pid != 0 && !r.reaped:
		k.signal(r, unix.SIGKILL)
		w.tree(r.pid)
	}
	for _, pid := range k.orphans(r, runs) {
		w.tree(pid)
	}
}

// left is a picture of what is left of each run apart from its leader. Zombies are reaped on the way; a picture
// in which one was seen is taken again, because what hung below it has come to us since. proven is false when the picture
// would not hold still, or shows somebody in doubt: then nothing may be concluded from what is missing in it.
func (k *kernel) left(runs []*run) (left map[*run][]int, proven bool) {
	for range 8 {
		orphans, stable := k.family.stable()
		reaped := false
		for _, pid := range orphans {
			if reap(pid) {
				k.forget(pid)
				reaped = true
			}
		}
		if reaped {
			continue
		}
		left, proven = map[*run][]int{}, stable
		for _, pid := range orphans {
			owners := k.ownersOf(pid, runs)
			for _, r := range owners {
				left[r] = append(left[r], pid)
			}
			proven = proven && len(owners) > 0
		}
		k.forgetOthers(orphans)
		return left, proven
	}
	// A crowd that dies as fast as it is reaped: the next wake-up goes on, timers come first.
	left = map[*run][]int{}
	return left, false
}

// bury reaps the leader of a run of which nothing else is left. Where there is no other child to be expected it also
// wants the kernel's word, ECHILD.
func (k *kernel) bury(r *run, others bool) bool {
	if !r.reaped {
		r.reaped = reap(r.pid)
	}
	return r.reaped && (others || k.family.empty())
}

// reap takes an ended child away.
func reap(pid int) bool {
	var got int
	err := ignoreEINTR(func() (err error) {
		got, err = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return err
	})
	return err == nil && got == pid
}

// onOwnThread runs f on a thread that runs nothing else and is not the main one, which gets the orphans. The
// thread ends with f.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		// The main thread stays occupied until another one is found.
		found := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(found)
			f()
		}()
		<-found
		runtime.UnlockOSThread()
	}()
}

func ignoreEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
