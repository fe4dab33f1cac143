package coord

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/go-coord/coord/coordtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// world is one etcd in memory and a clock that all sessions of a test share, in a bubble of fake time.
type world struct {
	*testing.T
	m     *coordtest.Medium
	start time.Time
	mu    sync.Mutex
	skew  time.Duration // what the clock is ahead of the timers: a suspended machine
}

// inBubble runs f with a world whose time passes only when everybody waits.
func inBubble(t *testing.T, o coordtest.Options, f func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, m: coordtest.Start(t, o), start: time.Now()}
		f(w)
	})
}

func (w *world) now() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.start) + w.skew
}

// suspend lets the clock, and the leases of others, run on without any timer of this process.
func (w *world) suspend(d time.Duration) {
	w.mu.Lock()
	w.skew += d
	w.mu.Unlock()
}

func (w *world) session(o SessionOptions, members ...int) *Session {
	w.Helper()
	o.Clock = w.now
	s, err := NewSession(w.Context(), w.m.Client(w, members...), o)
	w.must(err)
	w.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// settled are the options of an election that settles.
var settled = ElectionOptions{Key: "/e/x", Settle: SettleOptions{Open: "/open/x", Last: "/last/x"}}

func (w *world) election(s *Session, o ElectionOptions) *Election {
	w.Helper()
	e, err := s.Election(o)
	w.must(err)
	return e
}

// contender is an election on a session of its own.
func (w *world) contender(o ElectionOptions, members ...int) *Election {
	w.Helper()
	return w.election(w.session(SessionOptions{}, members...), o)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// async is a call under way.
type async struct {
	done chan struct{}
	term *Term
	err  error
	at   time.Duration
}

// campaign starts a campaign in the background and returns when it waits for something.
func (w *world) campaign(ctx context.Context, e *Election, id string) *async {
	a := &async{done: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	w.Cleanup(func() { cancel(); <-a.done })
	go func() {
		defer close(a.done)
		a.term, a.err = e.CampaignTerm(ctx, id)
		a.at = w.now()
	}()
	synctest.Wait()
	return a
}

func (a *async) finished() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// wait waits for the call for as long as it takes in fake time.
func (a *async) wait() *async { <-a.done; return a }

// keys are the keys in etcd now.
func (w *world) keys() string { return fmt.Sprint(w.m.Keys("")) }

func leaseHex(s *Session) string { return fmt.Sprintf("%x", int64(s.Lease())) }
