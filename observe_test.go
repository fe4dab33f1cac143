package coord

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord/coordtest"
)

func TestWatchTellsEveryChangeInOrder(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		changes := w.contender(settled).Watch(ctx)
		if c := <-changes; !c.Vacant || c.Ended != nil || c.Stale {
			w.Errorf("at first: %+v", c)
		}
		token := uint64(0)
		for _, name := range []string{"a", "b"} {
			e := w.contender(settled)
			w.must(e.Campaign(w.Context(), name))
			if c := <-changes; c.Vacant || c.Leader.Identity != name || c.Leader.Token <= token || c.Leader.Lease != e.Session().Lease() {
				w.Errorf("%+v", c)
			} else {
				token = c.Leader.Token
			}
			w.must(e.Resign(w.Context()))
			if c := <-changes; !c.Vacant || c.Ended == nil || c.Ended.Holder != name || c.Ended.How != EndReleased || c.Ended.Token != token {
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
		if c := <-changes; c.Leader.Identity != "c" {
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
		if got := <-leaders; got != "a" {
			w.Error(got)
		}
		_, err := w.m.Put(a.Term().Keys().Key, "a says more", a.Session().Lease())
		w.must(err)
		if got := <-leaders; got != "a says more" {
			w.Error(got)
		}
		w.must(a.Resign(w.Context()))
		w.must(a.Campaign(w.Context(), "b"))
		if got := <-leaders; got != "b" {
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
				if c := <-changes; c.Leader.Identity != "a" {
					w.Fatalf("%+v", c)
				}
				time.Sleep(6 * time.Second) // the watch is there, and one probe agreed with it
				hurt(w)
				if c := <-changes; !c.Stale || c.Leader.Identity != "a" {
					w.Errorf("while etcd is away: %+v", c)
				}
				time.Sleep(time.Minute)
				w.m.Cont(0)
				w.m.Revive(0)
				if c := <-changes; !c.Vacant || c.Stale {
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

func TestAStreamThatMissedAnEventIsPutRightByAProbe(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		w.m.Inject(coordtest.Rule{Method: coordtest.Watch, Action: coordtest.LoseRequest()})
		changes := w.watcher().Watch(ctx)
		if c := <-changes; !c.Vacant {
			w.Errorf("%+v", c)
		}
		time.Sleep(6 * time.Second) // one probe that agrees
		w.must(w.contender(ElectionOptions{Key: "/e/x"}).Campaign(w.Context(), "a"))
		if c := <-changes; c.Leader.Identity != "a" {
			w.Errorf("%+v", c)
		}
		if w.now() != 10*time.Second {
			w.Errorf("put right at %v, want by the second probe", w.now())
		}
	})
}

func TestStreamsEndWithTheSession(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		e := w.contender(settled)
		changes, leaders := e.Watch(w.Context()), e.Observe(w.Context())
		<-changes
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
