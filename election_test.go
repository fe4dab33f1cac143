package coord

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
)

func TestAFreeElectionIsWonInOneRoundTrip(t *testing.T) {
	for name, win := range map[string]func(context.Context, *Election) error{
		"Campaign":    func(ctx context.Context, e *Election) error { return e.Campaign(ctx, "a") },
		"TryCampaign": func(ctx context.Context, e *Election) error { _, err := e.TryCampaign(ctx, "a"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				e := w.contender(settled)
				w.must(win(w.Context(), e))
				if n := w.m.Calls(coordtest.Txn) + w.m.Calls(coordtest.Range); n != 1 {
					w.Errorf("%d requests, want 1", n)
				}
				if kv := w.m.Get("/e/x/" + leaseHex(e.Session())); kv == nil || kv.CreateRevision != int64(e.Term().Token()) || string(kv.Value) != "a" {
					w.Errorf("key %v, token %d", kv, e.Term().Token())
				}
				if rec := DecodeRecord(w.m.Get("/open/x"), 0); rec.Lease != e.Session().Lease() || rec.TTL != 10*time.Second || rec.Term != 3500*time.Millisecond {
					w.Errorf("record %+v", rec)
				}
			})
		})
	}
}

func TestAHeldElectionIsRefusedInOneRoundTripAndNothingIsLeft(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.must(w.contender(settled).Campaign(w.Context(), "a"))
		b := w.contender(settled)
		keys, before := w.keys(), w.m.Calls(coordtest.Txn)
		won, err := b.TryCampaign(w.Context(), "b")
		if won || err != nil {
			w.Fatal(won, err)
		}
		if n := w.m.Calls(coordtest.Txn) - before; n != 1 || w.keys() != keys {
			w.Errorf("%d requests, keys %s, want %s", n, w.keys(), keys)
		}
	})
}

func TestCandidatesLeadInTheOrderInWhichTheyCame(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		names := strings.Split("abcdefgh", "")
		var es []*Election
		var calls []*async
		for _, name := range names {
			e := w.contender(settled)
			es, calls = append(es, e), append(calls, w.campaign(w.Context(), e, name))
		}
		token := uint64(0)
		for i, c := range calls {
			w.must(c.wait().err)
			for _, later := range calls[i+1:] {
				if later.finished() {
					w.Fatalf("two lead after %q", names[i])
				}
			}
			if c.term.Token() <= token {
				w.Errorf("token %d after %d", c.term.Token(), token)
			}
			token = c.term.Token()
			leader, err := es[0].Leader(w.Context())
			if err != nil || leader.Identity != names[i] || leader.Token != token {
				w.Errorf("leader %+v, %v", leader, err)
			}
			w.must(es[i].Resign(w.Context()))
		}
		if _, err := es[0].Leader(w.Context()); !errors.Is(err, ErrNoLeader) {
			w.Error(err)
		}
		if w.keys() != "[/last/x]" {
			w.Errorf("left behind: %s", w.keys())
		}
		if w.now() != 0 {
			w.Errorf("handing over took %v of waiting", w.now())
		}
	})
}

func TestAReleaseWakesItsSuccessorOnly(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		var calls []*async
		for range 5 {
			calls = append(calls, w.campaign(w.Context(), w.contender(settled), "q"))
		}
		before := w.m.Calls(coordtest.Txn)
		w.must(a.Resign(w.Context()))
		w.must(calls[0].wait().err)
		synctest.Wait()
		if n := w.m.Calls(coordtest.Txn) - before; n != 2 {
			w.Errorf("%d Txns for one hand-over, want 2: the release and the decision", n)
		}
	})
}

func TestACampaignThatIsGivenUpLeavesNoKey(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.must(w.contender(settled).Campaign(w.Context(), "a"))
		keys := w.keys()
		ctx, cancel := context.WithCancelCause(w.Context())
		b := w.contender(settled)
		call := w.campaign(ctx, b, "b")
		if w.keys() == keys {
			w.Fatal("not queued")
		}
		gave := errors.New("gave up")
		cancel(gave)
		if err := call.wait().err; !errors.Is(err, gave) {
			w.Error(err)
		}
		if w.keys() != keys {
			w.Errorf("keys %s, want %s", w.keys(), keys)
		}
		// The same object may campaign again.
		if won, err := b.TryCampaign(w.Context(), "b"); won || err != nil {
			w.Error(won, err)
		}
	})
}

func TestACandidateWhoseLeaseOrKeyGoesNeverLeads(t *testing.T) {
	for name, row := range map[string]struct {
		act  func(w *world, b *Session)
		want error
	}{
		"revoked": {func(w *world, b *Session) { w.must(w.m.Revoke(b.Lease())) }, ErrKeyGone},
		"deleted": {func(w *world, b *Session) { w.m.Delete("/e/x/" + leaseHex(b)) }, ErrKeyGone},
		"replaced": {func(w *world, b *Session) {
			key := "/e/x/" + leaseHex(b)
			w.m.Delete(key)
			_, err := w.m.Put(key, "b", b.Lease())
			w.must(err)
		}, ErrTermLost},
		"moved to a foreign lease": {func(w *world, b *Session) {
			id, err := w.m.Grant(0, 60)
			w.must(err)
			_, err = w.m.Put("/e/x/"+leaseHex(b), "b", id)
			w.must(err)
		}, ErrKeyReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				a := w.contender(settled)
				w.must(a.Campaign(w.Context(), "a"))
				b := w.contender(settled)
				call := w.campaign(w.Context(), b, "b")
				c := w.campaign(w.Context(), w.contender(settled), "c")
				row.act(w, b.Session())
				if err := call.wait().err; !errors.Is(err, row.want) || !errors.Is(err, ErrTermLost) && !errors.Is(err, ErrSessionLost) {
					w.Errorf("campaign: %v, want %v", err, row.want)
				}
				w.must(a.Resign(w.Context()))
				if name != "moved to a foreign lease" { // that key is not ours any more, and stays ahead of c
					w.must(c.wait().err)
				}
			})
		})
	}
}

// Red when the watch, which begins a moment later, begins with what is then the present.
func TestAKeyThatGoesBeforeItsWatchBeginsIsMissedAllTheSame(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		e := w.contender(settled)
		term, err := e.CampaignTerm(w.Context(), "a")
		w.must(err)
		at := w.now()
		w.m.Delete("/e/x/" + leaseHex(e.Session()))
		<-term.Lost()
		if took := w.now() - at; took != watchAfter || !errors.Is(term.Check(), ErrKeyGone) {
			w.Errorf("heard of it after %v: %v", took, term.Check())
		}
	})
}

// Red when each watch begins as soon as that of a lone key: winning the next keys then waits for watching the last ones.
func TestOfManyKeysAtOnceFewBeginToBeWatchedAtOnce(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		const many = watchFew + 100
		s := w.session(SessionOptions{})
		for i := range many {
			_, err := w.election(s, ElectionOptions{Key: fmt.Sprintf("/many/%d", i)}).CampaignTerm(w.Context(), "a")
			w.must(err)
		}
		for _, row := range []struct {
			after time.Duration
			want  int
		}{
			{watchAfter, watchFew}, {watchAfter + s.bounds.Renew, watchFew},
			{watchAfter + s.bounds.Renew + 50*watchApart, watchFew + 50}, {watchAfter + s.bounds.Renew + 100*watchApart, many},
		} {
			time.Sleep(row.after - w.now())
			synctest.Wait()
			if got := w.m.Watches(); got != row.want {
				w.Errorf("%v after they were won, %d of %d keys are watched, want %d", row.after, got, many, row.want)
			}
		}
		// Nor does the next one wait for what is watched, or for what was given up before it was.
		for i := range 10 * many {
			e := w.election(s, ElectionOptions{Key: fmt.Sprintf("/brief/%d", i)})
			w.must(e.Campaign(w.Context(), "a"))
			w.must(e.Resign(w.Context()))
		}
		_, err := w.election(s, ElectionOptions{Key: "/next"}).CampaignTerm(w.Context(), "a")
		w.must(err)
		time.Sleep(watchAfter)
		synctest.Wait()
		if got := w.m.Watches(); got != many+1 {
			w.Errorf("%d keys are watched, want %d", got, many+1)
		}
	})
}

// Red when keys that are watched make room at once for others: of thousands that are won in seconds, hundreds were watched meanwhile.
func TestOfManyKeysThatTrickleInFewAreWatchedAtOnce(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		won := 0
		win := func(n int) {
			for range n {
				won++
				w.must(w.election(s, ElectionOptions{Key: fmt.Sprintf("/some/%d", won)}).Campaign(w.Context(), "a"))
			}
		}
		watched := func(after time.Duration, want int) {
			w.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := w.m.Watches(); got != want {
				w.Errorf("at %v %d of %d keys are watched, want %d", w.now(), got, won, want)
			}
		}
		win(watchFew)
		watched(5*watchEvery, watchFew)
		win(10) // there is room for five
		watched(5*watchEvery, watchFew+5)
		watched(s.bounds.Renew, watchFew+10)
		win(watchFew)
		watched(5*watchEvery, 2*watchFew+10)
	})
}

// Red when the renewals leave out keys that are not watched yet.
func TestAKeyThatIsNotWatchedYetIsMissedByTheNextRenewal(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		const many = 3000 // the last is watched after seven seconds
		s := w.session(SessionOptions{})
		var last *Term
		for i := range many {
			var err error
			last, err = w.election(s, ElectionOptions{Key: fmt.Sprintf("/many/%d", i)}).CampaignTerm(w.Context(), "a")
			w.must(err)
		}
		w.m.Delete(last.Keys().Key)
		<-last.Lost()
		if w.now() > s.Bounds().Renew || !errors.Is(last.Check(), ErrKeyGone) {
			w.Errorf("heard of it at %v: %v", w.now(), last.Check())
		}
		w.must(s.Check())
	})
}

func TestALeaderWhoseKeyIsTouchedHearsOfItAtOnce(t *testing.T) {
	for name, row := range map[string]struct {
		act  func(w *world, s *Session)
		want []error
	}{
		"revoked": {func(w *world, s *Session) { w.must(w.m.Revoke(s.Lease())) }, []error{ErrTermLost, ErrKeyGone}},
		"deleted": {func(w *world, s *Session) { w.m.Delete("/e/x/" + leaseHex(s)) }, []error{ErrTermLost, ErrKeyGone}},
		"moved": {func(w *world, s *Session) {
			id, err := w.m.Grant(0, 60)
			w.must(err)
			_, err = w.m.Put("/e/x/"+leaseHex(s), "a", id)
			w.must(err)
		}, []error{ErrTermLost, ErrKeyReplaced}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				e := w.contender(settled)
				term, err := e.CampaignTerm(w.Context(), "a")
				w.must(err)
				time.Sleep(time.Minute + 100*time.Millisecond) // between two renewals
				at := w.now()
				row.act(w, e.Session())
				<-term.Lost()
				if w.now() != at {
					w.Errorf("heard of it after %v", w.now()-at)
				}
				for _, want := range row.want {
					if err := context.Cause(term.Context()); !errors.Is(err, want) {
						w.Errorf("cause %v, want %v", err, want)
					}
				}
				if e.Term() != nil {
					w.Error("still leads")
				}
			})
		})
	}
}

func TestALossThatTheWatchDidNotSeeIsSeenByTheNextRenewal(t *testing.T) {
	for name, act := range map[string]func(w *world, s *Session){
		"deleted": func(w *world, s *Session) { w.m.Delete("/e/x/" + leaseHex(s)) },
		"revoked": func(w *world, s *Session) { w.must(w.m.Revoke(s.Lease())) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				w.m.Inject(coordtest.Rule{Method: coordtest.Watch, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
				e := w.contender(settled)
				term, err := e.CampaignTerm(w.Context(), "a")
				w.must(err)
				time.Sleep(100 * time.Millisecond)
				act(w, e.Session())
				<-term.Lost()
				if w.now() != time.Second {
					w.Errorf("seen at %v, want 1s", w.now())
				}
			})
		})
	}
}

func TestResign(t *testing.T) {
	t.Run("without a term does nothing", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) { w.must(w.contender(settled).Resign(w.Context())) })
	})
	t.Run("is done although its context has ended", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			e := w.contender(settled)
			w.must(e.Campaign(w.Context(), "a"))
			dead, cancel := context.WithCancel(w.Context())
			cancel()
			w.must(e.Resign(dead))
			if w.keys() != "[/last/x]" {
				w.Error(w.keys())
			}
		})
	})
	t.Run("tells when the outcome is unknown, and can be repeated", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			e := w.contender(settled)
			w.must(e.Campaign(w.Context(), "a"))
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.LoseRequest()})
			dead, cancel := context.WithCancel(w.Context())
			cancel()
			if err := e.Resign(dead); !errors.Is(err, ErrUndecided) {
				w.Fatal(err)
			}
			if _, err := e.TryCampaign(w.Context(), "a"); err == nil {
				w.Error("campaigned for a key whose fate is unknown")
			}
			w.must(e.Resign(w.Context()))
			if w.keys() != "[/last/x]" {
				w.Error(w.keys())
			}
		})
	})
	t.Run("that is never answered leaves the key to the TTL", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			e := w.contender(ElectionOptions{Key: "/e/x"})
			w.must(e.Campaign(w.Context(), "a"))
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			defer cancel()
			if err := e.Resign(ctx); !errors.Is(err, ErrUndecided) {
				w.Fatal(err)
			}
			time.Sleep(11 * time.Second)
			if w.keys() != "[]" {
				w.Error("the session went on renewing", w.keys())
			}
		})
	})
	t.Run("after a loss returns nil, and frees the election for the next", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			e := w.contender(settled)
			w.must(e.Campaign(w.Context(), "a"))
			w.m.Delete("/e/x/" + leaseHex(e.Session()))
			<-e.Term().Lost()
			if _, err := e.TryCampaign(w.Context(), "a"); !errors.Is(err, ErrTermLost) {
				w.Error(err)
			}
			w.must(e.Resign(w.Context()))
			end, found, err := LastEnd(w.Context(), e.s.cli, settled.Settle)
			if err != nil || !found || end.How != EndLost || end.Holder != "a" {
				w.Errorf("%+v %v %v", end, found, err)
			}
			won, err := e.TryCampaign(w.Context(), "a")
			if !won || err != nil {
				w.Error(won, err)
			}
		})
	})
	for name, o := range map[string]ElectionOptions{"settling": settled, "not settling": {Key: "/e/x"}} {
		t.Run("of an earlier term never ends a later one of the same session, "+name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				e := w.contender(o)
				w.must(e.Campaign(w.Context(), "a"))
				earlier := e.Term().Keys()
				w.must(e.Resign(w.Context()))
				w.must(e.Campaign(w.Context(), "a"))
				held := w.keys()
				w.must(earlier.release(w.Context(), e.s.cli, EndReleased, true, time.Second))
				if w.keys() != held || e.Term() == nil {
					w.Errorf("keys %s, want %s", w.keys(), held)
				}
			})
		})
	}
	t.Run("never frees the successor", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			a, b := w.contender(settled), w.contender(settled)
			w.must(a.Campaign(w.Context(), "a"))
			keys := a.Term().Keys()
			w.must(a.Resign(w.Context()))
			w.must(b.Campaign(w.Context(), "b"))
			held := w.keys()
			w.must(keys.release(w.Context(), a.s.cli, EndReleased, true, time.Second))
			w.must(a.Resign(w.Context()))
			if w.keys() != held || b.Term() == nil {
				w.Errorf("keys %s, want %s", w.keys(), held)
			}
		})
	})
}

func TestInOneProcess(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		a, b := w.election(s, settled), w.election(s, settled)
		w.must(a.Campaign(w.Context(), "a"))

		// The leader's own calls say that it leads.
		if won, err := a.TryCampaign(w.Context(), "a"); !won || err != nil {
			w.Error(won, err)
		}
		w.must(a.Campaign(w.Context(), "again"))

		// Another object on the same session is somebody else.
		if won, err := b.TryCampaign(w.Context(), "b"); won || err != nil {
			w.Error(won, err)
		}
		call := w.campaign(w.Context(), b, "b")
		if err := b.Campaign(w.Context(), "b"); !errors.Is(err, ErrAlreadyCampaigning) {
			w.Error(err)
		}
		w.must(b.Resign(w.Context()))
		if a.Term() == nil || call.finished() {
			w.Fatal("b's resignation ended a's term")
		}
		w.must(a.Resign(w.Context()))
		w.must(call.wait().err)

		// Waiting for the turn ends with the caller's context, and with the session.
		short, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if err := a.Campaign(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
			w.Error(err)
		}
		late := w.campaign(w.Context(), a, "a")
		w.must(s.Close(w.Context()))
		if err := late.wait().err; !errors.Is(err, ErrClosed) {
			w.Error(err)
		}
		if w.keys() != "[/last/x /open/x]" { // b's term was never resigned: its record is still open
			w.Error(w.keys())
		}
	})
}

// A program that tries again and again while somebody else leads costs etcd one request each time.
func TestATryAsksOnceWhatStandsInItsWay(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.must(w.contender(ElectionOptions{Key: "/e/x"}).Campaign(w.Context(), "a"))
		e := w.contender(ElectionOptions{Key: "/e/x"})
		for i, want := range []int{2, 1, 1} {
			w.m.ResetCalls()
			if won, err := e.TryCampaign(w.Context(), "b"); won || err != nil {
				w.Fatal(won, err)
			}
			if n := w.m.Calls(coordtest.Txn); n != want {
				w.Errorf("try %d: %d requests, want %d", i, n, want)
			}
		}
	})
}

func TestATryThatCannotAskWhatStandsInItsWayFailsAndLeavesNothing(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.must(w.contender(ElectionOptions{Key: "/e/x"}).Campaign(w.Context(), "a"))
		keys := w.keys()
		e := w.contender(ElectionOptions{Key: "/e/x"})
		w.m.Inject(coordtest.Rule{
			Method: coordtest.Txn, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied),
			When: func(c *coordtest.Call) bool { return len(c.Request.(*pb.TxnRequest).Compare) == 0 },
		})
		if won, err := e.TryCampaign(w.Context(), "b"); won || !errors.Is(err, rpctypes.ErrPermissionDenied) {
			w.Error(won, err)
		}
		if w.keys() != keys {
			w.Errorf("keys %s, want %s", w.keys(), keys)
		}
		w.must(e.Session().Check())
	})
}

func TestANestedElectionIsRefused(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		_, err := w.m.Put("/e/x/inner/1", "foreign", 0)
		w.must(err)
		plain := w.contender(ElectionOptions{Key: "/e/x"})
		for range 2 {
			if _, err := plain.TryCampaign(w.Context(), "a"); !errors.Is(err, ErrNestedKey) {
				w.Error(err)
			}
		}
		e := w.contender(settled)
		if _, err := e.TryCampaign(w.Context(), "a"); !errors.Is(err, ErrNestedKey) {
			w.Error(err)
		}
		if err := e.Campaign(w.Context(), "a"); !errors.Is(err, ErrNestedKey) {
			w.Error(err)
		}
		if _, err := e.Leader(w.Context()); !errors.Is(err, ErrNestedKey) {
			w.Error(err)
		}
		if _, err := e.Candidates(w.Context()); !errors.Is(err, ErrNestedKey) {
			w.Error(err)
		}
		if w.keys() != "[/e/x/inner/1]" {
			w.Error(w.keys())
		}
	})
}

func TestElectionsWhoseNamesBeginAlikeAreIndependent(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.must(w.contender(ElectionOptions{Key: "/e/a"}).Campaign(w.Context(), "1"))
		w.must(w.contender(ElectionOptions{Key: "/e/ab"}).Campaign(w.Context(), "2"))
	})
}

func TestDoResignsAfterTheWorkHasReturned(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		e := w.contender(settled)
		wrong := errors.New("wrong")
		err := e.Do(w.Context(), "a", func(ctx context.Context, term *Term) error {
			w.must(term.Check())
			w.must(term.Verify(ctx))
			got, err := e.s.cli.Txn(ctx).If(term.Cmp()).Then(clientv3.OpPut("guarded", "1")).Commit()
			if err != nil || !got.Succeeded {
				w.Error(got, err)
			}
			return wrong
		})
		if !errors.Is(err, wrong) {
			w.Error(err)
		}
		if w.keys() != "[/last/x guarded]" {
			w.Error(w.keys())
		}

		// A loss ends the work's context, with the cause, and is part of the result.
		err = e.Do(w.Context(), "a", func(ctx context.Context, term *Term) error {
			w.m.Delete(term.Keys().Key)
			<-ctx.Done()
			if w.m.Get("/open/x") == nil {
				w.Error("the record was closed while the work went on")
			}
			return context.Cause(ctx)
		})
		if !errors.Is(err, ErrKeyGone) {
			w.Error(err)
		}
		if w.m.Get("/open/x") != nil {
			w.Error("the record stayed open")
		}
		cancelled, cancel := context.WithCancel(w.Context())
		cancel()
		if err := e.Do(cancelled, "a", nil); !errors.Is(err, context.Canceled) {
			w.Error(err)
		}
	})
}

func TestVerifyAsksEtcd(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.m.Inject(coordtest.Rule{Method: coordtest.Watch, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		e := w.contender(settled)
		term, err := e.CampaignTerm(w.Context(), "a")
		w.must(err)
		w.m.Stop(0)
		if err := term.Verify(w.Context()); err == nil || errors.Is(err, ErrTermLost) {
			w.Error(err)
		}
		w.m.Cont(0)
		w.must(term.Verify(w.Context()))
		w.m.Delete(term.Keys().Key)
		if err := term.Verify(w.Context()); !errors.Is(err, ErrKeyGone) {
			w.Error(err)
		}
		if err := term.Verify(w.Context()); !errors.Is(err, ErrKeyGone) {
			w.Error(err)
		}

		f := w.contender(ElectionOptions{Key: "/e/y"})
		term, err = f.CampaignTerm(w.Context(), "a")
		w.must(err)
		w.m.Delete(term.Keys().Key)
		_, err = w.m.Put(term.Keys().Key, "a", f.Session().Lease())
		w.must(err)
		if err := term.Verify(w.Context()); !errors.Is(err, ErrKeyReplaced) {
			w.Error(err)
		}
	})
}

func TestOptionsOfAnElectionAreChecked(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		cli := w.m.Client(w)
		for _, o := range []ElectionOptions{
			{}, {Key: "/"}, {Key: "x", TTL: -1}, {Key: "x", Settle: SettleOptions{Open: "o"}}, {Key: "x", Settle: SettleOptions{Last: "o"}},
			{Key: "x", Margin: time.Hour},
		} {
			if _, err := NewElection(w.Context(), cli, o); !errors.Is(err, ErrInvalidOption) {
				w.Errorf("%+v: %v", o, err)
			}
		}
		if _, err := w.session(SessionOptions{}).Election(ElectionOptions{}); !errors.Is(err, ErrInvalidOption) {
			w.Error(err)
		}
		if n := w.m.Calls(coordtest.Grant); n != 1 {
			w.Errorf("%d grants", n)
		}
	})
}

func TestCloseLeavesNothing(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		e, err := NewElection(w.Context(), w.m.Client(w), ElectionOptions{Key: "/e/x", Settle: settled.Settle, Identity: "me", Clock: w.now})
		w.must(err)
		w.must(e.Campaign(w.Context(), ""))
		leader, err := e.Leader(w.Context())
		if err != nil || leader.Identity != "me" {
			w.Error(leader, err)
		}
		w.must(e.Close())
		w.must(e.Close())
		if w.keys() != "[/last/x]" || len(w.m.Leases()) != 0 {
			w.Error(w.keys(), w.m.Leases())
		}
		if err := e.Campaign(w.Context(), ""); !errors.Is(err, ErrClosed) {
			w.Error(err)
		}

		// A borrowed session stays.
		s := w.session(SessionOptions{})
		b := w.election(s, settled)
		w.must(b.Campaign(w.Context(), "b"))
		w.must(b.Close())
		w.must(s.Check())
		if w.keys() != "[/last/x]" {
			w.Error(w.keys())
		}
	})
}

func TestAWakeUpIsNotBelieved(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		o := ElectionOptions{Key: "/e/x"}
		a := w.contender(o)
		w.must(a.Campaign(w.Context(), "a"))
		ctx, giveUp := context.WithCancel(w.Context())
		b := w.campaign(ctx, w.contender(o), "b")
		c := w.campaign(w.Context(), w.contender(o), "c")
		giveUp()
		if err := b.wait().err; !errors.Is(err, context.Canceled) {
			w.Fatal(err)
		}
		if c.finished() {
			w.Fatal("the predecessor's end was taken for the leader's")
		}
		w.must(a.Resign(w.Context()))
		w.must(c.wait().err)
	})
}

func TestADecisionNeedsAQuorum(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		o := ElectionOptions{Key: "/e/x"}
		a := w.contender(o)
		w.must(a.Campaign(w.Context(), "a"))
		b := w.campaign(w.Context(), w.contender(o), "b")
		// A member without a quorum shows a key's end and answers compares: that is no leadership.
		w.m.NoQuorum(true)
		w.m.Delete(a.Session().key("/e/x"))
		time.Sleep(time.Second)
		if b.finished() {
			w.Fatal("won without a quorum")
		}
		w.m.NoQuorum(false)
		w.must(b.wait().err)
	})
}

// key is the session's key under an election.
func (s *Session) key(election string) string { return candidateKey(prefixOf(election), s.lease) }

func TestACampaignOnALostSessionAsksNobody(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		e := w.contender(settled)
		w.suspend(time.Hour)
		// Nothing was sent, so nothing is unknown either.
		if err := e.Campaign(w.Context(), "a"); !errors.Is(err, ErrUnproven) || errors.Is(err, ErrUndecided) {
			w.Error(err)
		}
		if n := w.m.Calls(coordtest.Txn); n != 0 {
			w.Errorf("%d requests", n)
		}
	})
}

func TestAResignationInDoubtOnASharedSessionGoesOn(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		w.must(w.election(s, ElectionOptions{Key: "/e/other"}).Campaign(w.Context(), "o"))
		e := w.election(s, settled)
		w.must(e.Campaign(w.Context(), "a"))
		lost := w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
		defer cancel()
		if err := e.Resign(ctx); !errors.Is(err, ErrUndecided) {
			w.Error(err)
		}
		lost.Remove()
		time.Sleep(time.Minute)
		if w.m.Get("/e/x/"+leaseHex(s)) != nil || w.m.Get("/open/x") != nil {
			w.Errorf("still there: %s", w.keys())
		}
		w.must(s.Check())
		w.must(e.Resign(w.Context()))
		w.must(e.Campaign(w.Context(), "again"))
	})
}

// Red when a delete whose reply was lost counts as a put that may still land: then the turn never comes back.
func TestAQueueThatWasLeftInDoubtCanBeEnteredAgain(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		s := w.session(SessionOptions{})
		w.must(w.election(s, ElectionOptions{Key: "/e/other"}).Campaign(w.Context(), "o"))
		e := w.election(s, settled)
		ctx, giveUp := context.WithCancel(w.Context())
		call := w.campaign(ctx, e, "b")
		lost := w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: coordtest.Forever, Action: coordtest.LoseReply(nil)})
		giveUp()
		if err := call.wait().err; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUndecided) {
			w.Fatal(err)
		}
		lost.Remove()
		w.must(a.Resign(w.Context()))
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		w.must(e.Campaign(ctx, "b"))
		w.must(s.Check())
	})
}

func TestCloseEndsACampaignThatIsUnderWay(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		held := w.keys()
		s := w.session(SessionOptions{})
		e := w.election(s, settled)
		ctx, giveUp := context.WithCancel(w.Context())
		defer giveUp()
		call := w.campaign(ctx, e, "b")
		closed := make(chan error, 1)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Delay(time.Second)}) // its way out takes a while
		go func() { closed <- e.Close() }()
		select {
		case err := <-closed:
			w.must(err)
		case <-time.After(time.Minute):
			w.Error("the campaign goes on")
			giveUp()
			w.must(<-closed)
		}
		if w.keys() != held {
			w.Errorf("keys %s, want %s", w.keys(), held)
		}
		if !call.finished() || !errors.Is(call.err, ErrClosed) {
			w.Error(call.err)
		}
		w.must(s.Check())
	})
}

func TestAnObserverTakesNoNestedElectionsLeaderForItsOwn(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		_, err := w.m.Put("/e/x/inner/1", "nested", 0)
		w.must(err)
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		changes := w.watcher().Watch(ctx)
		if c := next(w, changes); !c.Vacant {
			w.Fatalf("%+v", c)
		}
		_, err = w.m.Put("/e/x/inner/2", "nested", 0)
		w.must(err)
		_, err = w.m.Put("/e/x/1", "own", 0)
		w.must(err)
		if c := next(w, changes); c.Leader.Identity != "own" {
			w.Errorf("%+v", c)
		}
	})
}

// Red when a queued campaign takes the key that it put for a new one.
func TestWhoQueuesWithAKeyThatWasThereLeadsWithItsRevision(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a, b := w.contender(settled), w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		rev, err := w.m.Put("/e/x/"+leaseHex(b.Session()), "left by an earlier request", b.Session().Lease())
		w.must(err)
		call := w.campaign(w.Context(), b, "b")
		w.must(a.Resign(w.Context()))
		w.must(call.wait().err)
		if got := call.term.Token(); got != uint64(rev) {
			w.Errorf("token %d, want %d", got, rev)
		}
	})
}
