package coord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/proto"

	"github.com/go-coord/coord/coordtest"
)

func TestBoundsAreTheTableOfTheGuarantee(t *testing.T) {
	t.Parallel()
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, row := range []struct{ ttl, grace, renew, term, kill, silence int }{
		{10000, 5000, 1000, 3500, 8500, 2500},
		{10000, 2000, 1000, 6500, 8500, 5500},
		{15000, 5000, 1500, 8000, 13000, 6500},
		{30000, 5000, 3000, 21500, 26500, 18500},
		{2000, 600, 200, 700, 1300, 500},
		{2000, 5000, 200, 700, 1300, 500},
	} {
		b, err := NewBounds(ms(row.ttl), 0, ms(row.grace))
		if err != nil {
			t.Fatal(err)
		}
		got := []time.Duration{b.Renew, b.Term, b.Kill, b.Silence}
		want := []time.Duration{ms(row.renew), ms(row.term), ms(row.kill), ms(row.silence)}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("T = %d ms, grace %d ms: bounds %v, want %v", row.ttl, row.grace, got, want)
				break
			}
		}
	}
}

func TestBoundsRefuseWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ ttl, margin, grace time.Duration }{
		{1500 * time.Millisecond, 0, 0}, {500 * time.Millisecond, 0, 0}, {-time.Second, 0, 0},
		{2 * time.Second, 1100 * time.Millisecond, 0}, {0, -1, 0}, {0, 0, -1},
	} {
		if b, err := NewBounds(row.ttl, row.margin, row.grace); !errors.Is(err, ErrInvalidOption) {
			t.Errorf("NewBounds(%v) = %+v, %v; want ErrInvalidOption", row, b, err)
		}
	}
}

func TestAHeldSessionIsRenewedTenTimesPerTTLAndLivesOn(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		w.must(w.election(s, settled).Campaign(w.Context(), "a"))
		before := w.m.Calls(coordtest.KeepAlive)
		time.Sleep(10*time.Minute + time.Millisecond)
		w.must(s.Check())
		if n := w.m.Calls(coordtest.KeepAlive) - before; n != 600 {
			w.Errorf("%d renewals in 600 s, want 600", n)
		}
	})
}

// Who closes the client leaves the lease to its TTL, and no goroutine behind. Red when the watchdog does not look at it:
// the loss then comes with the silence.
func TestAClosedClientIsALossAtOnce(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		term, err := w.election(s, settled).CampaignTerm(w.Context(), "a")
		w.must(err)
		w.must(s.cli.Close())
		before := w.now()
		<-s.Lost()
		<-term.Lost()
		cause := context.Cause(term.Context())
		if w.now() != before || !errors.Is(cause, ErrSessionLost) || !errors.Is(cause, ErrClientClosed) {
			w.Errorf("lost after %v: %v", w.now()-before, cause)
		}
		if keys := w.m.Keys("/e/x"); len(keys) != 1 {
			w.Errorf("keys %v", keys)
		}
	})
}

func TestASilentEtcdIsALossCountedFromTheSend(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		e := w.election(s, settled)
		term, err := e.CampaignTerm(w.Context(), "a")
		w.must(err)
		time.Sleep(5500 * time.Millisecond)
		w.m.Stop(0)
		<-term.Lost()
		// The last verified renewal was sent at 5 s.
		if at := w.now(); at != 8500*time.Millisecond {
			w.Errorf("lost at %v, want 8.5s", at)
		}
		cause := context.Cause(term.Context())
		if !errors.Is(cause, ErrSessionLost) || !errors.Is(cause, ErrUnproven) {
			w.Errorf("cause %v", cause)
		}
		w.m.Cont(0)
		time.Sleep(time.Second)
		if s.Check() == nil {
			w.Error("the session came back")
		}
	})
}

func TestTheClockRunsOn(t *testing.T) {
	t.Parallel()
	a := Now()
	for Now() <= a { // the resolution is finer than a loop: this ends
	}
}

func TestASessionSaysWhatItHas(t *testing.T) {
	inBubble(t, coordtest.Options{MinTTL: 4 * time.Second}, func(w *world) {
		s := w.session(SessionOptions{TTL: time.Second, Grace: time.Second, Margin: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		want, err := NewBounds(4*time.Second, 100*time.Millisecond, time.Second)
		w.must(err)
		if s.TTL() != 4*time.Second || s.Bounds() != want {
			w.Errorf("granted %v, bounds %+v", s.TTL(), s.Bounds())
		}
		term, kill := s.Deadlines()
		if term != want.Term || kill != want.Kill || !s.Deadline().Equal(time.Now().Add(want.Kill)) {
			w.Errorf("deadlines %v %v %v", term, kill, s.Deadline())
		}
		e := w.election(s, settled)
		w.must(e.Campaign(w.Context(), "a"))
		<-s.Renewed()
		if term, kill := e.Term().Deadlines(); term != 400*time.Millisecond+want.Term || kill != 400*time.Millisecond+want.Kill {
			w.Errorf("deadlines %v %v after the first renewal", term, kill)
		}
		<-e.Term().Renewed()
		if !e.Term().Deadline().Equal(s.Deadline()) || s.Context().Err() != nil {
			w.Error(e.Term().Deadline())
		}
	})
}

func TestASessionIsNotOpenedOnABadAnswer(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		cli := w.m.Client(w)
		for _, o := range []SessionOptions{{TTL: time.Millisecond}, {Refresh: 5 * time.Second}, {Refresh: -1}} {
			if _, err := NewSession(w.Context(), cli, o); !errors.Is(err, ErrInvalidOption) {
				w.Error(err)
			}
		}
		w.m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: coordtest.Refuse(rpctypes.ErrGRPCNoSpace)})
		if _, err := NewSession(w.Context(), cli, SessionOptions{}); !errors.Is(err, rpctypes.ErrNoSpace) {
			w.Error(err)
		}
		w.m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: func(c *coordtest.Call) (proto.Message, error) {
			reply, err := c.Commit(c.Context)
			reply.(*pb.LeaseGrantResponse).TTL = 3
			return reply, err
		}})
		if _, err := NewSession(w.Context(), cli, SessionOptions{}); err == nil {
			w.Error("a lease of less than was asked for was taken")
		}
	})
}

func TestASessionIsOpenedThoughSomeMembersNeverAnswer(t *testing.T) {
	inBubble(t, coordtest.Options{Members: 3}, func(w *world) {
		w.m.Stop(0)
		w.m.Stop(1)
		ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
		defer cancel()
		s, err := NewSession(ctx, w.m.Client(w), SessionOptions{Clock: w.now})
		w.must(err)
		// The deadline counts from the send of the request that was answered.
		if lost, _ := s.Deadlines(); lost != w.now()+3500*time.Millisecond {
			w.Errorf("at %v: lost at %v", w.now(), lost)
		}
		w.m.Cont(0)
		w.m.Cont(1)
		w.must(s.Close(w.Context()))

		for i := range 3 {
			w.m.Stop(i)
		}
		late, cancel := context.WithTimeout(w.Context(), 5*time.Second)
		defer cancel()
		if _, err := NewSession(late, w.m.Client(w), SessionOptions{Clock: w.now}); err == nil || w.now() > 12*time.Second {
			w.Errorf("%v at %v", err, w.now())
		}
	})
}

// Red when a grant that is not answered is waited for as long as the caller does, or when the deadline counts from another
// moment than the send of the request that was answered.
func TestAGrantThatIsNotAnsweredIsAskedForAgain(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.m.Inject(coordtest.Rule{Method: coordtest.Grant, Times: 2, Action: coordtest.LoseRequest()})
		w.m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: coordtest.Delay(300 * time.Millisecond)})
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		s, err := NewSession(ctx, w.m.Client(w), SessionOptions{Clock: w.now})
		w.must(err)
		if lost, _ := s.Deadlines(); w.now() != 2800*time.Millisecond || lost != 6*time.Second {
			w.Errorf("at %v: lost at %v, want 6s, which is 3.5 s from the third request", w.now(), lost)
		}
		w.must(s.Close(w.Context()))
	})
}

func TestASuspendedMachineLosesItsSessionOnTheFirstLook(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		term, err := w.contender(settled).CampaignTerm(w.Context(), "a")
		w.must(err)
		w.must(term.Check())
		w.suspend(time.Hour)
		if err := term.Check(); !errors.Is(err, ErrUnproven) {
			w.Error(err)
		}
	})
}

func TestARenewalThatComesTooLateChangesNothing(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		w.must(w.election(s, settled).Campaign(w.Context(), "a"))
		time.Sleep(500 * time.Millisecond)
		w.suspend(time.Hour)
		s.acknowledge(w.now(), w.now(), true)
		if s.Check() == nil {
			w.Error("a lost session was revived")
		}
	})
}

func TestAStaleAcknowledgementIsNoRenewal(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		term, err := w.contender(settled).CampaignTerm(w.Context(), "a")
		w.must(err)
		time.Sleep(2500 * time.Millisecond)
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Times: coordtest.Forever, Action: coordtest.StaleAck(0)})
		<-term.Lost()
		if w.now() != 5500*time.Millisecond || !errors.Is(context.Cause(term.Context()), ErrUnproven) {
			w.Errorf("lost at %v: %v; the last true renewal was sent at 2 s", w.now(), context.Cause(term.Context()))
		}
	})
}

func TestARenewalCountsFromItsSendNotFromItsReply(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		term, err := w.contender(settled).CampaignTerm(w.Context(), "a")
		w.must(err)
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Action: coordtest.Delay(400 * time.Millisecond)})
		time.Sleep(1800 * time.Millisecond) // renewed at 1 s, answered at 1.4 s
		if lost, _ := term.Deadlines(); lost != 4500*time.Millisecond {
			w.Errorf("term ends at %v, want 1 s + 3.5 s", lost)
		}
	})
}

func TestRenewalsGoOnThroughTrouble(t *testing.T) {
	for name, hurt := range map[string]func(w *world){
		"a member is stopped":           func(w *world) { w.m.Stop(0) },
		"a member is killed":            func(w *world) { w.m.Kill(1) },
		"twenty moves of the leader":    func(w *world) { w.moves(20) },
		"all connections break, twice":  func(w *world) { w.m.Restart(); time.Sleep(3 * time.Second); w.m.Restart() },
		"a reply for another lease":     func(w *world) { w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Action: otherLease}) },
		"a renewal refused":             func(w *world) { w.refuse(coordtest.KeepAlive) },
		"a read refused":                func(w *world) { w.refuse(coordtest.Txn) },
		"a read that is never answered": func(w *world) { w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.LoseRequest()}) },
		"a quorum lost for two seconds": func(w *world) { w.m.NoQuorum(true); time.Sleep(2 * time.Second); w.m.NoQuorum(false) },
		"a slow network": func(w *world) {
			w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Times: coordtest.Forever, Action: coordtest.Delay(700 * time.Millisecond)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{Members: 3}, func(w *world) {
				term, err := w.contender(settled).CampaignTerm(w.Context(), "a")
				w.must(err)
				time.Sleep(10 * time.Second)
				hurt(w)
				time.Sleep(time.Minute)
				w.must(term.Check())
			})
		})
	}
}

func (w *world) moves(n int) {
	for i := range n {
		w.m.MoveLeader(i % 3)
		time.Sleep(300 * time.Millisecond) // in fake time
	}
}

func (w *world) refuse(method coordtest.Method) {
	w.m.Inject(coordtest.Rule{Method: method, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
}

// otherLease answers a renewal with the name of another lease.
func otherLease(c *coordtest.Call) (proto.Message, error) {
	reply, err := c.Commit(c.Context)
	reply.(*pb.LeaseKeepAliveResponse).ID++
	return reply, err
}

func TestAStreamThatCannotBeOpenedIsGivenUp(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		term, err := w.contender(settled).CampaignTerm(w.Context(), "a")
		w.must(err)
		time.Sleep(1500 * time.Millisecond)
		w.m.Kill(0)
		<-term.Lost()
		if w.now() != 4500*time.Millisecond {
			w.Errorf("lost at %v, want 3.5 s after the renewal at 1 s", w.now())
		}
	})
}

func TestAPlainRenewalKeepsAnIdleSessionButProvesNothing(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		time.Sleep(time.Minute + 100*time.Millisecond)
		w.must(s.Check())
		if _, kill := s.Deadlines(); kill != 8500*time.Millisecond {
			w.Errorf("deadline %v moved without a proof", kill)
		}

		// A term begins only with a proof, got at once.
		term, err := w.election(s, settled).CampaignTerm(w.Context(), "a")
		w.must(err)
		if lost, _ := term.Deadlines(); lost != w.now()+3500*time.Millisecond || w.now() != time.Minute+100*time.Millisecond {
			w.Errorf("at %v: term ends at %v", w.now(), lost)
		}
	})
}

func TestATermThatCannotBeProvenDoesNotBegin(t *testing.T) {
	for name, row := range map[string]struct {
		hurt func(w *world, s *Session)
		want error
	}{
		"the caller gives up": {func(w *world, s *Session) {}, context.DeadlineExceeded},
		"the key goes": {func(w *world, s *Session) {
			time.AfterFunc(time.Second, func() { w.m.Delete("/e/x/" + leaseHex(s)) })
		}, ErrKeyGone},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				s := w.session(SessionOptions{})
				time.Sleep(time.Minute + 100*time.Millisecond)
				w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Times: coordtest.Forever, Action: coordtest.StaleAck(0)})
				row.hurt(w, s)
				ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
				defer cancel()
				if err := w.election(s, settled).Campaign(ctx, "a"); !errors.Is(err, row.want) {
					w.Error(err)
				}
				if w.keys() != "[/last/x]" {
					w.Error(w.keys())
				}
			})
		})
	}
}

func TestAnEtcdWhoseHistoryGoesBackIsNotBelieved(t *testing.T) {
	t.Run("by a renewal", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			term, err := w.contender(settled).CampaignTerm(w.Context(), "a")
			w.must(err)
			w.m.SetClusterID(1)
			<-term.Lost()
			if err := term.Check(); !errors.Is(err, ErrStoreRegressed) {
				w.Error(err)
			}
		})
	})
	t.Run("by a campaign", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			e := w.contender(settled)
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: func(c *coordtest.Call) (proto.Message, error) {
				reply, err := c.Commit(c.Context)
				reply.(*pb.TxnResponse).Header.Revision = -1
				return reply, err
			}})
			if err := e.Campaign(w.Context(), "a"); !errors.Is(err, ErrStoreRegressed) {
				w.Error(err)
			}
		})
	})
}

func TestCloseTellsWhenTheLeaseIsLeftToItsTTL(t *testing.T) {
	for name, action := range map[string]coordtest.Action{
		"refused": coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied),
		"silent":  coordtest.LoseRequest(),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				s := w.session(SessionOptions{})
				w.m.Inject(coordtest.Rule{Method: coordtest.Revoke, Times: coordtest.Forever, Action: action})
				if err := s.Close(context.Background()); err == nil {
					w.Error("closed without a word")
				}
				time.Sleep(11 * time.Second)
				if len(w.m.Leases()) != 0 {
					w.Error("the lease lives on")
				}
			})
		})
	}
	t.Run("but not when it is gone already", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			s := w.session(SessionOptions{})
			w.must(w.m.Revoke(s.Lease()))
			w.must(s.Close(w.Context()))
			// Nothing begins on a closed session.
			c := s.hold("/k", 1, 1)
			<-c.done
			if c.ctx.Err() == nil {
				w.Error("a claim on a closed session")
			}
			freed := false
			s.burn(TermKeys{Key: "/k"}, true, func() { freed = true })
			if !freed {
				w.Error("a turn that nobody gives back")
			}
		})
	})
}

func TestManyKeysOfOneSessionAreProvenTogether(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		var terms []*Term
		for i := range 150 {
			term, err := w.election(s, ElectionOptions{Key: fmt.Sprintf("/e/%d", i)}).CampaignTerm(w.Context(), "a")
			w.must(err)
			terms = append(terms, term)
		}
		before := w.m.Calls(coordtest.Txn)
		time.Sleep(1500 * time.Millisecond)
		if n := w.m.Calls(coordtest.Txn) - before; n != 2 {
			w.Errorf("%d reads for 150 keys, want 2", n)
		}
		// One key gone is one term lost.
		w.m.Delete(terms[7].Keys().Key)
		<-terms[7].Lost()
		w.must(s.Check())
		for i, term := range terms {
			if i != 7 {
				w.must(term.Check())
			}
		}
	})
}

func TestAPlainRenewalDoesNotProlongATerm(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		term, err := w.election(s, settled).CampaignTerm(w.Context(), "a")
		w.must(err)
		w.m.Stop(0)
		time.Sleep(3 * time.Second)
		s.acknowledge(w.now(), w.now(), false) // a renewal that no read confirmed
		<-term.Lost()
		if w.now() != 3500*time.Millisecond {
			w.Errorf("lost at %v, want 3.5s", w.now())
		}
	})
}

// Red when begin does not wake the watchdog: it sleeps by a plain renewal, which counts for nothing now.
func TestATermOnASessionThatWasIdleEndsByItsLastProof(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{TTL: 30 * time.Second})
		e := w.election(s, settled)
		w.must(e.Campaign(w.Context(), "a"))
		time.Sleep(31 * time.Second)
		w.must(e.Resign(w.Context()))
		time.Sleep(18 * time.Second) // plain renewals
		w.must(e.Campaign(w.Context(), "a"))
		w.m.Inject(coordtest.Rule{Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		term, _ := s.Deadlines()
		<-e.Term().Lost()
		if w.now() != term {
			w.Errorf("lost at %v, want %v", w.now(), term)
		}
	})
}

// Red when a term that could not begin stays counted: plain renewals then keep no idle session.
func TestATermThatDidNotBeginIsNotCounted(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		o := ElectionOptions{Key: "/e/x"}
		a := w.contender(o)
		w.must(a.Campaign(w.Context(), "a"))
		s := w.session(SessionOptions{})
		call := w.campaign(w.Context(), w.election(s, o), "b")
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Skip: 1, Action: coordtest.After(func() {
			w.m.Delete("/e/x/" + leaseHex(s))
			time.Sleep(2 * watchAfter)
		})})
		w.must(a.Resign(w.Context()))
		if err := call.wait().err; !errors.Is(err, ErrKeyGone) {
			w.Error(err)
		}
		time.Sleep(20 * time.Second)
		w.must(s.Check())
	})
}

// A plain session renews at its own pace and reads nothing, though it has a key; from the first demand on, and
// while a term runs, it proves at the pace of a hold.
func TestAPlainSessionProvesOnlyOnDemand(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		var g gauge
		s := w.session(SessionOptions{Metrics: g.metrics(), Refresh: 3 * time.Second})
		rev, err := w.m.Put("/h/a", "v", s.Lease())
		w.must(err)
		s.hold("/h/a", rev, rev)
		time.Sleep(time.Minute + time.Millisecond)
		g.mu.Lock()
		if g.plain != 20 || g.proofs != 0 {
			w.Errorf("in a minute: %d plain, %d proofs", g.plain, g.proofs)
		}
		g.plain = 0
		g.mu.Unlock()

		s.demand()
		time.Sleep(time.Minute)
		g.mu.Lock()
		if g.plain != 0 || g.proofs != 60 && g.proofs != 61 {
			w.Errorf("in a minute on demand: %d plain, %d proofs", g.plain, g.proofs)
		}
		g.mu.Unlock()
		w.must(s.Check())
	})
}

// A plain session is lost when its TTL may have passed, not when a holder would have to stop.
func TestAPlainSessionOutlastsASilentEtcd(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{Refresh: 3 * time.Second})
		time.Sleep(8 * time.Second)
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Action: coordtest.Delay(400 * time.Millisecond)})
		time.Sleep(2 * time.Second) // renewed at 9 s, answered later
		w.m.Stop(0)
		<-s.Lost()
		if at := w.now(); at != 17500*time.Millisecond {
			w.Errorf("lost at %v, want 8.5 s after the last renewal", at)
		}
	})
}

// Red when a term that begins on a plain session is renewed at the pace of before.
func TestATermOnAPlainSessionIsProvenAtItsOwnPace(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{Refresh: 3 * time.Second})
		time.Sleep(10 * time.Second)
		e := w.election(s, ElectionOptions{Key: "/e/x"})
		term, err := e.CampaignTerm(w.Context(), "a")
		w.must(err)
		time.Sleep(time.Minute)
		w.must(term.Check())
		if lost, _ := term.Deadlines(); lost-w.now() < 2500*time.Millisecond {
			w.Errorf("proven until %v at %v", lost, w.now())
		}
		w.must(e.Resign(w.Context()))
		before := w.m.Calls(coordtest.KeepAlive)
		time.Sleep(time.Minute)
		if n := w.m.Calls(coordtest.KeepAlive) - before; n < 19 || n > 21 {
			w.Errorf("%d plain renewals in a minute", n)
		}
	})
}

// Red when the lease that is late is asked for again among the others, or when its session is forgotten.
func TestALatePlainLeaseHoldsUpNobodyTwice(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		all := w.fleet(w.m.Client(w), 20, false, SessionOptions{Refresh: 3 * time.Second})
		late := all[7]
		time.Sleep(10 * time.Second) // all have renewed at 9 s
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, When: renews(late.lease), Times: 2, Action: coordtest.LoseRequest()})
		time.Sleep(2*time.Second + 600*time.Millisecond)
		for i, s := range all {
			s.mu.Lock()
			if s.plain < 12*time.Second && s != late {
				w.Errorf("session %d was last renewed at %v", i, s.plain)
			}
			s.mu.Unlock()
		}
		time.Sleep(time.Minute)
		for _, s := range all {
			w.must(s.Check())
			s.mu.Lock()
			if !s.kept || s.plain < w.now()-3*time.Second {
				w.Errorf("kept %v, renewed at %v", s.kept, s.plain)
			}
			s.mu.Unlock()
		}
	})
}

// Red when a renewal wakes one of those that wait for a proof: the others then begin a renewal later each.
func TestOneProofIsEnoughForAllWhoBegin(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		time.Sleep(20 * time.Second) // nothing was proven for long
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Action: coordtest.Delay(100 * time.Millisecond)})
		var all []*async
		for i := range 50 {
			all = append(all, w.campaign(w.Context(), w.election(s, ElectionOptions{Key: fmt.Sprintf("/e/%d", i)}), "x"))
		}
		began := w.now()
		for i, a := range all {
			w.must(a.wait().err)
			if a.at != began+100*time.Millisecond {
				w.Errorf("number %d led %v later", i, a.at-began)
			}
		}
	})
}
