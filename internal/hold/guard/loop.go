package guard

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

const (
	hearAtOnce  = 64                     // requests, before the clock is looked at again
	flushWithin = time.Second            // for the last events, when the wrapper does not read them
	lookFirst   = 2 * time.Millisecond   // after a look that proved nothing, doubled up to lookLast
	lookEvery   = 20 * time.Millisecond  // at everything, where ends follow each other
	lookLast    = 250 * time.Millisecond // and never given up: the proof is what everybody waits for
)

// config is what one guard works with, in a process of its own or in the wrapper's.
type config struct {
	requests *os.File    // the wrapper's pipe; its end is the wrapper's end
	events   *os.File    // to the wrapper
	stdio    [3]*os.File // what children get
	kept     *os.File    // what they get beside it; nil for nothing
	program  *os.File    // the release program; nil where there is none
	settings *os.File    // what it gets as its descriptor 3
	wrapper  int         // process group of the wrapper, for the terminal's foreground
	clock    func() hold.Instant
	quit     <-chan struct{} // closed: end at once and leave everything as it is
	kin      sweeper         // what the wrapper sweeps by when the loop runs in its process
}

// loop brings the table its events and does what it decides. One goroutine runs it.
type loop struct {
	config
	table  table
	kernel *kernel
	out    *outbox
	alarm  *alarm

	looked  hold.Instant  // when everything was looked at last
	lookAt  hold.Instant  // that was put off, or was not conclusive: look again then; 0 for no need
	lookGap time.Duration // from the look before to that one
	starts  []*run        // forks that wait for the one under way
	forks   chan forkResult
	frees   chan freeResult
}

// job is what a start needs: a copy, because the loop goes on meanwhile.
type job struct {
	id   string
	spec *Spec
	term hold.Instant
}

func jobOf(r *run) job { return job{r.id, r.spec, r.deadlines.Term} }

// freeResult is the end of one execution of the release program.
type freeResult struct {
	will    *will
	closing bool
	ok      bool
}

// serve is the whole life of a guard. It returns when the wrapper is done or gone, everything it was asked to run
// is gone, and the testaments have been executed.
func serve(c config) error {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)

	in, eof := listen(c.requests)
	defer in.stop()
	l := &loop{config: c, forks: make(chan forkResult, 1), frees: make(chan freeResult, releaseLimit)}
	l.table.hands = l
	var err error
	if l.alarm, err = newAlarm(c.clock); err != nil {
		return err
	}
	defer l.alarm.close()
	if l.kernel, err = newKernel(c, eof, l.forks); err != nil {
		return err
	}
	defer l.kernel.close()
	l.out = newOutbox(c.events)
	defer l.out.close(flushWithin)

	l.emit(Event{Kind: KindReady, Time: c.clock(), Pid: os.Getpid()})
	l.run(in.requests, children)
	return nil
}

// run is the loop: wait for something to happen, hear all of it, look at the processes, do what is due.
func (l *loop) run(in <-chan Request, children <-chan os.Signal) {
	for !l.table.done() {
		l.alarm.set(earlier(l.table.next(), l.lookAt))
		see := leaders
		select {
		case q, ok := <-in:
			see = nothing
			if !l.hear(in, q, ok) {
				in = nil
			}
		case f := <-l.forks:
			l.forked(f)
			// The starter has no need to wait until all has been looked at.
			l.nextFork()
			see = l.soon(leaders)
		case f := <-l.frees:
			l.table.released(f.will, f.closing, f.ok, l.clock())
		case <-children:
			l.table.woken(l.clock())
			see = l.soon(everything)
		case <-l.alarm.rang:
			see = everything
		case <-l.quit:
			return
		}
		if see != nothing {
			l.look(see)
		}
		l.table.step(l.clock())
		l.nextFork()
	}
}

// hear takes a request and those that already lie behind it: what was said before the clock is read counts, a renewal
// too. It returns false at the end of the pipe. A wrapper that talks without end is interrupted: deadlines come first.
func (l *loop) hear(in <-chan Request, q Request, ok bool) bool {
	for heard := 1; ok; heard++ {
		l.table.handle(q, l.clock())
		if heard == hearAtOnce {
			return true
		}
		select {
		case q, ok = <-in:
		default:
			return true
		}
	}
	l.table.lost(l.clock())
	return false
}

// view is how much of the processes is looked at.
type view int

const (
	nothing    view = iota
	leaders         // and everything, where one has ended
	everything      // what no leader is, too: some of it may have ended, and waits to be reaped
)

// soon puts off a look that would follow the last one at once: of several runs one look sees many ends, and costs as much as
// for one. While something is being killed every look is worth it.
func (l *loop) soon(see view) view {
	next := l.looked + lookEvery
	killing := func(r *run) bool { return r.killed }
	if len(l.table.runs) < 2 || l.looked == 0 || l.clock() >= next || slices.ContainsFunc(l.table.runs, killing) {
		return see
	}
	l.lookAt = earlier(l.lookAt, next)
	return nothing
}

// look compares the table with the processes.
func (l *loop) look(see view) {
	for _, r := range l.kernel.stirred(l.table.runs) {
		if r.pid == 0 || r.exited {
			continue
		}
		change := l.kernel.poll(r)
		if change.stopped != 0 {
			l.table.stoppedBy(r, change.stopped, l.clock())
		}
		if change.ended {
			r.usage = change.usage
			l.table.ended(r, change.code, change.signal, l.clock())
		}
	}
	if see == leaders && !slices.ContainsFunc(l.table.runs, func(r *run) bool { return r.exited }) {
		return
	}
	// The leaders first, then one picture of everything else: what a leader left behind was ours before it was a zombie.
	left, proven := l.kernel.left(l.table.runs)
	l.looked, l.lookAt = l.clock(), 0
	open := false
	for _, r := range l.table.runs {
		switch {
		case !r.exited:
			r.left = left[r]
		case len(left[r]) > 0:
			l.table.remains(r, left[r], l.clock())
			open = open || leftIsSilent
		case proven && l.kernel.bury(r, l.expected(r)):
			l.table.gone(r, l.clock())
		default:
			open = true
		}
	}
	// Nothing left to see, and yet no proof.
	if !open {
		l.lookGap = 0
		return
	}
	l.lookGap = min(max(2*l.lookGap, lookFirst), lookLast)
	l.lookAt = l.clock() + l.lookGap
}

// expected reports whether there may be children that have nothing to do with a run.
func (l *loop) expected(r *run) bool {
	return l.table.active() > 0 || slices.ContainsFunc(l.table.runs, func(o *run) bool { return o != r && !o.reaped })
}

// fork queues a start: one at a time, because exec may take long and deadlines may not.
func (l *loop) fork(r *run) {
	l.starts = append(l.starts, r)
}

// nextFork hands the next start to the kernel, unless one is under way. Who was killed in the queue leaves it at once.
func (l *loop) nextFork() {
	l.starts = slices.DeleteFunc(l.starts, func(r *run) bool {
		if r.killed {
			l.table.refused(r, 0, "it was ended before it was started", l.clock())
		}
		return r.killed
	})
	if len(l.starts) > 0 && l.kernel.forking == nil {
		l.kernel.fork(l.starts[0])
		l.starts = l.starts[1:]
	}
}

func (l *loop) forked(f forkResult) {
	r := l.kernel.forked()
	if f.pid != 0 {
		l.table.forked(r, f.pid, l.clock())
		l.kernel.watch(r)
	} else {
		l.table.refused(r, f.errno, f.why, l.clock())
	}
}

func (l *loop) signal(r *run, sig syscall.Signal) { l.kernel.signal(r, sig) }
func (l *loop) terminate(r *run)                  { l.kernel.terminate(r, l.table.runs) }
func (l *loop) kill(r *run)                       { l.kernel.kill(r, l.table.runs) }

// emit tells the wrapper. That it no longer listens is learned from the other pipe.
func (l *loop) emit(e Event) { _ = l.out.put(e) }

// release executes the release program beside the loop. Without one the testament counts as executed.
func (l *loop) release(w *will, closing bool) {
	if l.program == nil {
		l.frees <- freeResult{w, closing, true}
		return
	}
	l.kernel.execute(w.testament, closing, func(ok bool) { l.frees <- freeResult{w, closing, ok} })
}
