package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// patience is how long a test waits for what has to come. No test passes by it.
const patience = 30 * time.Second

// fake is a client whose guard does what the test says.
type fake struct {
	events chan guard.Event
	sent   chan guard.Request
	swept  chan chan error // each sweep asks how it ends
	mu     sync.Mutex
	kills  int
	reaps  int
	over   bool
}

func newFake() *fake {
	return &fake{events: make(chan guard.Event, 64), sent: make(chan guard.Request, 64), swept: make(chan chan error, 8)}
}

func (f *fake) Send(q guard.Request) error { f.sent <- q; return nil }
func (f *fake) Events() <-chan guard.Event { return f.events }
func (f *fake) Kill()                      { f.mu.Lock(); defer f.mu.Unlock(); f.kills++ }
func (f *fake) Reap()                      { f.mu.Lock(); defer f.mu.Unlock(); f.reaps++ }

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.over = true
		close(f.events)
	}
	return nil
}

func (f *fake) Sweep(ctx context.Context) error {
	f.mu.Lock()
	over := f.over
	f.mu.Unlock()
	if over { // in order: nothing is left
		return nil
	}
	answer := make(chan error)
	f.swept <- answer
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fakes is a pool of fakes, in the order of their starts.
func fakes(t *testing.T) (*Pool, chan *fake) {
	t.Helper()
	started := make(chan *fake, 8)
	p := newPool(func() (client, error) {
		f := newFake()
		started <- f
		return f, nil
	})
	return p, started
}

func share(t *testing.T, p *Pool) *Share {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := p.Guard(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// hear waits for the next event of a share.
func hear(t *testing.T, s *Share) guard.Event {
	t.Helper()
	select {
	case e, ok := <-s.Events():
		if !ok {
			t.Fatal("there are no events any more")
		}
		return e
	case <-time.After(patience):
		t.Fatal("the share is silent")
	}
	panic("unreachable")
}

func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal(what)
	}
}

func shut(t *testing.T, p *Pool, shares ...*Share) {
	t.Helper()
	for _, s := range shares {
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// Red when names are not made different, not taken off, or an event goes to more than whom it is about.
func TestRunsOfOneNameAreToldApart(t *testing.T) {
	t.Parallel()
	p, started := fakes(t)
	a, b := share(t, p), share(t, p)
	f := <-started
	var names []string
	for _, s := range []*Share{a, b} {
		if err := s.Send(guard.Request{Op: guard.OpStart, Run: "1f-1/on-lose"}); err != nil {
			t.Fatal(err)
		}
		names = append(names, (<-f.sent).Run)
	}
	if names[0] == names[1] {
		t.Fatalf("both are called %q", names[0])
	}
	f.events <- guard.Event{Kind: guard.KindStarted, Run: names[1], Pid: 2}
	f.events <- guard.Event{Kind: guard.KindStarted, Run: "nobody's"}
	f.events <- guard.Event{Kind: guard.KindStarted, Run: names[0], Pid: 1}
	for i, s := range []*Share{a, b} {
		if e := hear(t, s); e.Run != "1f-1/on-lose" || e.Pid != i+1 {
			t.Errorf("share %d heard %+v", i, e)
		}
	}
	if err := a.Send(guard.Request{Op: guard.OpBye}); err == nil {
		t.Error("one of them said good-bye for both")
	}
	for run := range 2 {
		f.events <- guard.Event{Kind: guard.KindGone, Run: names[run]}
	}
	hear(t, a)
	hear(t, b)
	shut(t, p, a, b)
}

// Red when a newcomer waits for a ready that was said before it came.
func TestWhoComesLaterHearsThatTheGuardIsReady(t *testing.T) {
	t.Parallel()
	p, started := fakes(t)
	first := share(t, p)
	f := <-started
	f.events <- guard.Event{Kind: guard.KindReady, Pid: 7}
	hear(t, first)
	second := share(t, p)
	if e := hear(t, second); e.Kind != guard.KindReady || e.Pid != 7 {
		t.Errorf("%+v", e)
	}
	if len(started) != 0 {
		t.Error("a guard of its own")
	}
	shut(t, p, first, second)
}

// Red when events go to each share by way of a channel that has an end.
func TestAShareThatDoesNotReadHoldsUpNobody(t *testing.T) {
	t.Parallel()
	p, started := fakes(t)
	slow, other := share(t, p), share(t, p)
	f := <-started
	for i := range 2000 {
		f.events <- guard.Event{Kind: guard.KindStuck, Run: slow.name + separator + "x", Pid: i}
	}
	f.events <- guard.Event{Kind: guard.KindStuck, Run: other.name + separator + "x"}
	hear(t, other)
	for i := range 2000 {
		if e := hear(t, slow); e.Pid != i {
			t.Fatalf("%d came as number %d", e.Pid, i)
		}
	}
	shut(t, p, slow, other)
}

// Red when each share sweeps by itself, or a sweep follows one that ended empty: it would kill the next guard.
func TestASweepIsEverybodysAndTheLastOne(t *testing.T) {
	t.Parallel()
	p, started := fakes(t)
	var shares []*Share
	for range 50 {
		shares = append(shares, share(t, p))
	}
	f := <-started
	shares[0].Kill()
	f.events <- guard.Event{Kind: guard.KindLost, Reason: "killed"}
	results := make(chan error, len(shares))
	for _, s := range shares {
		if e := hear(t, s); e.Kind != guard.KindLost || e.Reason != "killed" {
			t.Fatalf("%+v", e)
		}
		if _, open := <-s.Events(); open {
			t.Fatal("something after the last word")
		}
		go func() { results <- s.Sweep(context.Background()) }()
	}
	// A new run comes meanwhile: it waits, and no guard is started.
	next := make(chan *Share)
	go func() {
		s, err := p.Guard(context.Background())
		if err != nil {
			t.Error(err)
		}
		next <- s
	}()
	answer := <-f.swept
	if len(started)+len(f.swept) != 0 {
		t.Error("a guard is started, or another sweep")
	}
	answer <- nil
	for range shares {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	s := <-next
	if len(started) != 1 {
		t.Errorf("%d guards were started", len(started))
	}
	if err := shares[1].Sweep(context.Background()); err != nil || len(f.swept) != 0 {
		t.Errorf("%v, and %d sweeps", err, len(f.swept))
	}
	if f.kills != 1 {
		t.Errorf("%d kills", f.kills)
	}
	shut(t, p, append(shares, s)...)
}

// Red when a guard is started although something is left, or never again.
func TestNoGuardIsStartedUntilASweepEndsEmpty(t *testing.T) {
	t.Parallel()
	p, started := fakes(t)
	s := share(t, p)
	f := <-started
	f.events <- guard.Event{Kind: guard.KindLost}
	hear(t, s)
	s.g.mu.Lock()
	first := s.g.attempt
	s.g.mu.Unlock()
	(<-f.swept) <- errors.New("42 not gone")
	within(t, "the sweep has no end", first.done)

	// Each who asks has it swept once more.
	for range 2 {
		asked := make(chan error)
		go func() {
			_, err := p.Guard(context.Background())
			asked <- err
		}()
		(<-f.swept) <- errors.New("42 not gone")
		if err := <-asked; !errors.Is(err, hold.ErrNoGuard) {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Guard(ended); !errors.Is(err, hold.ErrNoGuard) || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if len(started) != 0 {
		t.Fatal("a guard was started")
	}
	// A run goes on asking for as long as it has patience.
	done := make(chan error)
	go func() { done <- s.Sweep(context.Background()) }()
	for failed := false; !failed; {
		(<-f.swept) <- errors.New("42 not gone")
		failed = true
	}
	(<-f.swept) <- nil
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	next := share(t, p)
	if len(started) != 1 {
		t.Errorf("%d guards were started", len(started))
	}
	shut(t, p, s, next)
}

// Red when what a share left behind goes on, or would be released by the guard one day.
func TestAShareThatIsClosedLeavesNothing(t *testing.T) {
	t.Parallel()
	p, started := fakes(t)
	s := share(t, p)
	f := <-started
	send := func(q guard.Request) {
		t.Helper()
		if err := s.Send(q); err != nil {
			t.Fatal(err)
		}
		<-f.sent
	}
	for _, run := range []string{"over", "refused", "alive"} {
		send(guard.Request{Op: guard.OpBequeath, Run: run, Testament: []byte("t")})
		send(guard.Request{Op: guard.OpStart, Run: run})
	}
	send(guard.Request{Op: guard.OpForget, Run: "over"})
	send(guard.Request{Op: guard.OpForget, Run: "refused"})
	f.events <- guard.Event{Kind: guard.KindGone, Run: s.name + separator + "over"}
	f.events <- guard.Event{Kind: guard.KindRefused, Run: s.name + separator + "refused"}
	hear(t, s)
	hear(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	close(f.sent)
	var said []string
	for q := range f.sent {
		said = append(said, fmt.Sprint(q.Op, " ", q.Run))
	}
	if got, want := fmt.Sprint(said), fmt.Sprint([]string{"forget 1.alive", "kill 1.alive"}); got != want {
		t.Errorf("it said %s, want %s", got, want)
	}
	if err := s.Send(guard.Request{Op: guard.OpStart, Run: "late"}); !errors.Is(err, guard.ErrLost) {
		t.Error(err)
	}
	if _, open := <-s.Events(); open {
		t.Error("events after the end")
	}
	shut(t, p, s)
}

// Red when Close does not wait, waits for ever, or lets anybody in.
func TestCloseWaitsForTheLastShare(t *testing.T) {
	t.Parallel()
	p, started := fakes(t)
	if err := newPool(nil).Close(context.Background()); err != nil {
		t.Error("nothing was started:", err)
	}
	a, b := share(t, p), share(t, p)
	f := <-started
	closed := make(chan error)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { closed <- p.Close(ctx) }()
	for {
		p.mu.Lock()
		begun := p.closed
		p.mu.Unlock()
		if begun {
			break
		}
	}
	_ = a.Close()
	f.mu.Lock()
	if f.over {
		t.Error("the guard was closed under a share")
	}
	f.mu.Unlock()
	cancel()
	if err := <-closed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if e := hear(t, b); e.Kind != guard.KindLost {
		t.Errorf("%+v", e)
	}
	if _, err := p.Guard(context.Background()); !errors.Is(err, ErrClosed) || !errors.Is(err, hold.ErrNoGuard) {
		t.Error(err)
	}
	p.Reap()
	if f.reaps != 0 {
		t.Error("reaped for a guard that is no more")
	}
	shut(t, p, b)
}

func TestAGuardThatCannotBeStartedIsAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("no room")
	p := New(func() (*guard.Client, error) { return nil, broken })
	for range 2 { // and tried again each time
		if s, err := p.Guard(context.Background()); s != nil || !errors.Is(err, hold.ErrNoGuard) || !errors.Is(err, broken) {
			t.Errorf("%v, %v", s, err)
		}
	}
	shut(t, p)
}
