package coord

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
)

func TestWatchTellsEveryChangeInOrder(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		changes := w.contender(settled).Watch(ctx)
		if c := next(w, changes); !c.Vacant || c.Ended != nil || c.Stale {
			w.Errorf("at first: %+v", c)
		}
		token := uint64(0)
		for _, name := range []string{"a", "b"} {
			e := w.contender(settled)
			w.must(e.Campaign(w.Context(), name))
			if c := next(w, changes); c.Vacant || c.Leader.Identity != name || c.Leader.Token <= token || c.Leader.Lease != e.Session().Lease() {
				w.Errorf("%+v", c)
			} else {
				token = c.Leader.Token
			}
			w.must(e.Resign(w.Context()))
			if c := next(w, changes); !c.Vacant || c.Ended == nil || c.Ended.Holder != name || c.Ended.How != EndReleased || c.Ended.Token != token {
				w.Errorf("%+v", c)
			}
		}
		cancel()
		if c, ok := <-changes; ok {
			w.Errorf("after the end: %+v", c)
		}
	})
}

func TestASlowWatcherMissesOnlyWhatWasSuperseded(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		changes := w.contender(settled).Watch(ctx)
		e := w.contender(settled)
		for _, name := range []string{"a", "b", "c"} {
			w.must(e.Campaign(w.Context(), name))
			synctest.Wait()
			if name != "c" {
				w.must(e.Resign(w.Context()))
				synctest.Wait()
			}
		}
		if c := next(w, changes); c.Leader.Identity != "c" {
			w.Errorf("%+v", c)
		}
	})
}

func TestObserveTellsLeadersOnlyAndWhatTheySay(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		leaders := w.contender(settled).Observe(ctx)
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		if got := next(w, leaders); got != "a" {
			w.Error(got)
		}
		_, err := w.m.Put(a.Term().Keys().Key, "a says more", a.Session().Lease())
		w.must(err)
		if got := next(w, leaders); got != "a says more" {
			w.Error(got)
		}
		w.must(a.Resign(w.Context()))
		w.must(a.Campaign(w.Context(), "b"))
		if got := next(w, leaders); got != "b" {
			w.Error(got)
		}
		cancel()
		if got, ok := <-leaders; ok {
			w.Error(got)
		}
	})
}

func TestAStreamSurvives(t *testing.T) {
	for name, hurt := range map[string]func(w *world){
		"compaction behind a broken connection": func(w *world) {
			w.m.Kill(0)
			for range 10 {
				_, err := w.m.Put("/noise", "", 0)
				w.must(err)
			}
			w.must(w.m.Compact(w.m.Rev()))
		},
		"a silent member": func(w *world) { w.m.Stop(0) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				ctx, cancel := context.WithCancel(w.Context())
				defer cancel()
				w.must(w.contender(ElectionOptions{Key: "/e/x"}).Campaign(w.Context(), "a"))
				// The watcher's session is not the holder's: a stream ends with its session.
				changes := w.watcher().Watch(ctx)
				if c := next(w, changes); c.Leader.Identity != "a" {
					w.Fatalf("%+v", c)
				}
				time.Sleep(6 * time.Second) // fake time: the watch has proven itself once
				hurt(w)
				heal := func() { w.m.Cont(0); w.m.Revive(0) }
				defer heal()
				if c := next(w, changes); !c.Stale || c.Leader.Identity != "a" || w.now() > 16*time.Second {
					w.Errorf("while etcd is away, at %v: %+v", w.now(), c)
				}
				time.Sleep(time.Minute) // fake time: its lease runs out
				heal()
				c := next(w, changes)
				for c.Stale { // what was missed comes before the proof that it is all
					c = next(w, changes)
				}
				if !c.Vacant {
					w.Errorf("when it is back: %+v", c)
				}
			})
		})
	}
}

// watcher is an election whose session outlives any silence of etcd.
func (w *world) watcher() *Election {
	return w.election(w.session(SessionOptions{TTL: 24 * time.Hour}), ElectionOptions{Key: "/e/x"})
}

func TestAStreamWhoseWatchIsLostMissesNothing(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		loseWatch(w)
		changes := w.watcher().Watch(ctx)
		if c := next(w, changes); !c.Vacant {
			w.Errorf("%+v", c)
		}
		w.must(w.contender(ElectionOptions{Key: "/e/x"}).Campaign(w.Context(), "a"))
		if c := next(w, changes); c.Leader.Identity != "a" || c.Stale || w.now() > 5*time.Second {
			w.Errorf("at %v: %+v", w.now(), c)
		}
	})
}

func TestAStreamThatMayNotReadIsStaleFromTheFirst(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		e := w.watcher()
		w.m.Inject(coordtest.Rule{Method: coordtest.Range, Times: coordtest.Forever, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
		changes, leaders := e.Watch(ctx), e.Observe(ctx)
		if c := next(w, changes); c != (LeaderChange{Stale: true}) || w.now() != 0 {
			w.Errorf("at %v: %+v", w.now(), c)
		}
		w.m.Heal()
		if c := next(w, changes); !c.Vacant || c.Stale {
			w.Errorf("%+v", c)
		}
		w.must(w.contender(ElectionOptions{Key: "/e/x"}).Campaign(w.Context(), "a"))
		if c := next(w, changes); c.Leader.Identity != "a" {
			w.Errorf("%+v", c)
		}
		if got := next(w, leaders); got != "a" {
			w.Error(got)
		}
	})
}

// TestAQueueThatIsSweptAwayHasNoLeaderInBetween: one revision takes all candidates, the first one first.
func TestAQueueThatIsSweptAwayHasNoLeaderInBetween(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		for _, name := range []string{"a", "b", "c"} {
			w.write("/e/x/"+name, name)
		}
		leaders := w.watcher().Observe(ctx)
		if got := next(w, leaders); got != "a" {
			w.Error(got)
		}
		synctest.Wait()
		_, err := w.m.Client(w).Delete(w.Context(), "/e/x/", clientv3.WithPrefix())
		w.must(err)
		silent(w, leaders)
		w.write("/e/x/d", "d")
		if got := next(w, leaders); got != "d" {
			w.Error(got)
		}
	})
}

// TestALeaderWhoCameAndWentUnseenIsNotForgotten: a vacancy after another one is another one, and who led last is
// who led last.
func TestALeaderWhoCameAndWentUnseenIsNotForgotten(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		changes, leaders := w.contender(settled).Watch(ctx), w.contender(settled).Observe(ctx)
		if c := next(w, changes); !c.Vacant || c.Ended != nil {
			w.Errorf("%+v", c)
		}
		e := w.contender(settled)
		for _, name := range []string{"a", "b"} {
			w.must(e.Campaign(w.Context(), name))
			w.must(e.Resign(w.Context()))
			synctest.Wait()
		}
		if c := next(w, changes); !c.Vacant || c.Ended == nil || c.Ended.Holder != "b" {
			w.Errorf("%+v", c)
		}
		if got := next(w, leaders); got != "b" {
			w.Error(got)
		}
		silent(w, changes)
		silent(w, leaders)
	})
}

func TestWhoQueuesBehindTheLeaderIsNotTold(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		w.write("/e/x/1", "a")
		changes, leaders := w.watcher().Watch(ctx), w.watcher().Observe(ctx)
		if c, got := next(w, changes), next(w, leaders); c.Leader.Identity != "a" || got != "a" {
			w.Errorf("%+v, %q", c, got)
		}
		w.write("/e/x/2", "b")
		w.m.Delete("/e/x/2")
		silent(w, changes)
		silent(w, leaders)
	})
}

// next is what a stream tells next.
func next[T any](w *world, from <-chan T) (v T) {
	w.Helper()
	select {
	case v = <-from:
	case <-time.After(10 * time.Minute): // fake time
		w.Fatalf("at %v: told nothing", w.now())
	}
	return v
}

// silent checks that a stream tells nothing for a minute.
func silent[T any](w *world, from <-chan T) {
	w.Helper()
	select {
	case v := <-from:
		w.Errorf("at %v: told %+v, want nothing", w.now(), v)
	case <-time.After(time.Minute): // fake time
	}
}

func TestStreamsEndWithTheSession(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		e := w.contender(settled)
		changes, leaders := e.Watch(w.Context()), e.Observe(w.Context())
		next(w, changes)
		w.must(e.Session().Close(w.Context()))
		for range changes {
		}
		for range leaders {
		}
		for range e.Watch(w.Context()) {
			w.Error("a stream on a closed session")
		}
		for range e.Observe(w.Context()) {
			w.Error("a stream on a closed session")
		}
	})
}

func TestQueriesSayWhatWentWrong(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		e := w.contender(settled)
		w.must(e.Campaign(w.Context(), "a"))
		queued := w.campaign(w.Context(), w.contender(settled), "b")
		all, err := e.Candidates(w.Context())
		if err != nil || len(all) != 2 || all[0].Identity != "a" || all[1].Identity != "b" || all[0].Token >= all[1].Token {
			w.Errorf("%+v %v", all, err)
		}
		w.m.Inject(coordtest.Rule{Method: coordtest.Range, Times: coordtest.Forever, When: func(c *coordtest.Call) bool { return true },
			Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
		if _, err := e.Leader(w.Context()); !errors.Is(err, rpctypes.ErrPermissionDenied) {
			w.Error(err)
		}
		if _, err := e.Candidates(w.Context()); !errors.Is(err, rpctypes.ErrPermissionDenied) {
			w.Error(err)
		}
		if _, _, err := LastEnd(w.Context(), e.s.cli, settled.Settle); !errors.Is(err, rpctypes.ErrPermissionDenied) {
			w.Error(err)
		}
		w.must(e.Close())
		w.must(queued.wait().err)
	})
	t.Run("an unreadable end is none", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			cli := w.m.Client(w)
			for _, value := range []string{"", "x", "[]"} {
				_, err := w.m.Put("/last/x", value, 0)
				w.must(err)
				if end, found, err := LastEnd(w.Context(), cli, settled.Settle); found || err != nil {
					w.Errorf("%q: %+v %v", value, end, err)
				}
			}
		})
	})
}
