package supervise

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

var worlds = flag.Uint64("worlds", 5000, "how many seeds the simulation draws from")

// TestInvariantsInManyWorlds lives through many seeds and checks I1 to I6, the time of SIGKILL, and that
// the exit code never calls a tainted run good.
//
// Each rule was broken on purpose to see a test fail. I1: release at the child's exit, or on loss, or without
// a sweep (here). I2: stay held after a loss (here), do not look at the clock (TestMachine). I3: extend
// after loss, let deadlines rise after it, overlook the guard's own timer (TestMachine). I4: no line about a
// hold left behind, or a release claimed that was not confirmed (here). I5: go on after the end (here).
// SIGKILL not cut at the deadline, a stop that lengthens, an exit code that always counts (TestMachine).
func TestInvariantsInManyWorlds(t *testing.T) {
	t.Parallel()
	ends := map[hold.Result]int{}
	kept := 0
	for seed := range *worlds {
		w := newWorld(t, seed)
		w.live()
		w.judge()
		ends[w.finished.Status.Outcome]++
		if w.acquired && !w.finished.Released {
			kept++
		}
	}
	t.Logf("outcomes %v, left to the ttl %d", ends, kept)
	// A simulation that does not reach the corners proves nothing about them.
	for _, r := range []hold.Result{
		hold.ResultChildExit, hold.ResultChildSignal, hold.ResultLost, hold.ResultSignalled,
		hold.ResultNotStarted, hold.ResultNotAcquired, hold.ResultUnreachable, hold.ResultHookFailed,
	} {
		if ends[r] == 0 {
			t.Errorf("no world ended with %s", r)
		}
	}
	if kept == 0 {
		t.Error("no world left a hold to its ttl")
	}
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), cfg: testConfig}
	w.cfg.HookTimeout = time.Second
	if w.chance(30) {
		w.cfg.OnAcquire = "equip"
	}
	if w.chance(40) {
		w.cfg.OnLose, w.cfg.FenceOnLose = "clear", w.chance(50)
	}
	w.m = newMachine(w.cfg, 0)
	// The guard comes up, or not.
	if !w.chance(3) {
		w.after(w.between(1, 400), func() { w.say(guard.Event{Kind: guard.KindReady}) })
	}
	w.step(event{kind: evTick})
	won := w.between(1, 3000)
	for range w.rand.IntN(3) { // told in time, or late
		w.at(w.between(0, int(won/ms)+50), func() { w.hear(event{kind: evPlaced, testament: []byte("{}")}) })
	}
	w.at(won, w.acquire)
	w.operator()
	w.fault()
	return w
}

// acquire ends the wait for the hold, one way or the other.
func (w *world) acquire() {
	if w.acquireCancelled && w.chance(70) || w.chance(8) {
		w.hear(event{kind: evNotAcquired, err: hold.ErrNotAcquired})
		return
	}
	w.deadlines = until(w.now/ms+3500, w.now/ms+8500)
	w.hear(event{kind: evAcquired, info: testInfo, testament: []byte("{}"), deadlines: w.deadlines})
	w.at(w.deadlines.Term, w.loseIfSilent)
	w.after(w.between(500, 1500), w.renew)
	if w.chance(40) {
		w.after(w.between(1, 15000), w.lose)
	}
}

func (w *world) renew() {
	if w.lost || w.released || w.finished != nil || w.chance(3) {
		return // etcd falls silent for good
	}
	if !w.frozen { // a frozen wrapper renews nothing
		sent := w.now - w.between(1, 30)
		w.deadlines.Term = max(w.deadlines.Term, sent+3500*ms)
		w.deadlines.Kill = max(w.deadlines.Kill, sent+8500*ms)
		w.at(w.deadlines.Term, w.loseIfSilent)
		w.after(w.between(0, 3), func() {
			if !w.lost {
				w.hear(event{kind: evRenewed})
			}
		})
	}
	w.after(w.between(900, 1100), w.renew)
}

func (w *world) loseIfSilent() {
	if w.now >= w.deadlines.Term {
		w.lose()
	}
}

func (w *world) lose() {
	if w.lost || w.released || w.finished != nil {
		return
	}
	w.note("the hold is lost")
	w.lost = true
	w.after(w.between(0, 3), func() { w.hear(event{kind: evTick}) }) // hear tells of the loss
}

// operator asks it to leave, or sends up to three signals, at moments that include the awkward ones.
func (w *world) operator() {
	if w.chance(20) {
		w.at(w.between(0, 12000), func() {
			if w.acquired {
				w.evicted = cmp.Or(w.evicted, w.now)
				w.hear(event{kind: evEvicted, err: hold.ErrEvicted})
			}
		})
	}
	if !w.chance(35) {
		return
	}
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1}
	at := w.between(0, 12000)
	if w.chance(30) {
		at = w.between(0, 1500)
	}
	for range 1 + w.rand.IntN(3) {
		sig := signals[w.rand.IntN(len(signals))]
		w.at(at, func() { w.hear(event{kind: evSignal, signal: sig}) })
		at += w.between(0, 3000)
	}
}

// fault hits the wrapper or the guard, never both.
func (w *world) fault() {
	at := w.between(0, 15000)
	switch kind := w.rand.IntN(100); {
	case kind < 10:
		w.at(at, w.killGuard)
	case kind < 25:
		w.at(at, func() { w.freezeGuard(w.between(1, 20000)) })
	case kind < 40:
		w.at(at, func() { w.freezeWrapper(w.between(1, 20000)) })
	}
}

func (w *world) freezeGuard(d time.Duration) {
	w.note("the guard is frozen for %v", d)
	w.guardFrozen, w.hadFault = true, true
	w.after(d, func() {
		w.guardFrozen = false
		for _, ev := range w.unsaid {
			w.say(ev)
		}
		late := w.waiting
		w.waiting, w.unsaid = nil, nil
		for _, r := range late {
			w.serve(r)
		}
		w.guardWork()
	})
}

func (w *world) freezeWrapper(d time.Duration) {
	w.note("the wrapper is frozen for %v", d)
	w.frozen, w.hadFault = true, true
	w.after(d, func() {
		w.frozen = false
		w.hear(event{kind: evTick})
		late := w.unheard
		w.unheard = nil
		for _, ev := range late {
			w.hear(ev)
		}
	})
}

// judge looks at the end.
func (w *world) judge() {
	o := w.finished
	if o == nil {
		w.fail("I5: no outcome, phase %d", w.m.phase)
		return
	}
	if w.acquired && !o.Released && (!w.warned || o.Status.Reason == "") {
		w.fail("I4: neither released nor said why: %+v", o.Status)
	}
	if o.Released && !w.released {
		w.fail("I4: it claims a release that etcd did not confirm")
	}
	if w.alive() && !w.immortal {
		w.fail("something is left alive")
	}
	good := o.Status.Outcome == hold.ResultChildExit || o.Status.Outcome == hold.ResultChildSignal
	if good && (w.exitedAt >= w.deadlines.Term || w.lossHeard != 0 && w.exitedAt > w.lossHeard) {
		w.fail("lost at %v, the child ended at %v, and yet %s", w.lossHeard, w.exitedAt, o.Status.Outcome)
	}
	if o.Status.Outcome == hold.ResultEvicted && (w.evicted == 0 || o.Status.Code != hold.CodeLost) {
		w.fail("asked to leave at %v, and yet %+v", w.evicted, o.Status)
	}
	if good && w.m.evicted != nil {
		w.fail("the child was told to leave, and its end counts: %+v", o.Status)
	}
	if o.Status.Outcome == hold.ResultHookFailed && (o.Released || !w.cfg.FenceOnLose) {
		w.fail("on-lose failed: %+v", *o)
	}
	if good && o.Status.Code != w.exitCode {
		w.fail("code %d, want %d", o.Status.Code, w.exitCode)
	}
}
