package supervise

import (
	"cmp"
	"context"
	"os"
	"syscall"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

const (
	// releaseTry bounds one attempt to release.
	releaseTry = 2 * time.Second
	// sweepFor bounds the sweep after a guard that is gone.
	sweepFor = 5 * time.Second
	// closeWithin bounds the wait for the last lines of the log at the end.
	closeWithin = time.Second
	// nap is the longest sleep while a moment is awaited: timers stand still during a suspend, the clock
	// that counts does not.
	nap = time.Second
)

// Run acquires, runs the child, and gives up what was acquired, as cfg says. g is a guard that was started
// and may not be ready yet; it is of no use for a second Run. signals are the signals of this process (see
// Signals); the end of ctx counts as a SIGTERM.
//
// Run returns when nothing of the child is left, or says in the outcome what it could not do. The one
// goroutine that may outlive it is an Acquire that did not return although its context ended.
func Run(ctx context.Context, cfg Config, acq hold.Acquirer, g Guard, signals <-chan os.Signal) Outcome {
	term := openTerminal(cfg.Foreground)
	defer term.restore()
	cfg.Foreground = term.ours()

	d := &driver{
		cfg:      cfg,
		term:     term,
		guard:    g,
		machine:  newMachine(cfg, cfg.NowFunc()),
		journal:  newJournal(cfg.Logger),
		ctx:      context.WithoutCancel(ctx),
		placed:   make(chan []byte, 1),
		acquired: make(chan acquisition, 1),
		released: make(chan error, 1),
		swept:    make(chan error, 1),
		broken:   make(chan error, 1),
		stopped:  ctx.Done(),
		signals:  signals,
		said:     g.Events(),
	}
	defer d.journal.close()
	d.acquire(acq)
	out := d.loop()
	out.Interrupted = term.interrupted(out)
	return out
}

// driver gives the machine its events and does what it asks for. Everything that may take time runs in a
// goroutine that answers once, on a channel with room for the answer.
type driver struct {
	cfg     Config
	guard   Guard
	machine *machine
	journal *journal
	term    *terminal
	ctx     context.Context // never ends: cleaning up outlives the caller's patience

	hold          hold.Hold // nil until acquired
	cancelAcquire context.CancelFunc
	stopRelease   context.CancelFunc

	// What the driver listens to. A channel that has said its last is set to nil.
	placed   chan []byte
	acquired chan acquisition
	released chan error
	swept    chan error
	broken   chan error
	renewed  <-chan struct{}
	lost     <-chan struct{}
	evicted  <-chan error
	stopped  <-chan struct{}
	signals  <-chan os.Signal
	said     <-chan guard.Event

	beaten  hold.Instant // the last beat
	outcome *Outcome
}

type acquisition struct {
	hold hold.Hold
	err  error
}

func (d *driver) acquire(acq hold.Acquirer) {
	ctx, cancel := context.WithCancel(d.ctx)
	d.cancelAcquire = cancel
	go func() {
		h, err := acq.Acquire(ctx, d.place)
		d.acquired <- acquisition{h, err}
	}()
}

// place passes on that a key of ours stands in the queue. It never waits: a place that was not heard of yet is no
// longer of interest once there is another one.
func (d *driver) place(testament []byte) {
	for {
		select {
		case d.placed <- testament:
			return
		default:
		}
		select {
		case <-d.placed:
		default:
		}
	}
}

func (d *driver) loop() Outcome {
	defer d.cancelAcquire()
	timer := time.NewTimer(nap)
	defer timer.Stop()
	for d.outcome == nil {
		d.beat()
		d.arm(timer)
		d.feed(d.next(timer.C))
	}
	return *d.outcome
}

// arm sets the timer to the machine's next moment.
func (d *driver) arm(timer *time.Timer) {
	at := d.machine.wake()
	if beat := d.beatAt(); at == 0 || beat != 0 && beat < at {
		at = beat
	}
	if at == 0 {
		timer.Stop()
		return
	}
	timer.Reset(min(nap, max(0, at-d.cfg.NowFunc())))
}

// beat says that the loop lives, when that is due.
func (d *driver) beat() {
	if at := d.beatAt(); at != 0 && d.cfg.NowFunc() >= at {
		d.beaten = d.cfg.NowFunc()
		d.cfg.Beat()
	}
}

// beatAt is when the next beat is due; 0: never.
func (d *driver) beatAt() hold.Instant {
	if d.cfg.Beat == nil || d.cfg.BeatEvery <= 0 {
		return 0
	}
	return d.beaten + d.cfg.BeatEvery
}

// next waits for one event.
func (d *driver) next(tick <-chan time.Time) event {
	select {
	case <-tick:
		return event{kind: evTick}
	case testament := <-d.placed:
		return event{kind: evPlaced, testament: testament}
	case a := <-d.acquired:
		return d.onAcquisition(a)
	case <-d.lost:
		return event{kind: evTick} // feed sees it
	case by := <-d.evicted:
		d.evicted = nil
		return event{kind: evEvicted, err: by}
	case _, ok := <-d.renewed:
		if !ok {
			d.renewed = nil
		}
		return event{kind: evRenewed}
	case ev, ok := <-d.said:
		if !ok {
			d.said, ev = nil, guard.Event{Kind: guard.KindLost}
		}
		if ev.Kind == guard.KindStarted && !isHook(ev.Run) {
			d.term.lent()
			if d.cfg.Started != nil {
				d.cfg.Started(ev.Pid, ev.Time)
			}
		}
		return event{kind: evGuard, guard: ev}
	case err := <-d.broken:
		return event{kind: evGuardBroken, err: err}
	case sig, ok := <-d.signals:
		if !ok {
			d.signals = nil
		}
		s, _ := sig.(syscall.Signal)
		return event{kind: evSignal, signal: s}
	case <-d.stopped:
		d.stopped = nil
		return event{kind: evSignal, signal: syscall.SIGTERM}
	case err := <-d.swept:
		return event{kind: evSwept, err: err}
	case err := <-d.released:
		d.stopRelease()
		return event{kind: evReleased, err: err}
	}
}

func (d *driver) onAcquisition(a acquisition) event {
	if a.err != nil {
		return event{kind: evNotAcquired, err: a.err}
	}
	d.hold, d.renewed, d.lost, d.evicted = a.hold, a.hold.Renewed(), a.hold.Lost(), a.hold.Evicted()
	return event{kind: evAcquired, info: a.hold.Info(), testament: a.hold.Testament(), err: d.loss()}
}

// loss is the cause of a loss that the machine has not been told of, or nil.
func (d *driver) loss() error {
	select {
	case <-d.lost:
		d.lost = nil
		return cmp.Or(d.hold.Cause(), hold.ErrLost)
	default:
		return nil
	}
}

// feed gives one event to the machine. Of a loss and anything else that are there at the same time, the
// loss comes first: what cannot be told apart counts as lost.
func (d *driver) feed(ev event) {
	if err := d.loss(); err != nil {
		d.step(event{kind: evLost, err: err})
	}
	if d.outcome == nil {
		d.step(ev)
	}
}

// step adds the time to an event, and then the deadlines: in this order they cannot be older than it.
func (d *driver) step(ev event) {
	ev.at = d.cfg.NowFunc()
	if d.hold != nil {
		ev.deadlines = d.hold.Deadlines()
	}
	for _, a := range d.machine.step(ev) {
		d.do(a)
	}
}

func (d *driver) do(a action) {
	switch a.kind {
	case actSend:
		d.send(a.request)
	case actCancelAcquire:
		d.cancelAcquire()
	case actRelease:
		d.release(a.end)
	case actStopRelease:
		d.stopRelease()
	case actKillGuard:
		// If it cannot be killed, the sweep will not end empty, and that is what counts.
		d.guard.Kill()
	case actSweep:
		go d.sweep()
	case actTakeTerminal:
		d.term.restore()
	case actLog:
		d.journal.say(a.line)
	case actFinish:
		d.outcome = &a.outcome
	}
}

// send passes a request on. That it did not arrive is an event like any other.
func (d *driver) send(r guard.Request) {
	err := d.guard.Send(r)
	if err == nil {
		return
	}
	select {
	case d.broken <- err:
	default:
	}
}

func (d *driver) release(end hold.End) {
	ctx, cancel := context.WithTimeout(d.ctx, releaseTry)
	d.stopRelease = cancel
	go func() { d.released <- d.hold.Release(ctx, end) }()
}

func (d *driver) sweep() {
	ctx, cancel := context.WithTimeout(d.ctx, sweepFor)
	defer cancel()
	d.swept <- d.guard.Sweep(ctx)
}
