package supervise

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

const (
	// readyWithin is how long a guard may take to say that it is up.
	readyWithin = 10 * time.Second
	// answerWithin is how long after the moment of SIGKILL a guard may be silent while the hold is kept.
	answerWithin = 2 * time.Second
	// hearWithin is how long this process listens once more before it calls a guard frozen: it may have been
	// frozen itself, with the guard's last words waiting to be read.
	hearWithin = 100 * time.Millisecond
	// stuckFor is how long something may outlive its SIGKILL, as the guard reports it, while the hold is
	// kept. Large processes take seconds to die; longer than this, waiting helps nobody.
	stuckFor = 5 * time.Second
	// leaveWithin is how long a signal waits for what is being cleaned up in etcd.
	leaveWithin = time.Second
	// retryFirst and retryMost are the pauses between attempts to release.
	retryFirst = 100 * time.Millisecond
	retryMost  = time.Second
)

// Causes of loss that only the loop can know.
var (
	errSilent  = fmt.Errorf("%w: no verified renewal before the deadline", hold.ErrLost)
	errTimer   = fmt.Errorf("%w: the guard's own deadline passed", hold.ErrLost)
	errNoGuard = fmt.Errorf("%w: the guard is gone", hold.ErrLost)
	errFrozen  = errors.New("the guard did not answer")
	errStuck   = errors.New("something of the child cannot be killed")
	errUnknown = errors.New("the guard did not say how the child ended")
	errUnclean = errors.New("on-lose did not succeed")
)

type phase int

const (
	waiting   phase = iota // the hold is being acquired
	held                   // held, and nothing was started
	starting               // OpStart is on its way
	running                // it started; it stays so until nothing of it is left
	clearing               // nothing of the child is left: on-lose runs
	sweeping               // no guard any more: this process ends what is left
	releasing              // nothing is left: the hold is being given up
	done
)

// machine decides. All its state changes in step, and it has no other way to learn anything, the time
// included. wake says when it wants to be asked again though nothing happened.
type machine struct {
	cfg   Config // NowFunc and Logger are not used
	env   []string
	phase phase
	out   []action

	now, began, last hold.Instant // this event, the first one, the last transition
	giveUpAt         hold.Instant // waiting, releasing: a signal wants to leave by then; 0: no hurry

	// The hold.
	acquired   bool
	acquiredAt hold.Instant
	info       hold.Info
	testament  []byte
	deadlines  hold.Deadlines // only rise, and are final once lost (I3)
	lost       bool           // never becomes false again (I3)
	cause      error          // why lost

	// The guard and the run.
	guardReady, guardGone bool
	places, tries         int
	run                   string         // what the testament is about; "" before the first OpBequeath
	live                  string         // the run that counts: run itself, or a hook of it
	part                  part           // what that is
	told                  hold.Deadlines // what the guard knows
	refusedTerm           hold.Instant   // a start with this deadline came too late
	started               bool
	exit                  *exit        // of the child
	hookExit              *exit        // of the hook that runs, or ran last
	hookBy                hold.Instant // on-acquire has until then; 0: it does not run, or was told to end
	hookCut               string       // why the hook was told to end: it does not count; "": it was not
	equipped              bool         // on-acquire is over and succeeded
	indebted              bool         // something ran, or may have: on-lose is due
	stopBy                hold.Instant // SIGKILL at the latest; 0: nobody asked for a stop
	termSent, killSent    bool
	stuckSince            hold.Instant
	heardSince            hold.Instant // the guard is about to be called frozen, and listened to since then

	// The end.
	signal        syscall.Signal // the first one that asks to stop
	evicted       error          // who asked us to leave, while there was something to leave; nil: nobody
	err           error          // why nothing was started, or why its end is not known
	notReleased   error          // why the hold is left to its TTL
	releaseBy     hold.Instant
	retryAt       hold.Instant
	retryPause    time.Duration
	releaseActive bool
	givingUp      bool
}

// part is which of the three a run is.
type part int

const (
	theChild part = iota
	onAcquire
	onLose
)

// exit is how the direct child ended.
type exit struct {
	code, signal int
	kept         bool // the hold was kept at that moment: the code counts
	usage        guard.Usage
}

func newMachine(cfg Config, at hold.Instant) *machine {
	m := &machine{cfg: cfg, env: cfg.Env, now: at, began: at, last: at}
	if !cfg.Inherit {
		m.env = withoutHold(cfg.Env)
	}
	return m
}

// step takes in one event and says what to do about it.
func (m *machine) step(ev event) []action {
	m.out = nil
	if m.phase == done {
		return nil // I5
	}
	m.now = max(m.now, ev.at)
	m.heed(ev)
	switch ev.kind {
	case evTick:
	case evPlaced:
		m.onPlaced(ev.testament)
	case evAcquired:
		m.onAcquired(ev)
	case evNotAcquired:
		m.onNotAcquired(ev.err)
	case evRenewed:
		m.onRenewed()
	case evLost: // heed has seen it
	case evEvicted:
		m.onEvicted(ev.err)
	case evGuard:
		m.onGuard(ev.guard)
	case evGuardBroken:
		m.onGuardGone(true, ev.err.Error())
	case evSignal:
		m.onSignal(ev.signal)
	case evSwept:
		m.onSwept(ev.err)
	case evReleased:
		m.onReleased(ev.err)
	}
	m.onTime()
	return m.out
}

// heed looks at the hold and the clock before anything else: this process may have been frozen between
// two events, and what happened after a deadline must not count as if it had happened before.
func (m *machine) heed(ev event) {
	if !m.acquired || m.lost {
		return
	}
	m.deadlines.Term = max(m.deadlines.Term, ev.deadlines.Term)
	m.deadlines.Kill = max(m.deadlines.Kill, ev.deadlines.Kill)
	switch {
	case ev.kind == evLost:
		m.lose(ev.err)
	case m.now >= m.deadlines.Term:
		m.lose(errSilent)
	}
}

// wake is the next moment at which the machine has something to do by itself; 0: none.
func (m *machine) wake() hold.Instant {
	var next hold.Instant
	for _, at := range m.alarms() {
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	return next
}

// alarms are the moments that onTime looks at, 0 where one is not set.
func (m *machine) alarms() []hold.Instant {
	switch m.phase {
	case waiting:
		return []hold.Instant{m.readyBy(), m.giveUpAt}
	case held:
		return []hold.Instant{m.readyBy()}
	case starting, running, clearing:
		return []hold.Instant{m.frozenBy(), m.stuckBy(), m.hookBy}
	case releasing:
		return []hold.Instant{m.retryAt, m.giveUpAt}
	}
	return nil
}

// onTime does what is due.
func (m *machine) onTime() {
	due := func(at hold.Instant) bool { return at != 0 && m.now >= at }
	switch m.phase {
	case waiting:
		if due(m.readyBy()) {
			m.failGuard(true, "it did not come up")
		}
		if due(m.giveUpAt) {
			m.abandon(errors.New("acquiring did not end in time"))
		}
	case held:
		if due(m.readyBy()) {
			m.failGuard(true, "it did not come up")
		}
	case starting, running, clearing:
		switch {
		case due(m.hookBy):
			m.endHook()
		case due(m.frozenBy()) && m.heardSince == 0:
			m.heardSince = m.now
		case due(m.frozenBy()):
			m.takeOver(errFrozen)
		case due(m.stuckBy()):
			m.abandon(errStuck)
		}
	case releasing:
		if due(m.giveUpAt) {
			m.stopReleasing()
		} else if due(m.retryAt) {
			m.attempt()
		}
	}
}

// readyBy is when a guard that has not come up is given up.
func (m *machine) readyBy() hold.Instant {
	if m.guardReady || m.guardGone {
		return 0
	}
	return m.began + readyWithin
}

// frozenBy is when to look at a guard that has not finished its work: first to listen once more, then to
// call it frozen.
func (m *machine) frozenBy() hold.Instant {
	at := m.patience()
	switch {
	case at == 0:
		return 0
	case m.heardSince == 0:
		return at - hearWithin
	}
	return max(at, m.heardSince+hearWithin)
}

// patience is how long a guard may take: half a margin past the deadline of a lost hold, in which an honest
// guard has long killed and reaped. While the hold is kept there is no hurry, and the guard only has to say
// that it sent SIGKILL.
func (m *machine) patience() hold.Instant {
	var at hold.Instant
	if m.stopBy != 0 && !m.killSent {
		at = m.stopBy + answerWithin
	}
	if m.lost && m.phase != clearing {
		if last := m.deadlines.Kill + m.cfg.Margin/2; at == 0 || last < at {
			at = last
		}
	}
	return at
}

// stuckBy is when waiting for something that outlives SIGKILL ends.
func (m *machine) stuckBy() hold.Instant {
	if m.stuckSince == 0 {
		return 0
	}
	return m.stuckSince + stuckFor
}

func (m *machine) do(a action) { m.out = append(m.out, a) }

func (m *machine) send(r guard.Request) {
	if !m.guardGone {
		m.do(action{kind: actSend, request: r})
	}
}
