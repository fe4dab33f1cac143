package coord

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord/coordtest"
)

// through is keys as another process gets them.
func (w *world) through(k TermKeys) TermKeys {
	raw, err := json.Marshal(k)
	w.must(err)
	var got TermKeys
	w.must(json.Unmarshal(raw, &got))
	return got
}

func TestAnotherProcessCanEndATerm(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), `{"host":"h"}`))
		keys := w.through(a.Term().Keys())
		b := w.campaign(w.Context(), w.contender(settled), "b")

		// The wrapper is dead: another process, with the keys and a client of its own, releases.
		other := w.m.Client(w)
		before := w.m.Calls(coordtest.Txn)
		w.must(keys.Release(w.Context(), other, "orphaned"))
		if n := w.m.Calls(coordtest.Txn) - before; n > 2 {
			w.Errorf("%d Txns, want the release and b's decision", n)
		}
		w.must(b.wait().err)
		if b.at != 0 {
			w.Errorf("b started at %v, want at once", b.at)
		}
		end, found, err := LastEnd(w.Context(), other, settled.Settle)
		if err != nil || !found || end.How != "orphaned" || end.Holder != `{"host":"h"}` || end.Token != uint64(keys.Rev) {
			w.Errorf("%+v %v %v", end, found, err)
		}

		// Again, it finds nothing of its own, and touches nothing.
		held := w.keys()
		w.must(keys.Release(w.Context(), other, "orphaned"))
		w.must(keys.CloseRecord(w.Context(), other, EndLost))
		if w.keys() != held {
			w.Errorf("keys %s, want %s", w.keys(), held)
		}
	})
}

// placing are the options of an election that tells of its keys.
func placing(told *[]TermKeys) ElectionOptions {
	o := settled
	o.Placed = func(k TermKeys) { *told = append(*told, k) }
	return o
}

func TestAnotherProcessCanTakeAWaiterAway(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		var told []TermKeys
		b := w.campaign(w.Context(), w.contender(placing(&told)), "b")
		c := w.campaign(w.Context(), w.contender(settled), "c")
		if len(told) != 1 {
			w.Fatalf("told of %d keys, want the one that queues", len(told))
		}
		keys := w.through(told[0])
		time.Sleep(2 * watchAfter)

		// The middle one is dead: its key goes, the holder's record and the others stay.
		other := w.m.Client(w)
		record := w.m.Get("/open/x").ModRevision
		w.must(keys.Release(w.Context(), other, "orphaned"))
		if !b.finished() || !errors.Is(b.err, ErrTermLost) && !errors.Is(b.err, ErrSessionLost) {
			w.Errorf("b: %v", b.err)
		}
		if got := w.m.Get("/open/x"); got == nil || got.ModRevision != record || w.m.Get("/last/x") != nil || a.Term() == nil || c.finished() {
			w.Errorf("record %v, last %v, a %v, c %v", got, w.m.Get("/last/x"), a.Term(), c.err)
		}
		resigned := w.now()
		w.must(a.Resign(w.Context()))
		w.must(c.wait().err)
		if c.at != resigned {
			w.Errorf("c started at %v, want %v, at once", c.at, resigned)
		}

		// Again, it finds nothing of its own, and touches nothing.
		held := w.keys()
		w.must(keys.Release(w.Context(), other, "orphaned"))
		if w.keys() != held {
			w.Errorf("keys %s, want %s", w.keys(), held)
		}
	})
}

func TestAWinnerIsToldOfBeforeItCanSaySo(t *testing.T) {
	// What dies between its win and the word about it leaves key and record: both are found by what was told.
	for name, lose := range map[string]func(w *world){
		"as it came":                   func(*world) {},
		"by a Txn whose reply is lost": func(w *world) { w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.LoseReply(nil)}) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				var told []TermKeys
				e := w.contender(placing(&told))
				lose(w)
				w.must(e.Campaign(w.Context(), "a"))
				if len(told) != 1 || told[0].OpenRev != 0 {
					w.Fatalf("told of %+v, want of one key, before its record was known", told)
				}
				w.must(w.through(told[0]).Release(w.Context(), w.m.Client(w), "orphaned"))
				if w.keys() != "[/last/x]" {
					w.Error(w.keys())
				}
			})
		})
	}
}

func TestARecordCanBeClosedWithoutTheKey(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.ResignAs(w.Context(), EndLost)) // no term: nothing
		w.must(a.Campaign(w.Context(), "a"))
		w.must(a.Term().Keys().CloseRecord(w.Context(), a.s.cli, EndLost))
		if w.m.Get("/open/x") != nil || w.m.Get(a.Term().Keys().Key) == nil {
			w.Error(w.keys())
		}
	})
}

func TestAReleaseThatFails(t *testing.T) {
	for name, row := range map[string]struct {
		method coordtest.Method
		action coordtest.Action
		times  int
		ok     bool
	}{
		"is told when it is refused":                       {coordtest.Txn, coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied), 1, false},
		"is repeated when the answer is lost":              {coordtest.Txn, coordtest.LoseReply(nil), 2, true},
		"is repeated when the request is lost":             {coordtest.Txn, coordtest.LoseRequest(), 2, true},
		"is told when nobody answers in time":              {coordtest.Txn, coordtest.LoseRequest(), coordtest.Forever, false},
		"is told when the revoke's outcome is unknown":     {coordtest.Revoke, coordtest.LoseRequest(), 1, false},
		"is done all the same when the revoke is refused":  {coordtest.Revoke, coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied), 1, true},
		"is done all the same when the lease has gone now": {coordtest.Revoke, coordtest.Refuse(rpctypes.ErrGRPCLeaseNotFound), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				a := w.contender(settled)
				w.must(a.Campaign(w.Context(), "a"))
				keys := a.Term().Keys()
				w.m.Inject(coordtest.Rule{Method: row.method, Times: row.times, Action: row.action})
				ctx, cancel := context.WithTimeout(w.Context(), 8*time.Second)
				defer cancel()
				if err := keys.Release(ctx, w.m.Client(w), EndReleased); (err == nil) != row.ok {
					w.Error(err)
				}
			})
		})
	}
}

func TestLeavingFindsARecordWhoseReplyWasLost(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		b := w.contender(settled)
		ctx, cancel := context.WithCancel(w.Context())
		call := w.campaign(ctx, b, "b")
		// b's decision is committed, its reply lost, and b is told to stop before it can look.
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/open/x"), Action: coordtest.LoseReply(nil)})
		w.must(a.Resign(w.Context()))
		synctest.Wait()
		if w.m.Get("/open/x") == nil {
			w.Fatal("not decided")
		}
		cancel()
		if err := call.wait().err; !errors.Is(err, context.Canceled) {
			w.Error(err)
		}
		if w.keys() != "[/last/x]" {
			w.Errorf("left behind: %s", w.keys())
		}
	})
}

func TestADecisionWhoseReplyWasLostIsAdopted(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		b := w.contender(settled)
		call := w.campaign(w.Context(), b, "b")
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/open/x"), Action: coordtest.LoseReply(coordtest.Unavailable("broken"))})
		w.must(a.Resign(w.Context()))
		w.must(call.wait().err)
		if rec := w.m.Get("/open/x"); rec.ModRevision != b.Term().Keys().OpenRev || call.at > time.Second {
			w.Errorf("record %v, keys %+v, at %v", rec, b.Term().Keys(), call.at)
		}
	})
}

func TestACandidateHearsFromTheDecisionItselfThatItsKeyIsGone(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		b := w.contender(settled)
		call := w.campaign(w.Context(), b, "b")
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/open/x"), Action: coordtest.Before(func() {
			w.m.Delete("/e/x/" + leaseHex(b.Session()))
		})})
		w.must(a.Resign(w.Context()))
		if err := call.wait().err; !errors.Is(err, ErrKeyGone) || call.at != 0 {
			w.Errorf("%v at %v", err, call.at)
		}
		if w.keys() != "[/last/x]" {
			w.Error(w.keys())
		}
	})
}

func TestAKeyLeftByAnEarlierAttemptIsAdopted(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		e := w.contender(settled)
		_, err := w.m.Put("/e/x/"+leaseHex(e.Session()), "a", e.Session().Lease())
		w.must(err)
		won, err := e.TryCampaign(w.Context(), "a")
		if !won || err != nil {
			w.Error(won, err)
		}
		w.must(e.Resign(w.Context()))
		if w.keys() != "[/last/x]" {
			w.Error(w.keys())
		}
	})
}

func TestOneTxnClosesTheRecordAlsoWhereTheLeaseWentFirst(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		e := w.contender(settled)
		w.must(e.Campaign(w.Context(), "a"))
		before := w.m.Calls(coordtest.Txn)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Before(func() { w.must(w.m.Revoke(e.Session().Lease())) })})
		w.must(e.Resign(w.Context()))
		if n := w.m.Calls(coordtest.Txn) - before; n != 1 || w.keys() != "[/last/x]" {
			w.Errorf("%d Txns, keys %s", n, w.keys())
		}
	})
}

func TestAFullEtcdStillReleases(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		e := w.contender(settled)
		w.must(e.Campaign(w.Context(), "a"))
		w.m.NoSpace(true)
		time.Sleep(time.Minute)
		w.must(e.Term().Check())
		w.must(e.Resign(w.Context()))
		if w.keys() != "[]" {
			w.Error(w.keys())
		}
	})
}

func TestAReleaseFindsOutHowThingsAre(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		keys := a.Term().Keys()
		// The record was rewritten by hand: it is still of this lease, with another mod revision.
		_, err := w.m.Put("/open/x", string(w.m.Get("/open/x").Value), 0)
		w.must(err)
		w.must(keys.Release(w.Context(), w.m.Client(w), EndReleased))
		if w.keys() != "[/last/x]" {
			w.Error(w.keys())
		}
	})
}

func TestWhatGoesWrongOnTheWayIsTold(t *testing.T) {
	refused := coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)
	t.Run("a decision refused", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			a := w.contender(settled)
			w.must(a.Campaign(w.Context(), "a"))
			call := w.campaign(w.Context(), w.contender(settled), "b")
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Skip: 1, Action: refused})
			w.must(a.Resign(w.Context()))
			if err := call.wait().err; !errors.Is(err, rpctypes.ErrPermissionDenied) {
				w.Error(err)
			}
		})
	})
	t.Run("a lease revoked under the first request", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			e := w.contender(settled)
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Before(func() { w.must(w.m.Revoke(e.Session().Lease())) })})
			if err := e.Campaign(w.Context(), "a"); !errors.Is(err, ErrLeaseGone) || !errors.Is(err, ErrSessionLost) {
				w.Error(err)
			}
		})
	})
	t.Run("neither committed nor readable", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			e := w.contender(settled)
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.LoseReply(nil)})
			w.m.Inject(coordtest.Rule{Method: coordtest.Range, Action: refused})
			if err := e.Campaign(w.Context(), "a"); !errors.Is(err, ErrUndecided) {
				w.Error(err)
			}
		})
	})
	t.Run("committed after the caller had given up", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			e := w.contender(settled)
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.LoseReply(nil)})
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			defer cancel()
			if err := e.Campaign(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
				w.Error(err)
			}
			if w.keys() != "[/last/x]" {
				w.Error(w.keys())
			}
		})
	})
	t.Run("leaving refused", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			w.must(w.contender(settled).Campaign(w.Context(), "a"))
			s := w.session(SessionOptions{})
			w.must(w.election(s, ElectionOptions{Key: "/e/other"}).Campaign(w.Context(), "o"))
			b := w.election(s, settled)
			ctx, cancel := context.WithCancel(w.Context())
			call := w.campaign(ctx, b, "b")
			// The release, and the first two tries to tidy up after it, are refused or lost.
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: 3, When: deletes, Action: refused})
			cancel()
			if err := call.wait().err; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUndecided) {
				w.Error(err)
			}
			if won, err := b.TryCampaign(w.Context(), "b"); won || err != nil {
				w.Error(won, err)
			}
			time.Sleep(5 * time.Second)
			if w.m.Get("/e/x/"+leaseHex(s)) != nil {
				w.Error("the key stayed")
			}
			w.must(s.Check())
			queued := w.campaign(w.Context(), b, "b")
			if queued.finished() {
				w.Error("not free again", queued.err)
			}
		})
	})
	t.Run("leaving an etcd that is away", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			w.must(w.contender(settled).Campaign(w.Context(), "a"))
			b := w.campaign(w.Context(), w.contender(settled), "b")
			w.m.Kill(0)
			if err := b.wait().err; !errors.Is(err, ErrUnproven) || !errors.Is(err, ErrUndecided) {
				w.Error(err)
			}
			if b.at > 8*time.Second {
				w.Errorf("left at %v, want soon after the loss at 3.5s", b.at)
			}
		})
	})
	t.Run("a settling try given up", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			_, err := w.m.Put("/open/x", "garbage", 0)
			w.must(err)
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			defer cancel()
			if won, err := w.contender(settled).TryCampaign(ctx, "a"); won || !errors.Is(err, context.DeadlineExceeded) {
				w.Error(won, err)
			}
			if w.keys() != "[/open/x]" {
				w.Error(w.keys())
			}
		})
	})
	t.Run("an election closed while etcd refuses", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			e, err := NewElection(w.Context(), w.m.Client(w), ElectionOptions{Key: "/e/x", Clock: w.now})
			w.must(err)
			w.must(e.Campaign(w.Context(), "a"))
			for _, method := range []coordtest.Method{coordtest.Txn, coordtest.Revoke} {
				w.m.Inject(coordtest.Rule{Method: method, Times: coordtest.Forever, Action: refused})
			}
			if err := e.Close(); !errors.Is(err, ErrUndecided) {
				w.Error(err)
			}
		})
	})
	t.Run("a watch that broke and a read that fails after it", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			a := w.contender(settled)
			w.must(a.Campaign(w.Context(), "a"))
			call := w.campaign(w.Context(), w.contender(settled), "b")
			w.m.Inject(coordtest.Rule{Method: coordtest.Range, Times: 2, Action: refused})
			// Both watches resume below the compaction, so their streams end and the keys are read.
			w.m.Kill(0)
			for range 5 {
				_, err := w.m.Put("/noise", "", 0)
				w.must(err)
			}
			w.must(w.m.Compact(w.m.Rev()))
			w.m.Revive(0)
			time.Sleep(3 * time.Second)
			w.must(a.Term().Check())
			w.must(a.Resign(w.Context()))
			w.must(call.wait().err)
			if call.at != 3*time.Second {
				w.Errorf("b started at %v", call.at)
			}
		})
	})
}

func TestTheEndOfAKeyIsFoundByReadingWhereItsEventIsCompacted(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		rev, err := w.m.Put("/k", "", 0)
		w.must(err)
		ended := make(chan bool)
		go func() {
			ended <- awaitEnd(w.Context(), s, "/k", rev+1, func(kv *mvccpb.KeyValue) bool { return kv != nil })
		}()
		synctest.Wait()
		w.m.Kill(0)
		w.m.Delete("/k")
		_, err = w.m.Put("/noise", "", 0)
		w.must(err)
		w.must(w.m.Compact(w.m.Rev()))
		w.m.Revive(0)
		if !<-ended {
			w.Error("not found")
		}
	})
}

func TestALossExplainsADecisionThatFailed(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		b := w.contender(settled)
		call := w.campaign(w.Context(), b, "b")
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/open/x"), Action: coordtest.LoseRequest()})
		w.must(a.Resign(w.Context()))
		synctest.Wait()
		w.m.Delete("/e/x/" + leaseHex(b.Session()))
		if err := call.wait().err; !errors.Is(err, ErrKeyGone) {
			w.Error(err)
		}
	})
}

// deletes picks the Txns whose first branch deletes something.
func deletes(c *coordtest.Call) bool {
	for _, op := range c.Request.(*pb.TxnRequest).Success {
		if op.GetRequestDeleteRange() != nil {
			return true
		}
	}
	return false
}

func TestAnExpiryLongAfterItsAnswerRanOutNeedsNoWaitAtAll(t *testing.T) {
	inBubble(t, coordtest.Options{Members: 2, RevokeLag: 5 * time.Second}, func(w *world) {
		a := w.contender(settled, 1)
		w.must(a.Campaign(w.Context(), "a"))
		b := w.campaign(w.Context(), w.contender(settled, 0), "b")
		time.Sleep(100 * time.Millisecond)
		w.m.Stop(1)
		w.must(b.wait().err)
		if b.at != 15*time.Second {
			w.Errorf("started at %v, want when the key went, at 15s", b.at)
		}
		w.m.Cont(1)
	})
}

func TestARenewalAskedForTwiceIsOne(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		s.renewNow()
		s.renewNow()
		synctest.Wait()
		if n := w.m.Calls(coordtest.KeepAlive); n != 1 {
			w.Errorf("%d renewals", n)
		}
	})
}
