package coord

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord/coordtest"
)

// Mutations that were tried, and the test that turned red: settling from the sight of the own win instead
// of the key's end (TestASuccessorWaits..., "seen while queued"), overwriting the record on winning
// (TestASettlerThatGivesUp...), closing by lease alone (TestASettler...), counting an answer above the
// threshold (TestAnAnswerCounts...), and leaving the record out of the deciding Txn (almost all).

func TestASuccessorWaitsForAHolderThatLostItsKeyEarly(t *testing.T) {
	take := map[string]func(w *world, s *Session){
		"deleted": func(w *world, s *Session) { w.m.Delete("/e/x/" + leaseHex(s)) },
		"revoked": func(w *world, s *Session) { w.must(w.m.Revoke(s.Lease())) },
	}
	for name, take := range take {
		t.Run(name+", and the holder says nothing", func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				a := w.contender(settled)
				w.must(a.Campaign(w.Context(), "a"))
				b := w.campaign(w.Context(), w.contender(settled), "b")
				time.Sleep(time.Minute)
				take(w, a.Session())
				w.must(b.wait().err)
				if b.at != 70*time.Second {
					w.Errorf("started at %v, want the recorded TTL after 1m", b.at)
				}
				end, found, err := LastEnd(w.Context(), a.s.cli, settled.Settle)
				if err != nil || !found || end.How != EndExpired || end.Holder != "a" {
					w.Errorf("%+v %v %v", end, found, err)
				}
			})
		})
		t.Run(name+", and the holder says when it is over", func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				a := w.contender(settled)
				w.must(a.Campaign(w.Context(), "a"))
				b := w.campaign(w.Context(), w.contender(settled), "b")
				time.Sleep(time.Minute)
				take(w, a.Session())
				time.Sleep(2 * time.Second)
				if b.finished() {
					w.Fatal("started while the holder's work went on")
				}
				w.must(a.Resign(w.Context()))
				w.must(b.wait().err)
				if b.at != 62*time.Second {
					w.Errorf("started at %v, want at once after the holder's word", b.at)
				}
			})
		})
	}
}

func TestAHoldersWordIsSeenByTheRenewalsWhereTheWatchIsSilent(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		w.m.Inject(coordtest.Rule{Method: coordtest.Watch, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		b := w.campaign(w.Context(), w.contender(settled), "b")
		time.Sleep(1500 * time.Millisecond)
		w.m.Delete("/e/x/" + leaseHex(a.Session()))
		time.Sleep(time.Second)
		w.must(a.Resign(w.Context()))
		w.must(b.wait().err)
		if b.at != 3*time.Second {
			w.Errorf("started at %v, want with the next renewal at 3s", b.at)
		}
	})
}

func TestANaturalExpiryThatWasSeenComingNeedsNoFurtherWait(t *testing.T) {
	inBubble(t, coordtest.Options{Members: 2, RevokeLag: 300 * time.Millisecond}, func(w *world) {
		a := w.contender(settled, 1)
		w.must(a.Campaign(w.Context(), "a"))
		b := w.campaign(w.Context(), w.contender(settled, 0), "b")
		time.Sleep(time.Minute + 100*time.Millisecond)
		w.m.Stop(1) // a's last renewal was sent at 60 s
		w.must(b.wait().err)
		if b.at < 70*time.Second || b.at > 71500*time.Millisecond {
			w.Errorf("started at %v, want within 1.5 s of the expiry at 70 s", b.at)
		}
		w.m.Cont(1)
	})
}

func TestANewcomerSettlesARecordLeftOpen(t *testing.T) {
	for name, win := range map[string]func(context.Context, *Election) error{
		"Campaign":    func(ctx context.Context, e *Election) error { return e.Campaign(ctx, "b") },
		"TryCampaign": func(ctx context.Context, e *Election) error { _, err := e.TryCampaign(ctx, "b"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				// The dead holder's lease was of 30 s: it is the recorded TTL that counts, not the newcomer's.
				s := w.session(SessionOptions{TTL: 30 * time.Second})
				w.must(w.election(s, settled).Campaign(w.Context(), "a"))
				w.must(s.Close(w.Context()))
				var told []Waiting
				o := settled
				o.Waiting = func(x Waiting) { told = append(told, x) }
				b := w.contender(o)
				w.must(win(w.Context(), b))
				if w.now() != 30*time.Second {
					w.Errorf("started at %v, want 30s", w.now())
				}
				if len(told) != 1 || told[0].Settling != 30*time.Second || told[0].Record.Holder != "a" {
					w.Errorf("told %+v", told)
				}
				if rec := DecodeRecord(w.m.Get("/open/x"), 0); rec.Lease != b.Session().Lease() {
					w.Errorf("record %+v", rec)
				}
			})
		})
	}
}

func TestASettlerThatGivesUpLeavesTheFirstHoldersRecord(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		w.m.Delete("/e/x/" + leaseHex(a.Session()))
		first := w.m.Get("/open/x")

		// One settler gives up, one is killed with its key.
		ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
		defer cancel()
		if err := w.contender(settled).Campaign(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) {
			w.Fatal(err)
		}
		c := w.contender(settled)
		call := w.campaign(w.Context(), c, "c")
		time.Sleep(time.Second)
		w.m.Delete("/e/x/" + leaseHex(c.Session()))
		if err := call.wait().err; !errors.Is(err, ErrKeyGone) {
			w.Fatal(err)
		}
		if rec := w.m.Get("/open/x"); rec == nil || rec.ModRevision != first.ModRevision {
			w.Fatalf("record %v, want the first holder's %v", rec, first)
		}

		// The next one settles the first holder, from its own first look on.
		d := w.contender(settled)
		w.must(d.Campaign(w.Context(), "d"))
		if w.now() != 13*time.Second {
			w.Errorf("started at %v, want 13s", w.now())
		}

		// And the first holder's late word does not close the record of the new one.
		w.must(a.Resign(w.Context()))
		if rec := DecodeRecord(w.m.Get("/open/x"), 0); rec.Lease != d.Session().Lease() {
			w.Errorf("record %+v", rec)
		}
	})
}

func TestSettlingCountsFromTheFirstSightOfTheKeysEnd(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		b, c := w.contender(settled), w.contender(settled)
		bCall := w.campaign(w.Context(), b, "b")
		cCall := w.campaign(w.Context(), c, "c")
		time.Sleep(100 * time.Millisecond)
		w.m.Delete("/e/x/" + leaseHex(a.Session()))
		time.Sleep(5 * time.Second)
		w.m.Delete("/e/x/" + leaseHex(b.Session()))
		if err := bCall.wait().err; !errors.Is(err, ErrKeyGone) {
			w.Fatal(err)
		}
		w.must(cCall.wait().err)
		if cCall.at != 15100*time.Millisecond {
			w.Errorf("started at %v, want 10 s after its own first look at 5.1s", cCall.at)
		}
	})
}

func TestACandidateThatSawTheEndWhileQueuedCountsFromThere(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		w.m.Delete("/e/x/" + leaseHex(a.Session()))
		ctx, giveUp := context.WithCancel(w.Context())
		b := w.campaign(ctx, w.contender(settled), "b")
		time.Sleep(time.Second)
		c := w.campaign(w.Context(), w.contender(settled), "c")
		time.Sleep(4 * time.Second)
		giveUp()
		<-b.done
		w.must(c.wait().err)
		if c.at != 11*time.Second {
			w.Errorf("started at %v, want 10 s after its first look at 1s", c.at)
		}
	})
}

func TestASettlerIsToldWhenItsSessionEnds(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		_, err := w.m.Put("/open/x", "garbage", 0)
		w.must(err)
		b := w.contender(settled)
		call := w.campaign(w.Context(), b, "b")
		time.Sleep(5 * time.Second)
		w.must(b.Session().Close(w.Context()))
		if err := call.wait().err; !errors.Is(err, ErrClosed) {
			w.Error(err)
		}
		if w.keys() != "[/open/x]" {
			w.Error(w.keys())
		}
	})
}

func TestARecordThatCannotBeReadIsSettledForTheOwnTTL(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "x", "{}", `{"lease":"z","ttl":1}`, `{"lease":"1","ttl":0}`, `{"lease":"1","ttl":-5}`, `{"lease":"1","ttl":9223372036854775807}`, "\xff", "null", "[]"} {
		if rec := DecodeRecord(&mvccpb.KeyValue{Value: []byte(value), ModRevision: 7}, 10*time.Second); rec.TTL != 10*time.Second || rec.Lease != 0 || rec.mod != 7 || rec.Term != 0 {
			t.Errorf("%q: %+v", value, rec)
		}
	}
	// What cannot be one of ours is not waited for, nor repeated.
	if rec := DecodeRecord(&mvccpb.KeyValue{Value: []byte(`{"lease":"1","ttl":3000000000}`), ModRevision: 7}, time.Second); rec.TTL != time.Second {
		t.Errorf("%+v", rec)
	}
	huge := `{"lease":"1","ttl":2,"holder":"` + strings.Repeat("<", 400_000) + `"}`
	if rec := DecodeRecord(&mvccpb.KeyValue{Value: []byte(huge), ModRevision: 7}, time.Second); rec.TTL != 2*time.Second || rec.Holder != "" {
		t.Errorf("ttl %v, %d bytes of holder", rec.TTL, len(rec.Holder))
	}
	// A record without the holder's point of no return lets no answer count.
	rec := DecodeRecord(&mvccpb.KeyValue{Value: []byte(`{"lease":"1f","ttl":10,"holder":{"host":"h"}}`), ModRevision: 7}, time.Second)
	if rec.Lease != 0x1f || rec.TTL != 10*time.Second || rec.Term != rec.TTL || rec.Holder != `{"host":"h"}` {
		t.Errorf("%+v", rec)
	}
}

func TestAnAnswerCountsOnlyPastThePointOfNoReturn(t *testing.T) {
	t.Parallel()
	s := settler{rec: Record{TTL: 10 * time.Second, Term: 3500 * time.Millisecond, mod: 5}, gone: 20 * time.Second}
	for _, row := range []struct {
		answer ttlAnswer
		want   time.Duration
	}{
		{ttlAnswer{5, 6 * time.Second, 15 * time.Second}, 30 * time.Second}, // 6.9 s may be left: the holder may still renew
		{ttlAnswer{5, 5 * time.Second, 15 * time.Second}, 21 * time.Second}, // it may not
		{ttlAnswer{5, 0, 15 * time.Second}, 16 * time.Second},
		{ttlAnswer{4, 0, 15 * time.Second}, 30 * time.Second}, // about another hold
		{ttlAnswer{5, 5 * time.Second, 29 * time.Second}, 30 * time.Second},
	} {
		if s.answer(row.answer); s.until() != row.want {
			t.Errorf("answer %+v: until %v, want %v", row.answer, s.until(), row.want)
		}
	}

	// 3 s on a holder's slow clock are 3.33 s on etcd's: 6 s and a bit may be left of 10 s, and the holder renew.
	s.rec.Term = 3 * time.Second
	if s.answer(ttlAnswer{5, 6 * time.Second, 15 * time.Second}); s.until() != 30*time.Second {
		t.Errorf("a slow clock is not reckoned with: until %v", s.until())
	}
}

func TestAnAnswerAboutALeaseIsBelievedOnlyFromOneMemberInOneTerm(t *testing.T) {
	inBubble(t, coordtest.Options{Members: 3}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		rec := DecodeRecord(w.m.Get("/open/x"), 0)
		key := "/e/x/" + leaseHex(a.Session())
		s := w.session(SessionOptions{})
		time.Sleep(500 * time.Millisecond)
		got, err := s.askTTL(w.Context(), rec, key)
		if err != nil || got.mod != rec.mod || got.left != 9*time.Second || got.at != w.now() {
			w.Errorf("%+v, %v", got, err)
		}

		// A new leader between the first read and the last.
		w.m.Inject(coordtest.Rule{Method: coordtest.TimeToLive, Action: coordtest.After(func() { w.m.MoveLeader(1) })})
		if _, err := s.askTTL(w.Context(), rec, key); err == nil {
			w.Error("believed across a change of term")
		}

		// Errors, and a lease or key that is gone.
		for _, method := range []coordtest.Method{coordtest.Range, coordtest.TimeToLive} {
			w.m.Inject(coordtest.Rule{Method: method, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
			if _, err := s.askTTL(w.Context(), rec, key); !errors.Is(err, rpctypes.ErrPermissionDenied) {
				w.Error(err)
			}
		}
		w.m.Inject(coordtest.Rule{Method: coordtest.Range, Skip: 1, Times: coordtest.Forever, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
		if _, err := s.askTTL(w.Context(), rec, key); !errors.Is(err, rpctypes.ErrPermissionDenied) {
			w.Error(err)
		}
		gone := rec
		gone.Lease = 12345
		w.must(a.Resign(w.Context()))
		if _, err := s.askTTL(w.Context(), gone, key); err == nil {
			w.Error("an answer about nothing")
		}
	})
	t.Run("a lease that has ended has no answer", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			rev, err := w.m.Put("/k", "", 0)
			w.must(err)
			if _, err := w.session(SessionOptions{}).askTTL(w.Context(), Record{Lease: 77, mod: rev}, "/k"); !errors.Is(err, ErrLeaseGone) {
				w.Error(err)
			}
		})
	})
	t.Run("a member that answers no more", func(t *testing.T) {
		t.Parallel()
		if err := sameMember(fake{1}, func() (header, error) { return fake{2}, nil }); err == nil {
			t.Error("believed another member")
		}
	})
}

// fake is a header from a member.
type fake struct{ member uint64 }

func (f fake) GetClusterId() uint64 { return 0 }
func (f fake) GetMemberId() uint64  { return f.member }
func (f fake) GetRevision() int64   { return 0 }
func (f fake) GetRaftTerm() uint64  { return 0 }

func TestASettlerWhoseRecordChangesStartsOver(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		_, err := w.m.Put("/open/x", `{"lease":"1","ttl":10,"term_ms":3500}`, 0)
		w.must(err)
		b := w.campaign(w.Context(), w.contender(settled), "b")
		time.Sleep(6 * time.Second)
		_, err = w.m.Put("/open/x", `{"lease":"2","ttl":20,"term_ms":3500}`, 0)
		w.must(err)
		w.must(b.wait().err)
		if b.at != 26*time.Second {
			w.Errorf("started at %v, want 26s", b.at)
		}
	})
}

func TestWithoutSettlingTheSuccessorStartsAtOnce(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		o := ElectionOptions{Key: "/e/x"}
		a := w.contender(o)
		w.must(a.Campaign(w.Context(), "a"))
		b := w.campaign(w.Context(), w.contender(o), "b")
		w.m.Delete("/e/x/" + leaseHex(a.Session()))
		synctest.Wait()
		w.must(b.wait().err)
		if b.at != 0 || len(w.m.Keys("/open")) != 0 {
			w.Errorf("started at %v, keys %s", b.at, w.keys())
		}
	})
}

// Red when an answer counts that is rounded down to the threshold: a is at 3.2 s of 3.5 s when it is asked for, renews
// after that, and loses its key early.
func TestAHolderThatRenewsAfterTheAnswerIsSettledInFull(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		a := w.contender(settled)
		w.must(a.Campaign(w.Context(), "a"))
		time.Sleep(200 * time.Millisecond)
		b := w.campaign(w.Context(), w.contender(settled), "b") // asks at 2.2 s, 4.2 s, ... 60.2 s
		time.Sleep(57*time.Second + 300*time.Millisecond)       // a's renewal of 57 s was the last
		own := func(c *coordtest.Call) bool {
			return c.Request.(*pb.LeaseKeepAliveRequest).ID == int64(a.s.Lease())
		}
		back := make(chan struct{})
		slow := w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Times: coordtest.Forever, When: own, Action: coordtest.Late(back)})
		time.Sleep(2*time.Second + 800*time.Millisecond)
		close(back)
		slow.Remove()
		time.Sleep(20 * time.Millisecond)
		w.must(a.s.Check())
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Times: coordtest.Forever, When: own, Action: coordtest.LoseRequest()})
		w.must(w.m.Revoke(a.s.Lease()))
		w.must(b.wait().err)
		if _, kill := a.s.Deadlines(); b.at < kill {
			w.Errorf("b starts at %v; a's work may live until %v", b.at, kill)
		}
	})
}

func TestADeadHostCostsOneTTLWithAShortGraceToo(t *testing.T) {
	for _, grace := range []time.Duration{5 * time.Second, 2 * time.Second, time.Second} {
		t.Run(grace.String(), func(t *testing.T) {
			inBubble(t, coordtest.Options{Members: 2}, func(w *world) {
				a := w.election(w.session(SessionOptions{Grace: grace}, 1), settled)
				w.must(a.Campaign(w.Context(), "a"))
				b := w.campaign(w.Context(), w.contender(settled, 0), "b")
				time.Sleep(time.Minute + 100*time.Millisecond)
				w.m.Stop(1) // a's last renewal was sent at 60 s
				w.must(b.wait().err)
				if b.at < 70*time.Second || b.at > 71500*time.Millisecond {
					w.Errorf("started at %v, want within 1.5 s of the expiry at 70 s", b.at)
				}
				w.m.Cont(1)
			})
		})
	}
}

// Red when only who is the first on its arrival asks for the lease of the holder: whoever moves up then settles a TTL more.
func TestADeadHostCostsOneTTLWhoeverMovedUpBehindIt(t *testing.T) {
	inBubble(t, coordtest.Options{Members: 2}, func(w *world) {
		a := w.contender(settled, 0)
		w.must(a.Campaign(w.Context(), "a"))
		b := w.election(w.session(SessionOptions{}, 1), settled)
		second := w.campaign(w.Context(), b, "b")
		third := w.campaign(w.Context(), w.contender(settled, 0), "c")
		time.Sleep(time.Minute)
		w.must(a.Resign(w.Context()))
		w.must(second.wait().err)
		time.Sleep(time.Minute + 100*time.Millisecond)
		w.m.Stop(1) // b's last renewal was sent at 120 s
		w.must(third.wait().err)
		if third.at < 130*time.Second || third.at > 131500*time.Millisecond {
			w.Errorf("started at %v, want within 1.5 s of the expiry at 130 s", third.at)
		}
		w.m.Cont(1)
	})
}

// Red when the record of a plain session says Bounds.Term: an answer about its lease then counts although the holder can
// still prove it, up to Bounds.Kill.
func TestNoAnswerShortensTheSettlingOfAPlainSession(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		for refresh, can := range map[time.Duration]bool{0: true, 10 * time.Second: false} {
			s := w.session(SessionOptions{TTL: 30 * time.Second, Refresh: refresh})
			e := w.election(s, settled)
			w.must(e.Campaign(w.Context(), "a"))
			if rec := DecodeRecord(w.m.Get(settled.Settle.Open), time.Minute); (rec.past() > 0) != can {
				w.Errorf("renewed plainly every %v: an answer of at most %v counts", refresh, rec.past())
			}
			w.must(e.Resign(w.Context()))
		}
	})
}
