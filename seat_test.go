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

func TestASlotWhoseHolderMayLiveIsAvoidedWhileAnotherIsFree(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(2))
		a := w.held(m, "a")
		time.Sleep(time.Minute)
		w.must(w.m.Revoke(a.Session().Lease())) // and a says nothing
		b := w.held(m, "b")
		if b.Slot() == a.Slot() {
			w.Error("b took the slot of a hold that may live")
		}
		c := w.acquire(w.Context(), m, "c")
		w.must(c.wait().err)
		if c.term.Slot() != a.Slot() || c.at != 70*time.Second {
			w.Errorf("c holds slot %d at %v, want a's, the recorded TTL after 1m", c.term.Slot(), c.at)
		}
		end, found, err := LastEnd(w.Context(), m.cli, SettleOptions{Last: "/last/x/2/0"})
		if err != nil || !found || end.How != EndExpired || end.Holder != "a" || end.Token != a.Token() {
			w.Errorf("%+v %v %v", end, found, err)
		}
	})
}

func TestASlotIsFreeOnItsHoldersWord(t *testing.T) {
	for _, watched := range []bool{true, false} {
		t.Run(fmt.Sprintf("watched=%v", watched), func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				m := w.semaphore(seats(1))
				a := w.held(m, "a")
				w.must(w.m.Revoke(a.Session().Lease()))
				if !watched {
					w.m.Inject(coordtest.Rule{Method: coordtest.Watch, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
				}
				b := w.acquire(w.Context(), m, "b")
				time.Sleep(1500 * time.Millisecond)
				if b.finished() {
					w.Fatal("started while the holder's work may go on")
				}
				w.must(m.Release(w.Context(), a))
				w.must(b.wait().err)
				if want := map[bool]time.Duration{true: 1500 * time.Millisecond, false: 2 * time.Second}[watched]; b.at != want {
					w.Errorf("started at %v, want %v", b.at, want)
				}
			})
		})
	}
}

func TestSlotsAreSettledSideBySide(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(2))
		a, b := w.held(m, "a"), w.held(m, "b")
		c, d := w.acquire(w.Context(), m, "c"), w.acquire(w.Context(), m, "d")
		time.Sleep(time.Minute)
		w.must(w.m.Revoke(a.Session().Lease()))
		w.must(w.m.Revoke(b.Session().Lease()))
		w.must(c.wait().err)
		w.must(d.wait().err)
		if c.at != 70*time.Second || d.at != 70*time.Second || c.term.Slot() == d.term.Slot() {
			w.Errorf("at %v and %v, slots %d and %d", c.at, d.at, c.term.Slot(), d.term.Slot())
		}
	})
}

func TestWhoSettlesTakesAnotherSlotThatIsFreedMeanwhile(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(2))
		a, b := w.held(m, "a"), w.held(m, "b")
		w.must(w.m.Revoke(a.Session().Lease()))
		c := w.acquire(w.Context(), m, "c")
		time.Sleep(3 * time.Second)
		if c.finished() {
			w.Fatal(c.err)
		}
		w.must(m.Release(w.Context(), b))
		w.must(c.wait().err)
		if c.term.Slot() != b.Slot() || c.at != 3*time.Second {
			w.Errorf("slot %d at %v", c.term.Slot(), c.at)
		}
		if w.m.Get("/open/x/2/0") == nil {
			w.Error("a's record is closed")
		}
	})
}

func TestSlotsOfADeadHostNeedNoFurtherWaitWhereTheirEndWasSeenComing(t *testing.T) {
	inBubble(t, coordtest.Options{Members: 2, RevokeLag: 300 * time.Millisecond}, func(w *world) {
		dead, m := w.semaphore(seats(3), 1), w.semaphore(seats(3), 0)
		w.held(dead, "a")
		w.held(dead, "b")
		alive := w.held(m, "alive")
		c, d := w.acquire(w.Context(), m, "c"), w.acquire(w.Context(), m, "d")
		time.Sleep(time.Minute + 100*time.Millisecond)
		w.m.Stop(1) // the last renewals of a and b were sent at 60 s
		for _, call := range []*async{c, d} {
			w.must(call.wait().err)
			if call.at < 70*time.Second || call.at > 71500*time.Millisecond {
				w.Errorf("started at %v, want within 1.5 s of the expiry at 70 s", call.at)
			}
		}
		w.must(alive.Check())
		w.m.Cont(1)
	})
	t.Run("of many slots some are asked about at a time", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(askAbout + 4))
			for i := range askAbout + 4 {
				w.held(m, fmt.Sprint(i))
			}
			w.acquire(w.Context(), m, "waits")
			before := w.m.Calls(coordtest.TimeToLive)
			time.Sleep(4100 * time.Millisecond)
			if n := w.m.Calls(coordtest.TimeToLive) - before; n != 2*askAbout {
				w.Errorf("asked %d times in two fifths of a TTL", n)
			}
		})
	})
	t.Run("what cannot be read is not asked about", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(1))
			w.held(m, "a")
			w.acquire(w.Context(), m, "b")
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: looksAt("/open/x/1/"), Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
			time.Sleep(3 * time.Second)
			if n := w.m.Calls(coordtest.TimeToLive); n != 0 {
				w.Errorf("asked %d times", n)
			}
		})
	})
}

// looksAt picks the Txns that only read, and read the range of that prefix.
func looksAt(prefix string) func(*coordtest.Call) bool {
	return func(c *coordtest.Call) bool {
		r := c.Request.(*pb.TxnRequest)
		found := false
		for _, op := range r.Success {
			if op.GetRequestRange() == nil {
				return false
			}
			found = found || string(op.GetRequestRange().Key) == prefix && string(op.GetRequestRange().RangeEnd) != ""
		}
		return found && len(r.Compare) == 0
	}
}

func TestANewcomerSettlesSlotsLeftOpen(t *testing.T) {
	for name, take := range map[string]func(context.Context, *Semaphore) (*Term, error){
		"Acquire": func(ctx context.Context, m *Semaphore) (*Term, error) { return m.Acquire(ctx, "c") },
		"TryAcquire": func(ctx context.Context, m *Semaphore) (*Term, error) {
			term, _, err := m.TryAcquire(ctx, "c")
			return term, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				time.Sleep(time.Second)
				o := seats(2)
				var told []Waiting
				m := w.semaphore(o)
				o.TTL = 30 * time.Second
				a := w.held(w.semaphore(o), "a") // the shorter settling is that of b
				b := w.held(m, "b")
				w.must(w.m.Revoke(a.Session().Lease()))
				w.must(w.m.Revoke(b.Session().Lease()))
				m.opts.Waiting = func(x Waiting) { told = append(told, x) }
				term, err := take(w.Context(), m)
				w.must(err)
				if w.now() != 11*time.Second || term.Slot() != b.Slot() {
					w.Errorf("slot %d at %v, want b's, 10 s after 1s", term.Slot(), w.now())
				}
				if len(told) != 1 || told[0].Settling != 10*time.Second || told[0].Record.Holder != "b" {
					w.Errorf("told %+v", told)
				}
				if rec := DecodeRecord(w.m.Get("/open/x/2/1"), 0); rec.Lease != term.Session().Lease() {
					w.Errorf("record %+v", rec)
				}
				if rec := DecodeRecord(w.m.Get("/open/x/2/0"), 0); rec.Holder != "a" {
					w.Errorf("a's record %+v", rec)
				}
				w.must(m.Release(w.Context(), term))
			})
		})
	}
}

func TestASettlerOfASlotThatGivesUpLeavesTheRecord(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(1))
		a := w.held(m, "a")
		w.must(w.m.Revoke(a.Session().Lease()))
		record := w.m.Get("/open/x/1/0").ModRevision
		for _, try := range []bool{false, true} {
			ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
			var err error
			if try {
				_, _, err = m.TryAcquire(ctx, "b")
			} else {
				_, err = m.Acquire(ctx, "b")
			}
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				w.Error(err)
			}
		}
		if rec := w.m.Get("/open/x/1/0"); rec == nil || rec.ModRevision != record || w.keys() != "[/open/x/1/0]" {
			w.Errorf("%v, keys %s", rec, w.keys())
		}
	})
}

// Red when a record that cannot be read counts as one whose hold has lost its key: its slot's key stands.
func TestSettlingDoesNotCountWhileTheSlotsKeyStands(t *testing.T) {
	for name, record := range map[string]func(a *Term) string{
		"garbage": func(*Term) string { return "garbage" },
		"its own": func(a *Term) string { return fmt.Sprintf(`{"lease":"%s","ttl":10}`, leaseHex(a.Session())) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				m := w.semaphore(seats(1))
				a := w.held(m, "a")
				b := w.acquire(w.Context(), m, "b")
				_, err := w.m.Put("/open/x/1/0", record(a), 0)
				w.must(err)
				time.Sleep(time.Second)
				w.m.Delete(a.Keys().Key) // b looks: it is entitled, and waits for the slot
				time.Sleep(15 * time.Second)
				w.m.Delete("/slot/x/1/0")
				w.must(b.wait().err)
				if b.at != 26*time.Second {
					w.Errorf("held at %v, want 10 s after the slot's key went at 16s", b.at)
				}
			})
		})
	}
}

func TestAnEntitledWaiterGetsTheSlotOfWhoLostItsPlace(t *testing.T) {
	for _, settle := range []bool{false, true} {
		t.Run(fmt.Sprintf("settle=%v", settle), func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				o := seats(1)
				if !settle {
					o.Settle = SettleOptions{}
				}
				var told []Waiting
				o.Waiting = func(x Waiting) { told = append(told, x) }
				m := w.semaphore(o)
				a := w.held(m, "a")
				b := w.acquire(w.Context(), m, "b")
				w.m.Delete(a.Keys().Key)
				time.Sleep(2 * time.Second)
				if b.finished() {
					w.Fatal("two hold one slot")
				}
				w.must(m.Release(w.Context(), a))
				w.must(b.wait().err)
				if b.at != 2*time.Second || len(told) != 2 || told[1].Position != 1 {
					w.Errorf("at %v, told %+v", b.at, told)
				}
			})
		})
	}
}

func TestWhoIsEntitledLeavesASlotToWhoCameBefore(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(2))
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/"), Action: coordtest.Delay(time.Second)})
		a := w.acquire(w.Context(), m, "a")
		b := w.held(m, "b")
		if w.must(a.wait().err); a.term.Slot() != 0 || b.Slot() != 1 || a.at != time.Second {
			w.Errorf("slots %d and %d, a at %v", a.term.Slot(), b.Slot(), a.at)
		}
	})
}

func TestTwoTriesForTheLastSlot(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(3))
		for round := range 20 {
			a, b := w.held(m, "a"), w.held(m, "b")
			var tries sync.WaitGroup
			var won [6]*Term
			for i := range won {
				tries.Go(func() {
					term, _, err := m.TryAcquire(w.Context(), fmt.Sprint(i))
					w.must(err)
					won[i] = term
				})
			}
			tries.Wait()
			n := 0
			for _, term := range won {
				if term != nil {
					n++
					w.must(m.Release(w.Context(), term))
				}
			}
			if n != 1 {
				w.Fatalf("round %d: %d got the last slot", round, n)
			}
			w.must(m.Release(w.Context(), a))
			w.must(m.Release(w.Context(), b))
		}
		if len(w.m.Keys("/s/"))+len(w.m.Keys("/slot/"))+len(w.m.Keys("/open/"))+len(w.m.Leases()) != 0 {
			w.Error(w.keys())
		}
	})
}

// Red when a try is refused because somebody came between its look and its request, though there is room.
func TestATryIsNotRefusedWhileThereIsRoom(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(3))
		come := make(chan *Term, 2)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/"), Action: coordtest.Before(func() { come <- w.held(m, "a") })})
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Skip: 1, When: puts("/slot/x/"), Action: coordtest.Before(func() { come <- w.held(m, "b") })})
		term, held, err := m.TryAcquire(w.Context(), "c")
		if !held || err != nil {
			w.Fatal(held, err)
		}
		if a, b := <-come, <-come; a.Slot() == b.Slot() || a.Slot() == term.Slot() || b.Slot() == term.Slot() {
			w.Error(a.Slot(), b.Slot(), term.Slot())
		}
	})
	t.Run("nor overtakes who waits", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(1))
			a := w.held(m, "a")
			b := w.acquire(w.Context(), m, "b")
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/"), Action: coordtest.Delay(time.Second)})
			w.must(m.Release(w.Context(), a))
			synctest.Wait() // b is told, and not there yet
			if _, held, err := m.TryAcquire(w.Context(), "c"); held || err != nil {
				w.Error(held, err)
			}
			d := w.acquire(w.Context(), m, "d") // nor does who queues, though the slot is free
			time.Sleep(2 * time.Second)
			if d.finished() || !b.finished() || b.err != nil {
				w.Error("d overtook b", b.err)
			}
		})
	})
	t.Run("nor who came since it looked", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(1))
			come := make(chan *async, 1)
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/"), Action: coordtest.Before(func() { come <- w.acquire(w.Context(), m, "a") })})
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/"), Action: coordtest.Delay(time.Second)}) // a's, which has its turn
			b, held, err := m.TryAcquire(w.Context(), "b")
			if held || err != nil {
				w.Error(held, err)
			}
			w.must(m.Release(w.Context(), b))
			w.must((<-come).wait().err)
		})
	})
	t.Run("and leaves nothing when another max came first", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(1))
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/"), Action: coordtest.Before(func() { w.held(w.semaphore(seats(2)), "a") })})
			if _, held, err := m.TryAcquire(w.Context(), "c"); held || !errors.Is(err, ErrOtherMax) {
				w.Error(held, err)
			}
			if len(w.m.Leases()) != 1 {
				w.Error(w.keys())
			}
		})
	})
}

func TestRequestsOfASeatWithoutAnAnswer(t *testing.T) {
	taking := func(w *world, action coordtest.Action, times int) *coordtest.Fault {
		return w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/"), Times: times, Action: action})
	}
	t.Run("the first, committed", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(1))
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/s/x/"), Action: coordtest.LoseReply(coordtest.Unavailable(""))})
			w.must(m.Release(w.Context(), w.held(m, "a")))
		})
	})
	t.Run("the first, not committed", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(1))
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/s/x/"), Action: coordtest.LoseRequest()})
			if _, err := m.Acquire(w.Context(), "a"); !errors.Is(err, ErrUndecided) {
				w.Error(err)
			}
			if w.keys() != "[]" || len(w.m.Leases()) != 0 {
				w.Error(w.keys())
			}
		})
	})
	t.Run("the one that takes, committed", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(2))
			taking(w, coordtest.LoseReply(coordtest.Unavailable("")), 1)
			a := w.acquire(w.Context(), m, "a")
			w.must(a.wait().err)
			if rec := w.m.Get("/open/x/2/0"); rec.ModRevision != a.term.Keys().OpenRev || len(w.m.Keys("/slot/")) != 1 {
				w.Errorf("%v, %+v", rec, a.term.Keys())
			}
			w.must(m.Release(w.Context(), a.term))
			if w.keys() != "[/last/x/2/0]" {
				w.Error(w.keys())
			}
		})
	})
	t.Run("a try, committed", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(2))
			taking(w, coordtest.LoseReply(coordtest.Unavailable("")), 1)
			term, held, err := m.TryAcquire(w.Context(), "a")
			if !held || err != nil {
				w.Fatal(held, err)
			}
			w.must(m.Release(w.Context(), term))
			if w.keys() != "[/last/x/2/0]" {
				w.Error(w.keys())
			}
		})
	})
	t.Run("a try, and no look after it", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(2))
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			defer cancel()
			taking(w, coordtest.LoseReply(nil), 1)
			if _, held, err := m.TryAcquire(ctx, "a"); held || !errors.Is(err, context.DeadlineExceeded) {
				w.Error(held, err)
			}
			if w.keys() != "[/last/x/2/0]" || len(w.m.Leases()) != 0 {
				w.Error(w.keys())
			}
		})
	})
	t.Run("the one that takes, and the slot's key is deleted before it is known", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(2))
			taking(w, coordtest.LoseReply(coordtest.Unavailable("")), 1)
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/"), Action: coordtest.Before(func() { w.m.Delete("/slot/x/2/0") })})
			if _, err := m.Acquire(w.Context(), "a"); !errors.Is(err, ErrKeyGone) {
				w.Error(err)
			}
			if w.keys() != "[/last/x/2/0]" {
				w.Error(w.keys())
			}
		})
	})
}

// Red when the Txn that takes a slot does not compare that the own key was never put again: a request that lands
// late takes a second slot, which nobody knows of.
func TestALateRequestTakesNoSecondSlot(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(2))
		release := make(chan struct{})
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/2/0"), Action: coordtest.Late(release)})
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/2/0"), Action: coordtest.Before(func() {
			_, err := w.m.Put("/slot/x/2/0", "somebody", 0)
			w.must(err)
		})})
		a := w.acquire(w.Context(), m, "a")
		w.must(a.wait().err)
		if a.term.Slot() != 1 {
			w.Fatalf("slot %d", a.term.Slot())
		}
		w.m.Delete("/slot/x/2/0")
		close(release)
		time.Sleep(time.Second)
		if w.m.Get("/slot/x/2/0") != nil || w.m.Get("/open/x/2/0") != nil {
			w.Errorf("a holds two slots: %s", w.keys())
		}
		w.must(a.term.Check())
	})
}

// Red when the Txn that takes a slot does not compare the record: it overwrites that of a hold that may live.
func TestARecordThatComesJustBeforeASlotIsTakenIsSettled(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(1))
		time.Sleep(time.Second)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/"), Action: coordtest.Before(func() {
			_, err := w.m.Put("/open/x/1/0", `{"lease":"1","ttl":20}`, 0)
			w.must(err)
		})})
		a := w.acquire(w.Context(), m, "a")
		w.must(a.wait().err)
		if a.at != 21*time.Second {
			w.Errorf("held at %v, want after the record's 20 s", a.at)
		}
	})
}

func TestWhoLeavesInDoubtGivesBackWhatARequestTookAfterAll(t *testing.T) {
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprintf("refused=%v", refused), func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				m, err := w.session(SessionOptions{}).Semaphore(seats(3))
				w.must(err)
				c, err := m.join(w.Context(), "a")
				w.must(err)
				_, err = c.enter(w.Context())
				w.must(err)
				// One request took slot 2, unheard; the last was for slot 0.
				_, ops := c.taking(2, 0)
				_, err = m.cli.Txn(w.Context()).Then(ops...).Commit()
				w.must(err)
				c.slot, c.doubt = 0, true
				if refused {
					w.m.Inject(coordtest.Rule{Method: coordtest.Range, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
				}
				if err := c.leave(ErrClosed); !errors.Is(err, ErrClosed) {
					w.Error(err)
				}
				if got := w.keys(); refused != strings.Contains(got, "/slot/x/3/2") || strings.Contains(got, "/s/x/") {
					w.Error(got)
				}
			})
		})
	}
}

func TestASemaphoreOnASession(t *testing.T) {
	t.Run("holds once at a time", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			s := w.session(SessionOptions{})
			m, err := s.Semaphore(seats(2))
			w.must(err)
			a, err := m.Acquire(w.Context(), "a")
			w.must(err)
			if _, held, err := m.TryAcquire(w.Context(), "b"); held || err != nil {
				w.Error(held, err)
			}
			short, cancel := context.WithTimeout(w.Context(), time.Second)
			defer cancel()
			if _, err := m.Acquire(short, "b"); !errors.Is(err, context.DeadlineExceeded) {
				w.Error(err)
			}
			next := make(chan *Term, 1)
			go func() { term, err := m.Acquire(w.Context(), "b"); w.must(err); next <- term }()
			synctest.Wait()
			w.must(m.Release(w.Context(), a))
			w.must(m.Release(w.Context(), a))
			b := <-next
			if b.Token() <= a.Token() || b.Session() != s {
				w.Error(b.Token())
			}
			w.must(m.Release(w.Context(), b))
			c, held, err := m.TryAcquire(w.Context(), "c")
			if !held || err != nil {
				w.Error(held, err)
			}
			w.must(m.Release(w.Context(), c))

			// A try that is refused by etcd gives its turn back.
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Skip: 1, Action: coordtest.Before(func() { w.held(w.semaphore(seats(2)), "x"); w.held(w.semaphore(seats(2)), "y") })})
			if _, held, err := m.TryAcquire(w.Context(), "d"); held || err != nil {
				w.Error(held, err)
			}
			w.must(s.Check())
			if len(s.offices) != 0 || len(s.claims) != 0 || s.holds != 0 {
				w.Errorf("%d offices, %d claims, %d holds", len(s.offices), len(s.claims), s.holds)
			}
		})
	})
	t.Run("a release in doubt goes on where more is on the session", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			s := w.session(SessionOptions{})
			w.must(w.election(s, ElectionOptions{Key: "/e/other"}).Campaign(w.Context(), "o"))
			m, err := s.Semaphore(seats(1))
			w.must(err)
			a, err := m.Acquire(w.Context(), "a")
			w.must(err)
			lost := w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
			ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
			defer cancel()
			if err := m.Release(ctx, a); !errors.Is(err, ErrUndecided) {
				w.Error(err)
			}
			lost.Remove()
			time.Sleep(time.Minute)
			if w.m.Get("/slot/x/1/0") != nil || w.m.Get("/open/x/1/0") != nil {
				w.Error(w.keys())
			}
			w.must(m.Release(w.Context(), a))
			a, err = m.Acquire(w.Context(), "again")
			w.must(err)
			w.must(a.Check())
		})
	})
	t.Run("what may land late keeps the turn, and is deleted when it does", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			s := w.session(SessionOptions{})
			w.must(w.election(s, ElectionOptions{Key: "/e/other"}).Campaign(w.Context(), "o"))
			m, err := s.Semaphore(seats(1))
			w.must(err)
			release := make(chan struct{})
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/"), Action: coordtest.Late(release)})
			if _, _, err := m.TryAcquire(w.Context(), "a"); !errors.Is(err, ErrUndecided) {
				w.Error(err)
			}
			if _, held, err := m.TryAcquire(w.Context(), "a"); held || err != nil {
				w.Error(held, err)
			}
			synctest.Wait()
			close(release)
			time.Sleep(time.Minute)
			if len(w.m.Keys("/s/"))+len(w.m.Keys("/slot/")) != 0 {
				w.Error(w.keys())
			}
			w.must(s.Check())
			a, err := m.Acquire(w.Context(), "a")
			w.must(err)
			w.must(a.Check())
		})
	})
	t.Run("a key that an earlier attempt left is not adopted, and goes", func(t *testing.T) {
		for _, try := range []bool{false, true} {
			t.Run(fmt.Sprintf("try=%v", try), func(t *testing.T) {
				inBubble(t, coordtest.Options{}, func(w *world) {
					s := w.session(SessionOptions{})
					m, err := s.Semaphore(seats(2))
					w.must(err)
					_, err = w.m.Put("/s/x/2/"+leaseHex(s), "", s.Lease())
					w.must(err)
					if try {
						_, _, err = m.TryAcquire(w.Context(), "a")
					} else {
						_, err = m.Acquire(w.Context(), "a")
					}
					if !errors.Is(err, ErrUndecided) || !errors.Is(err, errStale) {
						w.Error(err)
					}
					synctest.Wait()
					if w.keys() != "[]" {
						w.Error(w.keys())
					}
				})
			})
		}
	})
	t.Run("and where it goes by itself the turn is not kept for it", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			s := w.session(SessionOptions{})
			m, err := s.Semaphore(seats(2))
			w.must(err)
			key := "/s/x/2/" + leaseHex(s)
			_, err = w.m.Put(key, "", s.Lease())
			w.must(err)
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.After(func() { w.m.Delete(key) })})
			if _, err := m.Acquire(w.Context(), "a"); !errors.Is(err, errStale) {
				w.Error(err)
			}
			ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
			defer cancel()
			_, err = m.Acquire(ctx, "a")
			w.must(err)
		})
	})
	t.Run("that is closed", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			s := w.session(SessionOptions{})
			m, err := s.Semaphore(seats(1))
			w.must(err)
			w.must(s.Close(w.Context()))
			if _, err := m.Acquire(w.Context(), "a"); !errors.Is(err, ErrClosed) {
				w.Error(err)
			}
			if _, held, err := m.TryAcquire(w.Context(), "a"); held || !errors.Is(err, ErrClosed) {
				w.Error(held, err)
			}
		})
	})
}

func TestWhatGoesWrongWithASeatIsTold(t *testing.T) {
	refused := coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)
	t.Run("no lease", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(1))
			w.m.Inject(coordtest.Rule{Method: coordtest.Grant, Times: 2, Action: refused})
			if _, err := m.Acquire(w.Context(), "a"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
				w.Error(err)
			}
			if _, held, err := m.TryAcquire(w.Context(), "a"); held || !errors.Is(err, rpctypes.ErrPermissionDenied) {
				w.Error(held, err)
			}
		})
	})
	for name, skip := range map[string]int{"the first request": 0, "the one that takes": 1} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				m := w.semaphore(seats(1))
				w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Skip: skip, Action: refused})
				if _, err := m.Acquire(w.Context(), "a"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
					w.Error(err)
				}
				if w.keys() != "[]" || len(w.m.Leases()) != 0 {
					w.Error(w.keys())
				}
			})
		})
	}
	t.Run("a wake-up's look", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(1))
			a := w.held(m, "a")
			b := w.acquire(w.Context(), m, "b")
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: looksAt("/slot/x/1/"), Action: refused})
			w.must(m.Release(w.Context(), a))
			if err := b.wait().err; !errors.Is(err, rpctypes.ErrPermissionDenied) || w.keys() != "[/last/x/1/0]" {
				w.Error(err, w.keys())
			}
		})
	})
	t.Run("a hold that has no time to begin", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(1))
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/"), Action: coordtest.After(cancel)})
			if _, err := m.Acquire(ctx, "a"); !errors.Is(err, context.Canceled) {
				w.Error(err)
			}
			if w.keys() != "[/last/x/1/0]" || len(w.m.Leases()) != 0 {
				w.Error(w.keys())
			}
		})
	})
	t.Run("a session that cannot be closed", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(1))
			w.m.Inject(coordtest.Rule{Method: coordtest.Revoke, Times: 2, Action: refused})
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Skip: 1, Action: refused})
			if _, err := m.Acquire(w.Context(), "a"); !errors.Is(err, rpctypes.ErrPermissionDenied) || !strings.Contains(err.Error(), "revoke") {
				w.Error(err)
			}
			if err := m.Release(w.Context(), w.held(m, "b")); !errors.Is(err, rpctypes.ErrPermissionDenied) {
				w.Error(err)
			}
		})
	})
	t.Run("a release that gets no answer", func(t *testing.T) {
		for _, settle := range []bool{false, true} {
			t.Run(fmt.Sprintf("settle=%v", settle), func(t *testing.T) {
				inBubble(t, coordtest.Options{}, func(w *world) {
					o := seats(1)
					if !settle {
						o.Settle = SettleOptions{}
					}
					m := w.semaphore(o)
					a := w.held(m, "a")
					lost := w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
					ctx, cancel := context.WithTimeout(w.Context(), time.Second)
					defer cancel()
					// The revoke decides about the keys; a record stays, and that is told.
					if err := m.Release(ctx, a); errors.Is(err, ErrUndecided) != settle {
						w.Error(err)
					}
					lost.Remove()
					w.must(m.Release(w.Context(), a))
					if want := map[bool]string{false: "[]", true: "[/last/x/1/0]"}[settle]; w.keys() != want {
						w.Error(w.keys())
					}
				})
			})
		}
	})
}

// TestEveryCallOfASemaphoreFails tells one story, of three contenders for two slots, with each of its calls failing
// in each way, once and twice in a row. Whatever happens: no slot is held twice; an error leaves no key; and at the end
// nothing is left in etcd.
func TestEveryCallOfASemaphoreFails(t *testing.T) {
	for _, try := range []bool{false, true} {
		t.Run(fmt.Sprintf("try=%v", try), func(t *testing.T) {
			withEachFailure(t, 5, func(w *world) { w.seatStory(try) })
		})
	}
}

func (w *world) seatStory(try bool) {
	m := w.semaphore(seats(2))
	var slots [2]leaders
	play := func(id string) error {
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		var term *Term
		var err error
		if try {
			term, _, err = m.TryAcquire(ctx, id)
		} else {
			term, err = m.Acquire(ctx, id)
		}
		if term == nil {
			return err
		}
		slots[term.Slot()].begin(w, id)
		select {
		case <-time.After(3 * time.Second):
		case <-term.Lost():
		}
		slots[term.Slot()].end(id)
		return m.Release(ctx, term)
	}
	var players sync.WaitGroup
	for _, id := range []string{"a", "b", "c"} {
		players.Go(func() { w.Logf("%s: %v", id, play(id)) })
		time.Sleep(500 * time.Millisecond) // in fake time
	}
	players.Wait()

	// What could not be deleted goes with its lease; a late request has landed by then.
	time.Sleep(30 * time.Second)
	for _, key := range append(w.m.Keys("/s/"), w.m.Keys("/slot/")...) {
		w.Errorf("left behind: %s", key)
	}
	if n := len(w.m.Leases()); n > 0 {
		w.Errorf("%d leases left", n)
	}
}

// TestSlotsInManyWorlds plays at random: contenders come, wait, give up, try, hold, work on after a loss up to their
// deadline, and die, while keys are deleted, leases revoked, requests and replies lost and late. Whatever happens: no
// two works are in one slot, so never more than max work; and nothing is left but the records of the dead.
func TestSlotsInManyWorlds(t *testing.T) {
	t.Parallel()
	worlds := uint64(24)
	if testing.Short() {
		worlds = 8
	}
	for seed := range worlds {
		synctest.Test(t, func(t *testing.T) {
			w := &world{T: t, m: coordtest.Start(t, coordtest.Options{}), start: time.Now()}
			w.seatWorld(seed)
		})
	}
}

func (w *world) seatWorld(seed uint64) {
	dice := newDice(seed)
	max := 1 + int(seed%4)
	m := w.semaphore(seats(max))
	slots := make([]leaders, max)
	var players sync.WaitGroup
	for p := range max + 4 {
		players.Go(func() {
			for range 4 {
				dice.hold(w, m, slots, fmt.Sprintf("seed %d, player %d", seed, p))
			}
		})
	}
	over := make(chan struct{})
	var mischief sync.WaitGroup
	mischief.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(dice.upTo(2 * time.Second)):
				dice.mischief(w)
			}
		}
	})
	players.Wait()
	close(over)
	mischief.Wait()
	w.m.Heal()
	time.Sleep(time.Minute) // the dead expire, late requests land
	if left := append(w.m.Keys("/s/"), w.m.Keys("/slot/")...); len(left) != 0 || len(w.m.Leases()) != 0 {
		w.Errorf("seed %d left %v, %d leases", seed, left, len(w.m.Leases()))
	}
	// And all slots can be had again, the latest when the dead are settled.
	for range max {
		a := w.acquire(w.Context(), m, "after all")
		if w.must(a.wait().err); a.at > w.now()+11*time.Second {
			w.Errorf("seed %d: only at %v", seed, a.at)
		}
	}
}

// hold plays one life.
func (d *dice) hold(w *world, m *Semaphore, slots []leaders, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), d.upTo(time.Minute))
	defer cancel()
	var term *Term
	if d.upTo(3) == 0 {
		term, _, _ = m.TryAcquire(ctx, id)
	} else {
		term, _ = m.Acquire(ctx, id)
	}
	if term == nil {
		return
	}
	if term.Check() == nil {
		slots[term.Slot()].begin(w, id)
		select {
		case <-time.After(d.upTo(40 * time.Second)):
		case <-term.Lost():
			_, kill := term.Deadlines()
			time.Sleep(d.upTo(max(1, kill-w.now()))) // the work is stopping, in fake time
		}
		slots[term.Slot()].end(id)
	}
	if d.upTo(5) == 0 { // it dies without a word
		term.s.mu.Lock()
		term.s.muted = true
		term.s.mu.Unlock()
		<-term.Lost()
		return
	}
	_ = m.Release(context.Background(), term)
}

// mischief does something to etcd, or to what stands there.
func (d *dice) mischief(w *world) {
	pick := func(prefix string) (key string) {
		if keys := w.m.Keys(prefix); len(keys) > 0 {
			key = keys[int(d.upTo(time.Duration(len(keys))))]
		}
		return key
	}
	late := make(chan struct{})
	time.AfterFunc(d.upTo(8*time.Second), func() { close(late) })
	lose := func(action coordtest.Action) {
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: 1 + int(d.upTo(2)), Action: action})
	}
	switch d.upTo(9) {
	case 0:
		w.m.Delete(pick("/s/"))
	case 1:
		w.m.Delete(pick("/slot/"))
	case 2:
		if leases := w.m.Leases(); len(leases) > 0 {
			_ = w.m.Revoke(leases[int(d.upTo(time.Duration(len(leases))))].ID)
		}
	case 3:
		lose(coordtest.LoseRequest())
	case 4:
		lose(coordtest.LoseReply(coordtest.Unavailable("")))
	case 5:
		lose(coordtest.LoseReply(nil))
	case 6:
		lose(coordtest.Late(late))
	case 7:
		w.m.Inject(coordtest.Rule{Method: coordtest.Watch, Action: coordtest.LoseRequest()})
	case 8:
		_ = w.m.Compact(w.m.Rev())
	}
}
