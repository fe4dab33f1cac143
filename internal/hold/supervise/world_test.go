package supervise

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// A world is a model of everything around the machine: a clock, a hold that is renewed and lost, a guard
// behind two slow pipes with a tree of processes below it, an operator who sends signals, and one fault of
// wrapper or guard at most, as the guarantee demands. Everything that happens is drawn from one seed. It
// knows what is really alive, and checks every action of the machine against that.
type world struct {
	t    *testing.T
	seed uint64
	rand *rand.Rand
	cfg  Config
	m    *machine
	tale []string

	now   hold.Instant
	queue []due
	order int

	// The hold.
	deadlines        hold.Deadlines
	acquired, lost   bool
	acquireCancelled bool
	evicted          hold.Instant // when an operator first asked it to leave; 0: never
	lossHeard        hold.Instant // when the machine was told, or could have known by the clock; 0: never
	released         bool

	// The guard and its tree.
	toGuard, toWrapper hold.Instant // nothing overtakes in a pipe
	guardDead          bool
	guardFrozen        bool
	waiting            []guard.Request // what a frozen guard has not read
	unsaid             []guard.Event   // what it has not said
	startsAhead        int             // starts that were sent and not judged
	run                string
	wills              []string // what it would execute if the wrapper died
	known              hold.Deadlines
	leader, leftovers  bool
	stubborn           bool // ignores SIGTERM
	immortal           bool // outlives SIGKILL
	killAt, killAfter  hold.Instant
	overdue, termed    bool
	killed, gone       bool
	exitedAt           hold.Instant // the child
	exitCode           int
	part               part
	good               bool // the part that ran last ended well, by itself
	ranAnything        bool // a hook or the child
	equipped, cleared  bool // on-acquire, on-lose came to a good end

	// The wrapper.
	frozen   bool
	unheard  []event
	hadFault bool // wrapper or guard was frozen or killed

	warned   bool
	finished *Outcome
}

type due struct {
	at    hold.Instant
	order int
	do    func()
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.tale[max(0, len(w.tale)-60):] {
		w.t.Log(line)
	}
	w.t.Fatalf("seed %d at %v: %s", w.seed, w.now, fmt.Sprintf(format, args...))
}

func (w *world) note(format string, args ...any) {
	w.tale = append(w.tale, fmt.Sprintf("%10v ", w.now)+fmt.Sprintf(format, args...))
}

func (w *world) chance(percent int) bool { return w.rand.IntN(100) < percent }

// between draws a time in milliseconds.
func (w *world) between(low, high int) hold.Instant {
	return time.Duration(low+w.rand.IntN(high-low+1)) * ms
}

func (w *world) at(at hold.Instant, do func()) {
	w.order++
	w.queue = append(w.queue, due{max(at, w.now), w.order, do})
}

func (w *world) after(d time.Duration, do func()) { w.at(w.now+d, do) }

// live runs until nothing is left to happen.
func (w *world) live() {
	for steps := 0; len(w.queue) > 0; steps++ {
		if steps > 20000 {
			w.fail("it does not end")
		}
		first := 0
		for i, d := range w.queue {
			if d.at < w.queue[first].at || d.at == w.queue[first].at && d.order < w.queue[first].order {
				first = i
			}
		}
		next := w.queue[first]
		w.queue = append(w.queue[:first], w.queue[first+1:]...)
		w.now = next.at
		next.do()
	}
}

// hear gives an event to the machine, as the driver would: loss first, then the event, then the actions.
func (w *world) hear(ev event) {
	if w.frozen {
		w.unheard = append(w.unheard, ev)
		return
	}
	switch {
	case ev.kind == evAcquired:
		w.acquired = true
		if w.lost {
			ev.err = hold.ErrLost
		}
	case w.acquired && w.lost:
		w.step(event{kind: evLost, err: hold.ErrLost})
	}
	w.step(ev)
}

func (w *world) step(ev event) {
	ev.at = w.now
	if w.acquired {
		ev.deadlines = w.deadlines
		if w.lossHeard == 0 && (ev.kind == evLost || ev.kind == evAcquired && ev.err != nil || w.now >= w.deadlines.Term) {
			w.lossHeard = w.now
		}
	}
	w.note("event %d %s %s %v", ev.kind, ev.guard.Kind, ev.guard.Run, ev.err)
	actions := w.m.step(ev)
	for _, a := range actions {
		if a.kind != actLog {
			w.note("    %s", tellOne(a))
		}
		w.act(a)
	}
	if w.finished == nil {
		if at := w.m.wake(); at != 0 {
			w.at(at, func() {
				if !w.frozen && w.finished == nil && w.m.wake() != 0 && w.m.wake() <= w.now {
					w.hear(event{kind: evTick})
				}
			})
		}
	}
}

// act does what the machine asks for, and checks that it may ask for it.
func (w *world) act(a action) {
	if w.finished != nil {
		w.fail("I5: %s after the end", tellOne(a))
	}
	switch a.kind {
	case actLog:
		w.warned = w.warned || a.line.level >= slog.LevelWarn
	case actSend:
		w.request(a.request)
	case actCancelAcquire:
		w.acquireCancelled = true
	case actRelease:
		w.release()
	case actKillGuard:
		w.killGuard()
	case actSweep:
		w.after(w.between(1, 60), w.sweep)
	case actFinish:
		w.finished = &a.outcome
	}
}

func (w *world) alive() bool { return w.leader || w.leftovers }

func (w *world) release() {
	// I1 is about what is alive, not about what the machine believes; a start that is still on its way to
	// a guard that could do it is as bad.
	if w.alive() || w.startsAhead > 0 && !w.guardDead {
		w.fail("I1: released with leader %v, leftovers %v, starts %d", w.leader, w.leftovers, w.startsAhead)
	}
	if w.cfg.FenceOnLose && w.ranAnything && !w.cleared {
		w.fail("I6: released although on-lose did not succeed")
	}
	ok := w.chance(80)
	w.after(w.between(1, 40), func() {
		w.released = w.released || ok
		if ok {
			w.hear(event{kind: evReleased})
		} else {
			w.hear(event{kind: evReleased, err: errEtcd})
		}
	})
}

// request is the pipe to the guard.
func (w *world) request(r guard.Request) {
	switch {
	case r.Op == guard.OpBequeath && w.cfg.FenceOnLose && w.acquired:
		w.fail("I6: a guard whose wrapper dies would release without on-lose")
	case r.Op == guard.OpStart && partOf(r.Run) != onLose && w.lossHeard != 0:
		w.fail("I2: a start after loss")
	case r.Op == guard.OpStart && w.alive():
		w.fail("a start beside what is alive")
	case r.Op == guard.OpStart && partOf(r.Run) == theChild && w.cfg.OnAcquire != "" && !w.equipped:
		w.fail("the child before on-acquire has succeeded")
	case r.Op == guard.OpExtend && w.lossHeard != 0:
		w.fail("I3: an extension after loss")
	case r.Op == guard.OpStart:
		w.startsAhead++
	}
	w.toGuard = max(w.toGuard, w.now+w.between(0, 5))
	w.at(w.toGuard, func() {
		if w.guardFrozen {
			w.waiting = append(w.waiting, r)
		} else {
			w.serve(r)
		}
	})
}

// serve is the guard's part, by the protocol.
func (w *world) serve(r guard.Request) {
	if w.guardDead {
		return
	}
	switch r.Op {
	case guard.OpStart:
		w.startsAhead--
		w.start(r)
		return
	case guard.OpBequeath:
		w.wills = append(w.wills, r.Run)
	case guard.OpForget:
		w.wills = slices.DeleteFunc(w.wills, func(run string) bool { return run == r.Run })
	}
	if r.Run != w.run || w.run == "" || w.gone {
		return
	}
	switch r.Op {
	case guard.OpExtend:
		if !w.overdue {
			w.known.Term, w.known.Kill = max(w.known.Term, r.Deadlines.Term), max(w.known.Kill, r.Deadlines.Kill)
			w.wakeGuard(w.known.Term)
		}
	case guard.OpStop:
		w.limit(r.KillAt)
		w.term("asked")
	case guard.OpKill:
		w.limit(w.now)
	}
	w.guardWork()
}

func (w *world) start(r guard.Request) {
	if will, _, _ := strings.Cut(r.Run, "/"); len(w.wills) > 1 || len(w.wills) == 1 && w.wills[0] != will {
		w.fail("a start of %s beside the testaments %v: one that does not cover it is executed beside it", r.Run, w.wills)
	}
	if len(w.wills) > 0 && w.cfg.FenceOnLose {
		w.fail("I6: a start although the guard has the testaments %v", w.wills)
	}
	w.run, w.gone, w.part = r.Run, false, partOf(r.Run)
	w.killAt, w.overdue, w.termed, w.killed = 0, false, false, false
	w.known, w.killAfter = r.Deadlines, r.KillAfter
	switch {
	case w.now >= r.Deadlines.Term:
		w.say(guard.Event{Kind: guard.KindRefused})
		return
	case w.chance(5): // the guard gets to it late, and finds it too late
		w.startsAhead++
		w.run = ""
		w.after(w.between(0, 3000), func() {
			w.startsAhead--
			w.say(guard.Event{Kind: guard.KindRefused, Run: r.Run})
		})
		return
	case w.chance(3):
		w.say(guard.Event{Kind: guard.KindRefused, Code: int(syscall.EACCES)})
		return
	case w.released:
		w.fail("I1: a start after the release")
	}
	w.leader, w.leftovers = true, w.chance(40)
	w.ranAnything, w.good = true, false
	w.stubborn, w.immortal = w.chance(40), w.chance(3)
	w.say(guard.Event{Kind: guard.KindStarted, Pid: 42})
	w.wakeGuard(w.known.Term)
	run, lasts, code := r.Run, w.between(1, 20000), w.rand.IntN(100)
	if w.part != theChild {
		lasts, code = w.between(1, 1500), max(0, code-70)
	}
	w.after(lasts, func() {
		if w.run == run {
			w.exit(code, 0)
		}
	})
}

// partOf is what a run id says.
func partOf(run string) part {
	switch {
	case strings.HasSuffix(run, "/on-acquire"):
		return onAcquire
	case strings.HasSuffix(run, "/on-lose"):
		return onLose
	}
	return theChild
}

// wakeGuard is the guard's timer.
func (w *world) wakeGuard(at hold.Instant) { w.at(at, w.guardWork) }

func (w *world) guardWork() {
	if w.guardDead || w.guardFrozen || !w.alive() {
		return
	}
	if !w.overdue && w.now >= w.known.Term {
		w.overdue = true
		w.limit(w.known.Kill)
		w.term("deadline")
	}
	if !w.killed && (w.killAt != 0 && w.now >= w.killAt || w.now >= w.known.Kill) {
		w.kill()
	}
}

func (w *world) limit(at hold.Instant) {
	if w.killAt == 0 || at < w.killAt {
		w.killAt = at
		w.wakeGuard(at)
	}
}

func (w *world) term(why string) {
	if w.termed || !w.alive() {
		return
	}
	w.termed = true
	w.say(guard.Event{Kind: guard.KindTermSent, Reason: why})
	if !w.stubborn {
		run := w.run
		w.after(w.between(1, 3000), func() {
			if w.run != run {
				return
			}
			w.leftovers = w.leftovers && !w.leader // a leader that ends well takes the rest with it
			w.exit(0, 15)
			w.ended()
		})
	}
}

func (w *world) kill() {
	w.killed = true
	w.say(guard.Event{Kind: guard.KindKillSent})
	if w.immortal {
		w.after(time.Second, w.stuck)
		return
	}
	run := w.run
	w.after(w.between(0, 30), func() {
		if w.run == run {
			w.leftovers = false
			w.exit(0, 9)
			w.ended()
		}
	})
}

func (w *world) stuck() {
	if w.alive() && !w.guardDead && w.finished == nil {
		w.say(guard.Event{Kind: guard.KindStuck})
		w.after(2*time.Second, w.stuck)
	}
}

// exit ends the leader.
func (w *world) exit(code, signal int) {
	if !w.leader || w.immortal && w.killed {
		return
	}
	w.leader, w.good = false, code == 0 && signal == 0 && !w.termed
	if w.part == theChild {
		w.exitedAt, w.exitCode = w.now, code
		if signal != 0 {
			w.exitCode = 128 + signal
		}
	}
	w.note("the leader ends")
	w.say(guard.Event{Kind: guard.KindExited, Code: code, Signal: signal})
	if w.leftovers && !w.killed {
		w.limit(w.now + w.killAfter)
	}
	w.ended()
}

// ended tells when nothing is left.
func (w *world) ended() {
	if w.alive() || w.gone {
		return
	}
	w.checkInTime()
	w.gone = true
	switch w.part {
	case onAcquire:
		w.equipped = w.good
	case onLose:
		w.cleared = w.good
	}
	w.say(guard.Event{Kind: guard.KindGone})
}

// say is the pipe from the guard. A guard that is frozen says it later.
func (w *world) say(ev guard.Event) {
	if w.guardDead {
		return
	}
	if ev.Run == "" {
		ev.Run = w.run
	}
	if w.guardFrozen {
		w.unsaid = append(w.unsaid, ev)
		return
	}
	ev.Time = w.now
	w.toWrapper = max(w.toWrapper, w.now+w.between(0, 5))
	w.at(w.toWrapper, func() { w.hear(event{kind: evGuard, guard: ev}) })
}

// killGuard: the direct child dies with its parent, the rest is left over.
func (w *world) killGuard() {
	if w.guardDead {
		return
	}
	w.note("the guard is killed")
	w.hadFault, w.guardDead = true, true
	if w.leader && !w.immortal {
		w.leader = false
		if w.part == theChild {
			w.exitedAt = w.now
		}
		if !w.leftovers {
			w.checkInTime()
		}
	}
	w.at(max(w.toWrapper, w.now+w.between(0, 5)), func() { w.hear(event{kind: evGuard, guard: guard.Event{Kind: guard.KindLost}}) })
}

func (w *world) sweep() {
	if w.immortal && w.alive() {
		w.hear(event{kind: evSwept, err: errEtcd})
		return
	}
	if w.alive() {
		w.leader, w.leftovers = false, false
		w.checkInTime()
	}
	w.cleared = w.cleared || w.part == onLose && w.good
	w.hear(event{kind: evSwept})
}

// checkInTime is called when the last process has ended. Nothing outlives the deadline by more than the
// margin; and where wrapper and guard are well, SIGKILL comes at the earlier of kill-after and the deadline.
func (w *world) checkInTime() {
	if w.immortal {
		return
	}
	const pipes = 50 * ms
	if w.part == onLose {
		if w.now > w.known.Kill+answerWithin+hearWithin+pipes && !w.hadFault {
			w.fail("on-lose ended at %v, its time at %v", w.now, w.known.Kill)
		}
		return
	}
	if limit := w.deadlines.Kill + testConfig.Margin; w.now > limit {
		w.fail("the last process ended at %v, the margin ends at %v", w.now, limit)
	}
	if w.lossHeard == 0 || w.hadFault {
		return
	}
	if limit := min(w.lossHeard+testConfig.KillAfter, w.deadlines.Kill) + pipes; w.now > limit {
		w.fail("lost at %v, the last process ended at %v, later than %v", w.lossHeard, w.now, limit)
	}
}
