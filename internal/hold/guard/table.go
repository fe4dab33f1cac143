package guard

import (
	"slices"
	"syscall"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// How long the table waits before it does something again.
const (
	sweepFirst = 2 * time.Millisecond   // between two rounds of SIGKILL, doubled up to sweepLast
	sweepLast  = 250 * time.Millisecond // a process in state D is not woken by more of them
	stuckFirst = time.Second            // from SIGKILL to the first KindStuck, doubled up to stuckLast
	stuckLast  = time.Minute            // and then once in this
	contEvery  = 250 * time.Millisecond // SIGCONT to a child that stops again and again
)

// Reasons that are given in more than one place. Each signal has its own: what was asked for is the reason for SIGTERM,
// and not for the SIGKILL that follows when the time for it has run out.
const (
	ReasonDeadline  = "the deadline passed"
	ReasonKillAfter = "kill-after" // it ran out

	tooLate  = "too late: " + ReasonDeadline
	leftOver = "left over after the exit"
)

// hands is everything that the table has done. Answers to fork and release come back as calls of
// forked and released; nothing here may block.
type hands interface {
	fork(*run)                   // start the run's Spec, unless it is late
	signal(*run, syscall.Signal) // to the run's process group
	terminate(*run)              // SIGTERM to everything left of a run whose leader has ended
	kill(*run)                   // one round of SIGKILL to everything of the run
	emit(Event)                  // tell the wrapper
	release(*will, bool)         // execute the release program; true: close the record only
}

// mode is what the wrapper's pipe says of the wrapper.
type mode int

const (
	serving  mode = iota
	leaving       // OpBye: end what runs, execute nothing
	orphaned      // the pipe ended without it: end what runs, then release
)

// table is what the guard knows: which run is in which state, and what is due when. It makes no system call and
// reads no clock; one goroutine uses it.
type table struct {
	hands hands
	mode  mode
	runs  []*run // not yet gone, in the order of their starts
	wills []*will
}

// handle does what the wrapper asked for. A request about a run that is gone, or never was, is late and
// means nothing.
func (t *table) handle(q Request, now hold.Instant) {
	r := t.find(q.Run)
	switch {
	case q.Op == OpStart:
		t.start(q, r != nil, now)
	case q.Op == OpBequeath:
		t.bequeath(q.Run, q.Testament)
	case q.Op == OpForget:
		t.forget(q.Run)
	case q.Op == OpBye:
		t.leave(leaving, "the wrapper is done", now)
	case r == nil:
	case q.Op == OpExtend:
		r.extend(q.Deadlines)
	case q.Op == OpStop:
		if q.KillAt == 0 {
			q.KillAt = now + r.killAfter
		}
		r.limit(q.KillAt, ReasonKillAfter)
		r.wantTerm(q.Reason)
	case q.Op == OpKill:
		r.limit(now, q.Reason)
	case q.Op == OpSignal && r.pid == 0:
		r.early = append(r.early, syscall.Signal(q.Signal))
	case q.Op == OpSignal:
		t.hands.signal(r, syscall.Signal(q.Signal))
	}
}

// lost is called when the pipe ended without OpBye.
func (t *table) lost(now hold.Instant) {
	if t.mode == serving {
		t.leave(orphaned, "the wrapper is gone", now)
	}
}

// leave kills everything at once and takes no more starts.
func (t *table) leave(m mode, why string, now hold.Instant) {
	t.mode = m
	for _, r := range t.runs {
		r.limit(now, why)
	}
	for _, w := range t.wills {
		w.at = now
	}
}

// done reports whether nothing is left to do.
func (t *table) done() bool {
	return t.mode != serving && len(t.runs) == 0 && (t.mode == leaving || len(t.wills) == 0)
}

func (t *table) start(q Request, taken bool, now hold.Instant) {
	if len(q.Testament) > 0 {
		t.bequeath(q.Run, q.Testament)
	}
	refuse := func(errno syscall.Errno, why string) {
		t.hands.emit(Event{Kind: KindRefused, Run: q.Run, Time: now, Code: int(errno), Reason: why})
	}
	switch {
	case t.mode != serving:
		refuse(0, "the guard is ending")
	case taken:
		refuse(syscall.EEXIST, "a run of this name is alive")
	case q.Spec == nil || len(q.Spec.Argv) == 0:
		refuse(syscall.EINVAL, "nothing to run")
	case passed(q.Deadlines.Term, now):
		// Judged again right before the fork, which is what counts.
		refuse(0, tooLate)
	default:
		// In the table, and so under its timers, before there is anything to end.
		r := &run{id: q.Run, spec: q.Spec, deadlines: q.Deadlines, killAfter: q.KillAfter}
		t.runs = append(t.runs, r)
		t.hands.fork(r)
	}
}

// refused is the answer to fork when nothing was started: errno of fork or exec, or 0 when it was too late.
func (t *table) refused(r *run, errno syscall.Errno, why string, now hold.Instant) {
	t.drop(r)
	t.hands.emit(Event{Kind: KindRefused, Run: r.id, Time: now, Code: int(errno), Reason: why})
}

// forked is the answer to fork when exec succeeded.
func (t *table) forked(r *run, pid int, now hold.Instant) {
	r.pid = pid
	// What became due meanwhile is done by the step that follows every event.
	r.sweepAt = now
	t.hands.emit(Event{Kind: KindStarted, Run: r.id, Time: now, Pid: pid})
	for _, sig := range r.early {
		t.hands.signal(r, sig)
	}
	r.early = nil
}

// stoppedBy is called when job control stopped the leader. A stop that somebody typed or sent is undone, because a
// stopped job must not hold anything; one for touching a terminal from the background would only come again.
func (t *table) stoppedBy(r *run, sig syscall.Signal, now hold.Instant) {
	switch sig {
	case syscall.SIGTSTP, syscall.SIGSTOP:
		r.stopped = sig
	case syscall.SIGTTIN, syscall.SIGTTOU:
		t.hands.emit(Event{Kind: KindStopped, Run: r.id, Time: now, Pid: r.pid, Signal: int(sig),
			Reason: "it uses the terminal from the background: not continued"})
	}
}

// ended is called once, when the leader is a zombie.
func (t *table) ended(r *run, code int, sig syscall.Signal, now hold.Instant) {
	r.exited, r.stopped = true, 0
	t.hands.emit(Event{Kind: KindExited, Run: r.id, Time: now, Pid: r.pid, Code: code, Signal: int(sig), Usage: r.usage})
}

// remains says what is left of a run whose leader has ended. Leftovers have had SIGTERM or get it now: the leader's end
// does not end the escalation. SIGKILL stays due when it was; after an exit of the leader's own accord it is KillAfter.
func (t *table) remains(r *run, pids []int, now hold.Instant) {
	r.left = pids
	if len(pids) == 0 || r.killed || r.cleared {
		return
	}
	r.cleared = true
	if due, _ := r.killDue(); !r.termed || due == 0 {
		r.limit(now+r.killAfter, ReasonKillAfter)
	}
	t.hands.terminate(r)
	t.termSent(r, leftOver, now)
}

// gone is called when it is proven that nothing of the run is left.
func (t *table) gone(r *run, now hold.Instant) {
	t.drop(r)
	t.hands.emit(Event{Kind: KindGone, Run: r.id, Time: now, Pid: r.pid})
	if r.overdue {
		t.watchFrozen(r.id, now)
	}
}

// woken makes the next sweep of every killed run due: something changed, so another round may find more.
func (t *table) woken(now hold.Instant) {
	for _, r := range t.runs {
		if r.killed {
			r.sweepAt, r.sweepGap = now, 0
		}
	}
}

// step does everything that is due.
func (t *table) step(now hold.Instant) {
	for _, r := range t.runs {
		t.stepTerm(r, now)
		t.stepKill(r, now)
		if r.stopped != 0 && now >= r.contAt {
			t.hands.signal(r, syscall.SIGCONT)
			t.hands.emit(Event{Kind: KindStopped, Run: r.id, Time: now, Pid: r.pid, Signal: int(r.stopped)})
			r.stopped, r.contAt = 0, now+contEvery
		}
	}
	t.stepWills(now)
}

// stepTerm: the first deadline, or a wish, and then SIGTERM as soon as there is somebody to send it to.
func (t *table) stepTerm(r *run, now hold.Instant) {
	if !r.overdue && (passed(r.deadlines.Term, now) || passed(r.deadlines.Kill, now)) {
		r.overdue = true
		r.wantTerm(ReasonDeadline)
	}
	if r.term != "" && !r.termed && r.pid != 0 && !r.exited {
		// A stopped process gets it only when it is continued.
		t.hands.signal(r, syscall.SIGTERM)
		t.hands.signal(r, syscall.SIGCONT)
		t.termSent(r, r.term, now)
	}
}

// stepKill: the second deadline, and then round after round until the run is proven gone.
func (t *table) stepKill(r *run, now hold.Instant) {
	at, why := r.killDue()
	first := !r.killed && passed(at, now)
	if first {
		r.killed = true
		r.sweepAt, r.stuckAt, r.stuckGap = now, now+stuckFirst, stuckFirst
	}
	if !r.killed {
		return
	}
	if now >= r.sweepAt {
		t.hands.kill(r)
		r.sweepGap = min(max(2*r.sweepGap, sweepFirst), sweepLast)
		r.sweepAt = now + r.sweepGap
	}
	if first {
		t.hands.emit(Event{Kind: KindKillSent, Run: r.id, Time: now, Pid: r.pid, Signal: int(syscall.SIGKILL), Reason: why})
	}
	if now >= r.stuckAt {
		t.hands.emit(Event{Kind: KindStuck, Run: r.id, Time: now, Pid: r.pid, Pids: r.visible()})
		r.stuckGap = min(2*r.stuckGap, stuckLast)
		r.stuckAt = now + r.stuckGap
	}
}

// next is the earliest moment at which step has something to do; 0 for never.
func (t *table) next() hold.Instant {
	at := t.nextWill()
	for _, r := range t.runs {
		if !r.overdue {
			at = earlier(earlier(at, r.deadlines.Term), r.deadlines.Kill)
		}
		if r.killed {
			at = earlier(earlier(at, r.sweepAt), r.stuckAt)
		} else {
			due, _ := r.killDue()
			at = earlier(at, due)
		}
		if r.stopped != 0 {
			at = earlier(at, r.contAt)
		}
	}
	return at
}

func (t *table) termSent(r *run, why string, now hold.Instant) {
	if !r.termed {
		r.termed = true
		t.hands.emit(Event{Kind: KindTermSent, Run: r.id, Time: now, Pid: r.pid, Signal: int(syscall.SIGTERM), Reason: why})
	}
}

func (t *table) find(id string) *run {
	for _, r := range t.runs {
		if r.id == id {
			return r
		}
	}
	return nil
}

// drop makes a new slice: step may be ranging over the old one.
func (t *table) drop(gone *run) {
	t.runs = slices.DeleteFunc(slices.Clone(t.runs), func(r *run) bool { return r == gone })
}
