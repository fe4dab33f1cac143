package supervise

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// fakeHold is a hold whose fate the test decides.
type fakeHold struct {
	mu       sync.Mutex
	dead     hold.Deadlines
	cause    error
	ends     []hold.End
	renewed  chan struct{}
	lost     chan struct{}
	evicted  chan error
	releases func(ctx context.Context, try int) error // nil: succeeds
}

func newFakeHold(now hold.Instant) *fakeHold {
	h := &fakeHold{renewed: make(chan struct{}, 1), lost: make(chan struct{}), evicted: make(chan error, 1)}
	h.dead = hold.Deadlines{Term: now + 3500*ms, Kill: now + 8500*ms}
	return h
}

func (h *fakeHold) Info() hold.Info           { return testInfo }
func (h *fakeHold) Renewed() <-chan struct{}  { return h.renewed }
func (h *fakeHold) Lost() <-chan struct{}     { return h.lost }
func (h *fakeHold) Evicted() <-chan error     { return h.evicted }
func (h *fakeHold) Testament() []byte         { return []byte(`{"key":"k"}`) }
func (h *fakeHold) Deadlines() hold.Deadlines { h.mu.Lock(); defer h.mu.Unlock(); return h.dead }
func (h *fakeHold) Cause() error              { h.mu.Lock(); defer h.mu.Unlock(); return h.cause }

func (h *fakeHold) Release(ctx context.Context, end hold.End) error {
	h.mu.Lock()
	h.ends = append(h.ends, end)
	try := len(h.ends)
	h.mu.Unlock()
	if h.releases != nil {
		return h.releases(ctx, try)
	}
	return nil
}

func (h *fakeHold) renew(now hold.Instant) {
	h.mu.Lock()
	h.dead = hold.Deadlines{Term: now + 3500*ms, Kill: now + 8500*ms}
	h.mu.Unlock()
	select {
	case h.renewed <- struct{}{}:
	default:
	}
}

func (h *fakeHold) lose(cause error) {
	h.mu.Lock()
	h.cause = cause
	h.mu.Unlock()
	close(h.lost)
}

// fakeGuard answers as the test tells it to.
type fakeGuard struct {
	mu     sync.Mutex
	sent   []string
	events chan guard.Event
	killed chan struct{}
	swept  int
	closed int

	answer   func(g *fakeGuard, r guard.Request) // called for every request; nil: silence
	broken   error                               // what Send returns
	sweepErr error
	killAt   func() // called by Kill
}

func newFakeGuard() *fakeGuard {
	g := &fakeGuard{events: make(chan guard.Event, 1024), killed: make(chan struct{})}
	g.answer = obedient
	g.say(guard.Event{Kind: guard.KindReady})
	return g
}

// obedient starts what it is told to start, and ends it a second after it is told to stop.
func obedient(g *fakeGuard, r guard.Request) {
	switch r.Op {
	case guard.OpStart:
		g.say(guard.Event{Kind: guard.KindStarted, Run: r.Run, Pid: 42})
	case guard.OpStop:
		g.say(guard.Event{Kind: guard.KindTermSent, Run: r.Run, Reason: r.Reason})
		time.AfterFunc(time.Second, func() { g.end(0) })
	}
}

func (g *fakeGuard) say(ev guard.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events <- ev
}

// hangUp ends the pipe without a word.
func (g *fakeGuard) hangUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.events)
}

func (g *fakeGuard) end(code int) {
	g.say(guard.Event{Kind: guard.KindExited, Run: "1f-1", Code: code})
	g.say(guard.Event{Kind: guard.KindGone, Run: "1f-1"})
}

func (g *fakeGuard) Send(r guard.Request) error {
	select {
	case <-g.killed:
		return guard.ErrLost
	default:
	}
	g.mu.Lock()
	broken, answer := g.broken, g.answer
	if broken == nil {
		g.sent = append(g.sent, tellOne(action{kind: actSend, request: r}))
	}
	g.mu.Unlock()
	if broken == nil && answer != nil {
		answer(g, r)
	}
	return broken
}

func (g *fakeGuard) Events() <-chan guard.Event { return g.events }

func (g *fakeGuard) Kill() {
	select {
	case <-g.killed:
		return
	default:
	}
	close(g.killed)
	if g.killAt != nil {
		g.killAt()
	}
	g.say(guard.Event{Kind: guard.KindLost})
}

func (g *fakeGuard) Sweep(ctx context.Context) error {
	g.swept++
	if g.sweepErr != nil {
		<-ctx.Done() // it tries for as long as it may
		return g.sweepErr
	}
	return nil
}

func (g *fakeGuard) Close() error { g.closed++; return nil }

// becomes changes how the guard behaves from now on.
func (g *fakeGuard) becomes(answer func(*fakeGuard, guard.Request), broken error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer, g.broken = answer, broken
}

func (g *fakeGuard) told() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.sent, ", ")
}

// acquirer is a function that acquires, without a queue.
type acquirer func(ctx context.Context) (hold.Hold, error)

func (a acquirer) Acquire(ctx context.Context, _ func([]byte)) (hold.Hold, error) { return a(ctx) }

// queuer acquires as another does, after it has stood in a queue in several places.
type queuer struct {
	acquirer
	places int
}

func (q queuer) Acquire(ctx context.Context, placed func([]byte)) (hold.Hold, error) {
	for range q.places {
		placed([]byte("{}"))
	}
	return q.acquirer(ctx)
}

// stage is one run in a bubble of its own time.
type stage struct {
	t       *testing.T
	began   time.Time
	skew    atomic.Int64 // what the clock has run on while timers stood still
	hold    *fakeHold
	guard   *fakeGuard
	signals chan os.Signal
	log     bytes.Buffer
	cfg     Config
	acquire acquirer // nil: wins after 100 ms
	ctx     context.Context
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, began: time.Now(), guard: newFakeGuard(), signals: make(chan os.Signal, 4), cfg: testConfig, ctx: t.Context()}
	s.cfg.NowFunc = s.now
	s.cfg.Logger = slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	s.acquire = func(ctx context.Context) (hold.Hold, error) {
		select {
		case <-ctx.Done():
			return nil, errors.Join(hold.ErrNotAcquired, ctx.Err())
		case <-time.After(100 * ms):
			return s.hold, nil
		}
	}
	s.hold = newFakeHold(s.now() + 100*ms)
	return s
}

func (s *stage) now() hold.Instant { return time.Since(s.began) + time.Duration(s.skew.Load()) }

// in does something at a time.
func (s *stage) in(d time.Duration, do func()) { time.AfterFunc(d, do) }

func (s *stage) run() Outcome { return Run(s.ctx, s.cfg, s.acquire, s.guard, s.signals) }

// wants compares what happened with what was to happen.
func (s *stage) wants(o Outcome, result hold.Result, code int, at time.Duration, sent string, ends ...hold.End) {
	s.t.Helper()
	if o.Status.Outcome != result || o.Status.Code != code {
		s.t.Errorf("outcome %+v, want %s %d", o, result, code)
	}
	if s.now() != at {
		s.t.Errorf("it took %v, want %v", s.now(), at)
	}
	if got := s.guard.told(); got != sent {
		s.t.Errorf("the guard was told\n %s, want\n %s", got, sent)
	}
	if !slices.Equal(s.hold.ends, ends) {
		s.t.Errorf("released %v, want %v", s.hold.ends, ends)
	}
	if s.guard.closed != 0 {
		s.t.Error("Run closed a guard that is not its own")
	}
}
