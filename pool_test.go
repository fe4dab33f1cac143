package coord

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord/coordtest"
)

func (w *world) pool(o PoolOptions) *ElectionPool {
	o.Clock = w.now
	p := NewElectionPool(w.m.Client(w), o)
	w.Cleanup(func() { _ = p.Close() })
	return p
}

// borrow is Election, which has to work.
func (w *world) borrow(p *ElectionPool, key string) *Election {
	w.Helper()
	e, err := p.Election(w.Context(), key)
	w.must(err)
	return e
}

func settleAll(key string) SettleOptions {
	return SettleOptions{Open: "/open" + key, Last: "/last" + key}
}

func TestAPoolGrantsOneLeaseAKey(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		p := w.pool(PoolOptions{})
		a := w.borrow(p, "/e/a")
		if a.Session().TTL() != 30*time.Second {
			w.Errorf("ttl %v", a.Session().TTL())
		}
		if again := w.borrow(p, "/e/a/"); again == a || again.Session() != a.Session() {
			w.Error("want another election, on the same session")
		}
		if b := w.borrow(p, "/e/b"); b.Session() == a.Session() {
			w.Error("two keys share a session")
		}
		if n := w.m.Calls(coordtest.Grant); n != 2 {
			w.Errorf("%d grants", n)
		}
		if st := p.Stats(); st != (PoolStats{SessionCount: 2, TTLSec: 30}) {
			w.Errorf("%+v", st)
		}
		won, err := a.TryCampaign(w.Context(), "me")
		if !won || err != nil {
			w.Error(won, err)
		}
		if st := p.Stats(); st.Active != 1 {
			w.Errorf("%+v", st)
		}
		w.must(p.Close())
		w.must(p.Close())
		if w.keys() != "[]" || len(w.m.Leases()) != 0 {
			w.Error(w.keys(), w.m.Leases())
		}
		w.must(a.Resign(w.Context()))
		if st := p.Stats(); st != (PoolStats{Closed: true, TTLSec: 30}) {
			w.Errorf("%+v", st)
		}
	})
}

func TestASharedSessionIsOneLeaseUnderAllKeysAndDoesNotGrow(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		p := w.pool(PoolOptions{SharedSession: true})
		var held []*Election
		for i := range 300 {
			e := w.borrow(p, fmt.Sprintf("/e/%d", i))
			if won, err := e.TryCampaign(w.Context(), "me"); !won || err != nil {
				w.Fatal(i, won, err)
			}
			held = append(held, e)
		}
		time.Sleep(time.Minute) // they are renewed
		s := held[0].Session()
		s.mu.Lock()
		if len(s.offices) != 300 || len(w.m.Leases()) != 1 {
			w.Errorf("%d offices, %d leases", len(s.offices), len(w.m.Leases()))
		}
		s.mu.Unlock()
		for _, e := range held {
			w.must(e.Term().Check())
			w.must(e.Resign(w.Context()))
			if won, err := w.borrow(p, e.opts.Key).TryCampaign(w.Context(), "me"); !won || err != nil {
				w.Error(won, err)
			}
			if won, err := e.TryCampaign(w.Context(), "me"); won || err != nil {
				w.Error(won, err)
			}
		}
		w.must(p.Close())
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.claims) != 300 || w.keys() != "[]" {
			w.Errorf("%d claims, keys %s", len(s.claims), w.keys())
		}
	})
	t.Run("of those who came and went nothing stays", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			p := w.pool(PoolOptions{SharedSession: true})
			for i := range 100 {
				e := w.borrow(p, fmt.Sprintf("/e/%d", i))
				w.must(e.Campaign(w.Context(), "me"))
				short, cancel := context.WithTimeout(w.Context(), time.Millisecond)
				if err := w.borrow(p, e.opts.Key).Campaign(short, "me"); !errors.Is(err, context.DeadlineExceeded) {
					w.Error(err)
				}
				cancel()
				w.must(e.Resign(w.Context()))
			}
			s := w.borrow(p, "/e/0").Session()
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.offices) != 0 || len(s.claims) != 0 || len(p.active) != 0 || len(p.loans) != 1 {
				w.Errorf("%d offices, %d claims, %d active, %d loans", len(s.offices), len(s.claims), len(p.active), len(p.loans))
			}
		})
	})
}

func TestElectionsBorrowedForOneKeyTakeTurns(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		p := w.pool(PoolOptions{Settle: settleAll, Identity: "me"})
		a, b := w.borrow(p, "/e/x"), w.borrow(p, "/e/x")
		w.must(a.Campaign(w.Context(), ""))
		if leader, err := b.Leader(w.Context()); err != nil || leader.Identity != "me" {
			w.Error(leader, err)
		}
		if won, err := b.TryCampaign(w.Context(), ""); won || err != nil {
			w.Error(won, err)
		}
		call := w.campaign(w.Context(), b, "")

		// Closing what was borrowed ends nothing.
		w.must(a.Close())
		w.must(b.Close())
		if call.finished() || a.Term() == nil {
			w.Fatal("Close did something")
		}
		w.must(a.Resign(w.Context()))
		w.must(call.wait().err)
		if st := p.Stats(); st.Active != 1 || w.m.Calls(coordtest.Grant) != 1 {
			w.Errorf("%+v", st)
		}
	})
}

func TestADeadSessionIsReplacedOnTheNextBorrow(t *testing.T) {
	for name, end := range map[string]func(w *world, e *Election){
		"revoked": func(w *world, e *Election) {
			w.must(w.m.Revoke(e.Session().Lease()))
			<-e.Session().Lost()
		},
		"closed by a borrower": func(w *world, e *Election) { w.must(e.Session().Close(w.Context())) },
		"lost while the machine was suspended": func(w *world, e *Election) {
			w.suspend(time.Hour)
		},
		"left to its ttl": func(w *world, e *Election) {
			gone, cancel := context.WithCancel(w.Context())
			cancel()
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.LoseRequest()})
			if err := e.Resign(gone); !errors.Is(err, ErrUndecided) {
				w.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				p := w.pool(PoolOptions{})
				a := w.borrow(p, "/e/x")
				w.must(a.Campaign(w.Context(), "a"))
				end(w, a)
				b := w.borrow(p, "/e/x")
				if b.Session() == a.Session() {
					w.Fatal("lent a dead session")
				}
				w.must(b.Campaign(w.Context(), "b"))
				w.must(a.Resign(w.Context()))
				if st := p.Stats(); st.SessionCount != 1 || st.Replaced != 1 {
					w.Errorf("%+v", st)
				}
				time.Sleep(time.Minute)
				p.mu.Lock()
				if len(p.retired) != 0 {
					w.Errorf("%d sessions are kept though they are over", len(p.retired))
				}
				p.mu.Unlock()
				w.must(p.Close())
				if w.keys() != "[]" || len(w.m.Leases()) != 0 {
					w.Error(w.keys(), w.m.Leases())
				}
			})
		})
	}
}

// Red when a session that was replaced is closed at once: its revoke would let a successor in while the work of
// its borrowers may still be stopping.
func TestAReplacedSessionIsNotRevokedBeforeItsDeadline(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		p := w.pool(PoolOptions{TTLSec: 10})
		a := w.borrow(p, "/e/x")
		w.must(a.Campaign(w.Context(), "a"))
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		<-a.Session().Lost()
		if w.now() != 3500*time.Millisecond {
			w.Fatalf("lost at %v", w.now())
		}
		w.m.Heal()
		b := w.borrow(p, "/e/x")
		call := w.campaign(w.Context(), b, "b")
		w.must(call.wait().err)
		if _, kill := a.Session().Deadlines(); call.at < kill {
			w.Errorf("b leads at %v; a's work may live until %v", call.at, kill)
		}
	})
}

func TestBorrowersOfAKeyShareOneGrant(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		p := w.pool(PoolOptions{})
		w.m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: coordtest.Delay(900 * time.Millisecond)})
		first, giveUp := context.WithCancelCause(w.Context())
		gave := errors.New("gave up")
		var calls sync.WaitGroup
		errs := make([]error, 10)
		for i := range errs {
			calls.Go(func() {
				ctx := w.Context()
				if i == 0 {
					ctx = first
				}
				_, errs[i] = p.Election(ctx, "/e/x")
			})
			synctest.Wait()
		}
		giveUp(gave)

		// A grant that takes its time holds up nobody who wants another key.
		w.borrow(p, "/e/y")
		if w.now() != 0 {
			w.Errorf("held up for %v", w.now())
		}
		calls.Wait()
		if !errors.Is(errs[0], gave) {
			w.Error(errs[0])
		}
		for _, err := range errs[1:] {
			w.must(err)
		}
		if n := w.m.Calls(coordtest.Grant); n != 2 || w.now() != 900*time.Millisecond {
			w.Errorf("%d grants at %v", n, w.now())
		}
		if _, err := p.Election(first, "/e/z"); !errors.Is(err, gave) || w.m.Calls(coordtest.Grant) != 2 {
			w.Error("who has given up asked etcd", err)
		}
	})
}

func TestAGrantThatNobodyWaitsForAnyMoreIsGivenUp(t *testing.T) {
	for name, action := range map[string]coordtest.Action{
		"it is never answered": coordtest.LoseRequest(), "its answer is under way": coordtest.LoseReply(nil),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				p := w.pool(PoolOptions{})
				w.m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: action})
				ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := p.Election(ctx, "/e/x"); !errors.Is(err, context.DeadlineExceeded) {
					w.Error(err)
				}
				w.borrow(p, "/e/x") // asks anew, and at once
				if w.now() != 100*time.Millisecond || p.Stats().SessionCount != 1 {
					w.Errorf("at %v: %+v", w.now(), p.Stats())
				}
			})
		})
	}
	t.Run("it was answered in that moment", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			p := w.pool(PoolOptions{})
			l := &loan{granted: make(chan struct{}), cancel: func() {}}
			p.grant(w.Context(), "/e/x/", l)
			if l.err != nil || len(w.m.Leases()) != 0 || p.Stats().SessionCount != 0 {
				w.Errorf("%v, %d leases", l.err, len(w.m.Leases()))
			}
		})
	})
}

func TestAGrantThatFailsIsToldAndAskedForAgain(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		p := w.pool(PoolOptions{SharedSession: true})
		w.m.NoSpace(true)
		for range 3 {
			if _, err := p.Election(w.Context(), "/e/x"); !errors.Is(err, rpctypes.ErrNoSpace) {
				w.Error(err)
			}
		}
		w.m.NoSpace(false)
		w.must(w.borrow(p, "/e/x").Campaign(w.Context(), "me"))
	})
}

func TestClosingAPool(t *testing.T) {
	t.Run("resigns, ends campaigns, and revokes", func(t *testing.T) {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
				inBubble(t, coordtest.Options{}, func(w *world) {
					p := w.pool(PoolOptions{SharedSession: shared, Settle: settleAll})
					foreign := w.contender(ElectionOptions{Key: "/e/foreign"})
					w.must(foreign.Campaign(w.Context(), "f"))
					queued := w.campaign(w.Context(), w.borrow(p, "/e/foreign"), "me")
					led := w.borrow(p, "/e/x")
					w.must(led.Campaign(w.Context(), "me"))
					turn := w.campaign(w.Context(), w.borrow(p, "/e/x"), "me")
					idle := w.borrow(p, "/e/y")
					w.must(p.Close())
					for _, call := range []*async{queued, turn} {
						if !call.finished() || !errors.Is(call.err, ErrClosed) {
							w.Error(call.err)
						}
					}
					if w.keys() != fmt.Sprint([]string{foreign.Term().Keys().Key, "/last/e/x"}) || len(w.m.Leases()) != 1 {
						w.Error(w.keys(), w.m.Leases())
					}
					if _, err := p.Election(w.Context(), "/e/x"); !errors.Is(err, ErrClosed) {
						w.Error(err)
					}
					if err := idle.Campaign(w.Context(), "me"); !errors.Is(err, ErrClosed) {
						w.Error(err)
					}
					if err := p.engage(idle); !errors.Is(err, ErrClosed) || p.Stats().Active != 0 {
						w.Error("engaged after Close", err)
					}
				})
			})
		}
	})
	t.Run("ends grants under way", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			p := w.pool(PoolOptions{})
			w.m.Inject(coordtest.Rule{Method: coordtest.Grant, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
			borrowed := make(chan error, 1)
			go func() { _, err := p.Election(w.Context(), "/e/x"); borrowed <- err }()
			synctest.Wait()
			w.must(p.Close())
			if err := <-borrowed; !errors.Is(err, ErrClosed) || w.now() != 0 {
				w.Errorf("%v at %v", err, w.now())
			}
		})
	})
	t.Run("closes what was replaced and not over", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			p := w.pool(PoolOptions{})
			for _, key := range []string{"/e/lost", "/e/muted"} {
				e := w.borrow(p, key)
				if key == "/e/muted" {
					e.Session().muteIfIdle()
				} else {
					w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
					<-e.Session().Lost()
					w.m.Heal()
				}
				w.borrow(p, key)
			}
			w.must(p.Close())
			if len(w.m.Leases()) != 0 || p.Stats().Replaced != 2 {
				w.Errorf("%v, %+v", w.m.Leases(), p.Stats())
			}
		})
	})
	t.Run("goes on when one fails, and says so", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			p := w.pool(PoolOptions{Settle: settleAll})
			for _, key := range []string{"/e/a", "/e/b", "/e/c"} {
				w.must(w.borrow(p, key).Campaign(w.Context(), "me"))
			}
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: 1, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
			w.m.Inject(coordtest.Rule{Method: coordtest.Revoke, Times: 1, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
			err := p.Close()
			if !errors.Is(err, ErrUndecided) || !errors.Is(err, rpctypes.ErrPermissionDenied) {
				w.Error(err)
			}
			if err2 := p.Close(); err2 == nil || err2.Error() != err.Error() {
				w.Error(err2)
			}
			if len(w.m.Leases()) != 1 || len(w.m.Keys("/last/")) != 2 {
				w.Error(w.keys())
			}
		})
	})
}

func TestOptionsOfAPoolAreChecked(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		for _, o := range []PoolOptions{{TTLSec: -1}, {TTLSec: 1 << 40}, {Margin: time.Hour}, {Settle: func(string) SettleOptions { return SettleOptions{Open: "o"} }}} {
			if _, err := w.pool(o).Election(w.Context(), "/e/x"); !errors.Is(err, ErrInvalidOption) {
				w.Errorf("%+v: %v", o, err)
			}
		}
		if _, err := w.pool(PoolOptions{}).Election(w.Context(), "/"); !errors.Is(err, ErrInvalidOption) {
			w.Error(err)
		}
		if n := w.m.Calls(coordtest.Grant); n != 0 {
			w.Errorf("%d grants", n)
		}
	})
}

// Whatever becomes of the calls of a pool's borrowers, its sessions and its etcd: never two leaders, and when it
// is closed nothing is left. It is most useful under the race detector.
func TestAStormOnAPool(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{T: t, m: coordtest.Start(t, coordtest.Options{}), start: time.Now()}
			dice := newDice(seed)
			p := w.pool(PoolOptions{TTLSec: 10, SharedSession: seed%2 == 0, Settle: settleAll})
			keys := []string{"/e/a", "/e/b", "/e/c"}
			var leads [3]leaders
			var callers sync.WaitGroup
			for caller := range 9 {
				callers.Go(func() {
					for range 6 {
						dice.borrow(w, p, fmt.Sprint(caller), keys[caller%3], &leads[caller%3])
					}
				})
			}
			for range 4 {
				time.Sleep(dice.upTo(3 * time.Second)) // in fake time
				if leases := w.m.Leases(); len(leases) > 0 {
					w.must(w.m.Revoke(leases[0].ID))
				}
			}
			if seed%3 == 0 {
				w.must(p.Close())
			}
			callers.Wait()
			w.must(p.Close())
			if st := p.Stats(); st.Active != 0 || st.SessionCount != 0 {
				w.Errorf("seed %d: %+v", seed, st)
			}
			if len(w.m.Keys("/e/")) != 0 || len(w.m.Leases()) != 0 {
				w.Errorf("seed %d left %s, %d leases", seed, w.keys(), len(w.m.Leases()))
			}
		})
	}
}

// borrow borrows, leads for a while, and resigns.
func (d *dice) borrow(w *world, p *ElectionPool, who, key string, leads *leaders) {
	ctx, cancel := context.WithTimeout(context.Background(), d.upTo(4*time.Second))
	defer cancel()
	e, err := p.Election(ctx, key)
	if err != nil {
		return
	}
	term, err := e.CampaignTerm(ctx, who)
	if err != nil {
		return
	}
	leads.begin(w, who)
	select {
	case <-time.After(d.upTo(time.Second)):
	case <-term.Lost():
	}
	leads.end(who)
	_ = e.Resign(context.Background())
}
