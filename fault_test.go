package coord

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord/coordtest"
)

// actions are the ways in which a call can fail; release lets late ones through.
func actions(release <-chan struct{}) map[string]coordtest.Action {
	return map[string]coordtest.Action{
		"refused for good":       coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied),
		"refused for now":        coordtest.Refuse(rpctypes.ErrGRPCTimeout),
		"no space":               coordtest.Refuse(rpctypes.ErrGRPCNoSpace),
		"request lost":           coordtest.LoseRequest(),
		"reply lost":             coordtest.LoseReply(nil),
		"connection lost after":  coordtest.LoseReply(coordtest.Unavailable("broken")),
		"committed much later":   coordtest.Late(release),
		"answered after a while": coordtest.Delay(1200 * time.Millisecond),
	}
}

var methods = []coordtest.Method{
	coordtest.Txn, coordtest.Range, coordtest.KeepAlive, coordtest.Watch, coordtest.TimeToLive, coordtest.Revoke, coordtest.Grant,
}

// TestEveryCallFails tells one story, of two contenders that lead one after the other, with each of its
// calls failing in each way, once and twice in a row. Whatever happens: never two leaders; an error leaves
// no key; and at the end nothing is left in etcd.
func TestEveryCallFails(t *testing.T) {
	for _, try := range []bool{false, true} {
		t.Run(fmt.Sprintf("try=%v", try), func(t *testing.T) {
			withEachFailure(t, 4, func(w *world) { w.story(try) })
		})
	}
}

// withEachFailure tells a story again and again: with each of its first calls of each method failing in each way, once
// and twice in a row. Up to skips calls pass before.
func withEachFailure(t *testing.T, skips int, story func(*world)) {
	for _, method := range methods {
		for name := range actions(nil) {
			for skip := range skips {
				for times := 1; times <= 2; times++ {
					t.Run(fmt.Sprintf("%s/%s/after %d/%d times", method, name, skip, times), func(t *testing.T) {
						inBubble(t, coordtest.Options{Members: 2}, func(w *world) {
							w.fails(name, coordtest.Rule{Method: method, Skip: skip, Times: times})
							story(w)
						})
					})
				}
			}
		}
	}
}

// fails injects the rule with the named action; what it holds back is let go after 4 s.
func (w *world) fails(action string, r coordtest.Rule) {
	release := make(chan struct{})
	r.Action = actions(release)[action]
	w.m.Inject(r)
	time.AfterFunc(4*time.Second, func() { close(release) })
}

// story is a campaign, a second that queues, a resignation, and the second's.
func (w *world) story(try bool) {
	var leads leaders
	play := func(id string) error {
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		s, err := NewSession(ctx, w.m.Client(w), SessionOptions{Clock: w.now})
		if err != nil {
			return err
		}
		defer func() { _ = s.Close(context.Background()) }()
		e := w.election(s, settled)
		if try {
			if won, err := e.TryCampaign(ctx, id); err != nil || !won {
				return err
			}
		} else if err := e.Campaign(ctx, id); err != nil {
			return err
		}
		leads.begin(w, id)
		work := time.NewTimer(3 * time.Second)
		defer work.Stop()
		if term := e.Term(); term != nil {
			select {
			case <-work.C:
			case <-term.Lost():
			}
		}
		leads.end(id)
		return e.Resign(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- play("a") }()
	time.Sleep(time.Second) // in fake time
	errB := play("b")
	errA := <-done
	w.Logf("a: %v; b: %v", errA, errB)

	// What could not be deleted goes with its lease; a late request has landed by then.
	time.Sleep(30 * time.Second)
	for _, key := range w.m.Keys("/e/") {
		w.Errorf("left behind: %s", key)
	}
	if n := len(w.m.Leases()); n > 0 {
		w.Errorf("%d leases left", n)
	}
}

// leaders checks that no two lead.
type leaders struct {
	mu  sync.Mutex
	now string
}

func (l *leaders) begin(w *world, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now != "" {
		w.Errorf("%s leads while %s does", id, l.now)
	}
	l.now = id
}

func (l *leaders) end(string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = ""
}

func TestAnUndecidedPutOnASharedSessionIsDeletedWhenItLands(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		// Something else is on the session, so it goes on.
		w.must(w.election(s, ElectionOptions{Key: "/e/other"}).Campaign(w.Context(), "o"))
		e := w.election(s, settled)
		release := make(chan struct{})
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/e/x/"), Action: coordtest.Late(release)})
		if err := e.Campaign(w.Context(), "a"); !errors.Is(err, ErrUndecided) {
			w.Fatal(err)
		}

		// Nobody campaigns for it meanwhile.
		if won, err := e.TryCampaign(w.Context(), "a"); won || err != nil {
			w.Error(won, err)
		}
		synctest.Wait() // it is watched
		close(release)
		time.Sleep(time.Minute)
		if len(w.m.Keys("/e/x/")) != 0 {
			w.Errorf("keys %s", w.keys())
		}
		// Then it is free again; the record that landed with the key is settled by whoever comes.
		w.must(e.Campaign(w.Context(), "a"))
		w.must(s.Check())
	})
}

func TestAnUndecidedPutOnASessionOfItsOwnEndsTheRenewals(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		e := w.contender(settled)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/e/x/"), Action: coordtest.LoseRequest()})
		if err := e.Campaign(w.Context(), "a"); !errors.Is(err, ErrUndecided) {
			w.Fatal(err)
		}
		select {
		case <-e.Session().Lost():
		case <-time.After(time.Minute):
		}
		if w.now() > 10*time.Second {
			w.Errorf("the session lives at %v", w.now())
		}
	})
}

// puts picks the Txns whose first branch puts a key with the prefix.
func puts(prefix string) func(*coordtest.Call) bool {
	return func(c *coordtest.Call) bool {
		for _, op := range c.Request.(*pb.TxnRequest).Success {
			if strings.HasPrefix(string(op.GetRequestPut().GetKey()), prefix) {
				return true
			}
		}
		return false
	}
}

func TestWhoHasGivenUpAlreadyAsksNobody(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		e := w.election(s, settled)
		gave := errors.New("gave up")
		ctx, cancel := context.WithCancelCause(w.Context())
		cancel(gave)
		if err := e.Campaign(ctx, "a"); !errors.Is(err, gave) || errors.Is(err, ErrUndecided) {
			w.Error(err)
		}
		if won, err := e.TryCampaign(ctx, "a"); won || !errors.Is(err, gave) {
			w.Error(won, err)
		}
		if n := w.m.Calls(coordtest.Txn); n != 0 {
			w.Errorf("%d requests", n)
		}
		w.must(e.Campaign(w.Context(), "a"))
	})
}

func TestGivingUpWhileTheFirstRequestIsUnderWayLeavesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		late, over time.Duration
		undecided  bool
	}{
		"answered in a moment": {300 * time.Millisecond, 300 * time.Millisecond, false},
		"answered much later":  {3 * time.Second, 100*time.Millisecond + answerWithin, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				s := w.session(SessionOptions{})
				w.must(w.election(s, ElectionOptions{Key: "/e/other"}).Campaign(w.Context(), "o"))
				w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/e/x/"), Action: coordtest.LateBy(row.late)})
				ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
				defer cancel()
				began := w.now()
				err := w.election(s, settled).Campaign(ctx, "b")
				if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUndecided) != row.undecided {
					w.Error(err)
				}
				if took := w.now() - began; took != row.over {
					w.Errorf("it took %v, want %v", took, row.over)
				}
				time.Sleep(10 * time.Second)
				if w.m.Get("/open/x") != nil || len(w.m.Keys("/e/x/")) != 0 {
					w.Errorf("left %s", w.keys())
				}
				w.must(s.Check())
			})
		})
	}
}

func TestASessionClosedUnderTheFirstRequestLeavesNoRecord(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		e := w.election(s, settled)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.After(func() { time.Sleep(100 * time.Millisecond) })})
		call := w.campaign(w.Context(), e, "b")
		w.must(s.Close(w.Context()))
		if err := call.wait().err; !errors.Is(err, ErrClosed) {
			w.Error(err)
		}
		if w.keys() != "[]" {
			w.Errorf("left %s", w.keys())
		}
	})
}
