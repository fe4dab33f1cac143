package coord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
)

// seats are the options of a semaphore that settles.
func seats(max int) SemaphoreOptions {
	return SemaphoreOptions{Key: "/s/x", Max: max, Slots: "/slot/x", Settle: SettleOptions{Open: "/open/x", Last: "/last/x"}}
}

func (w *world) semaphore(o SemaphoreOptions, members ...int) *Semaphore {
	w.Helper()
	o.Clock = w.now
	m, err := NewSemaphore(w.m.Client(w, members...), o)
	w.must(err)
	return m
}

// acquire starts an Acquire in the background and returns when it waits for something.
func (w *world) acquire(ctx context.Context, m *Semaphore, id string) *async {
	a := &async{done: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	w.Cleanup(func() {
		cancel()
		<-a.done
		if a.term != nil {
			_ = a.term.s.Close(context.Background())
		}
	})
	go func() {
		defer close(a.done)
		a.term, a.err = m.Acquire(ctx, id)
		a.at = w.now()
	}()
	synctest.Wait()
	return a
}

// held is Acquire, which has to succeed at once.
func (w *world) held(m *Semaphore, id string) *Term {
	w.Helper()
	a := w.acquire(w.Context(), m, id)
	if !a.finished() {
		w.Fatalf("%s waits", id)
	}
	w.must(a.err)
	return a.term
}

func TestAFreeSlotIsHeldInTwoRequests(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(3))
		term := w.held(m, "a")
		if n := w.m.Calls(coordtest.Txn) + w.m.Calls(coordtest.Range); n != 2 || w.m.Calls(coordtest.Grant) != 1 {
			w.Errorf("%d requests, want 2 after the grant", n)
		}
		lease := leaseHex(term.Session())
		if got := w.keys(); got != fmt.Sprintf("[/open/x/3/0 /s/x/3/%s /slot/x/3/0]", lease) {
			w.Error(got)
		}
		slot, queue := w.m.Get("/slot/x/3/0"), w.m.Get("/s/x/3/"+lease)
		if term.Slot() != 0 || term.Token() != uint64(slot.CreateRevision) || string(slot.Value) != lease || string(queue.Value) != "a" {
			w.Errorf("slot %d, token %d, %v %v", term.Slot(), term.Token(), slot, queue)
		}
		if slot.Lease != queue.Lease || slot.Lease != int64(term.Session().Lease()) {
			w.Error("the keys are not on the lease of the hold")
		}
		if rec := DecodeRecord(w.m.Get("/open/x/3/0"), 0); rec.Lease != term.Session().Lease() || rec.TTL != 10*time.Second || rec.Holder != "a" {
			w.Errorf("record %+v", rec)
		}
		time.Sleep(time.Minute + 100*time.Millisecond) // between two renewals
		w.must(term.Check())
		before := w.m.Calls(coordtest.Txn)
		w.must(m.Release(w.Context(), term))
		if n := w.m.Calls(coordtest.Txn) - before; n != 1 || w.keys() != "[/last/x/3/0]" || len(w.m.Leases()) != 0 {
			w.Errorf("%d requests, keys %s", n, w.keys())
		}
		w.must(m.Release(w.Context(), term))
		w.must(m.Release(w.Context(), nil))
		if err := term.Check(); !errors.Is(err, ErrResigned) {
			w.Error(err)
		}
	})
	t.Run("without settling there is no record", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(SemaphoreOptions{Key: "/s/x/", Max: 2, Identity: "me"})
			term := w.held(m, "")
			if got := w.keys(); got != fmt.Sprintf("[/s/x.slots/2/0 /s/x/2/%s]", leaseHex(term.Session())) {
				w.Error(got)
			}
			if holders, err := m.Holders(w.Context()); err != nil || len(holders) != 1 || holders[0].Identity != "me" {
				w.Error(holders, err)
			}
			w.must(m.Release(w.Context(), term))
			if w.keys() != "[]" {
				w.Error(w.keys())
			}
		})
	})
}

func TestAFullSemaphoreIsRefusedInOneRequestWithoutALease(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(2))
		a, b := w.held(m, "a"), w.held(m, "b")
		if a.Slot() == b.Slot() || a.Token() == b.Token() {
			w.Errorf("slots %d %d, tokens %d %d", a.Slot(), b.Slot(), a.Token(), b.Token())
		}
		keys, before := w.keys(), w.m.Calls(coordtest.Txn)
		if term, held, err := m.TryAcquire(w.Context(), "c"); term != nil || held || err != nil {
			w.Error(term, held, err)
		}
		if n := w.m.Calls(coordtest.Txn) - before; n != 1 || w.m.Calls(coordtest.Grant) != 2 || w.keys() != keys {
			w.Errorf("%d requests, %d grants, keys %s", n, w.m.Calls(coordtest.Grant), w.keys())
		}
		w.must(m.Release(w.Context(), a))
		before = w.m.Calls(coordtest.Txn)
		c, held, err := m.TryAcquire(w.Context(), "c")
		if !held || err != nil || c.Slot() != a.Slot() || c.Token() <= a.Token() {
			w.Fatal(c, held, err)
		}
		if n := w.m.Calls(coordtest.Txn) - before; n != 2 {
			w.Errorf("%d requests, want 2: the look and the one that takes", n)
		}
		w.must(m.Release(w.Context(), b))
		w.must(m.Release(w.Context(), c))
	})
}

func TestFiftyContendersTakeThreeSlotsInTheOrderInWhichTheyCame(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(3))
		var calls []*async
		for i := range 50 {
			calls = append(calls, w.acquire(w.Context(), m, fmt.Sprint(i)))
		}
		tokens := map[int]uint64{}
		holding := calls[:0:0]
		for next := 0; next < len(calls) || len(holding) > 0; {
			for len(holding) < 3 && next < len(calls) {
				w.must(calls[next].wait().err)
				term := calls[next].term
				if term.Slot() < 0 || term.Slot() > 2 || slices.ContainsFunc(holding, func(o *async) bool { return o.term.Slot() == term.Slot() }) {
					w.Fatalf("slot %d", term.Slot())
				}
				if term.Token() <= tokens[term.Slot()] {
					w.Errorf("token %d of slot %d after %d", term.Token(), term.Slot(), tokens[term.Slot()])
				}
				tokens[term.Slot()] = term.Token()
				holding, next = append(holding, calls[next]), next+1
			}
			for i, later := range calls[next:] {
				if later.finished() {
					w.Fatalf("%d holds before its turn: %v", next+i, later.err)
				}
			}
			// The holders leave in another order than they came.
			out := holding[len(holding)-1-next%len(holding)]
			holding = slices.DeleteFunc(holding, func(a *async) bool { return a == out })
			before := w.m.Calls(coordtest.Txn) + w.m.Calls(coordtest.Range)
			w.must(m.Release(w.Context(), out.term))
			synctest.Wait()
			if n := w.m.Calls(coordtest.Txn) + w.m.Calls(coordtest.Range) - before; next < len(calls) && n != 3 {
				w.Errorf("%d requests for one hand-over, want 3: the release, the look and the one that takes", n)
			}
		}
		if len(w.m.Keys("/s/"))+len(w.m.Keys("/slot/"))+len(w.m.Keys("/open/"))+len(w.m.Leases()) != 0 || w.now() != 0 {
			w.Errorf("at %v left %s", w.now(), w.keys())
		}
	})
}

func TestOneSlotIsAnElection(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(1))
		a := w.held(m, "a")
		b, c := w.acquire(w.Context(), m, "b"), w.acquire(w.Context(), m, "c")
		time.Sleep(time.Minute)
		if b.finished() || c.finished() {
			w.Fatal("two hold")
		}
		w.must(m.Release(w.Context(), a))
		w.must(b.wait().err)
		if c.finished() || b.at != time.Minute {
			w.Errorf("c holds, or b does since %v", b.at)
		}
		w.must(m.Release(w.Context(), b.term))
		w.must(c.wait().err)
		if tokens := []uint64{a.Token(), b.term.Token(), c.term.Token()}; !slices.IsSorted(tokens) {
			w.Error(tokens)
		}
	})
}

func TestAHolderWhoseKeysAreTouchedHearsOfItAtOnce(t *testing.T) {
	touch := func(key func(k TermKeys) string) map[string]func(w *world, k TermKeys) {
		return map[string]func(w *world, k TermKeys){
			"deleted": func(w *world, k TermKeys) { w.m.Delete(key(k)) },
			"moved": func(w *world, k TermKeys) {
				id, err := w.m.Grant(0, 60)
				w.must(err)
				_, err = w.m.Put(key(k), "", id)
				w.must(err)
			},
			"deleted and put again": func(w *world, k TermKeys) {
				w.m.Delete(key(k))
				_, err := w.m.Put(key(k), "", k.Lease)
				w.must(err)
			},
			"revoked": func(w *world, k TermKeys) { w.must(w.m.Revoke(k.Lease)) },
		}
	}
	for key, acts := range map[string]map[string]func(w *world, k TermKeys){
		"candidate": touch(func(k TermKeys) string { return k.Key }), "slot": touch(func(k TermKeys) string { return k.Slot }),
	} {
		for name, act := range acts {
			for _, watched := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s, watched=%v", key, name, watched), func(t *testing.T) {
					inBubble(t, coordtest.Options{}, func(w *world) {
						if !watched {
							w.m.Inject(coordtest.Rule{Method: coordtest.Watch, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
						}
						m := w.semaphore(seats(2))
						term := w.held(m, "a")
						time.Sleep(100 * time.Millisecond)
						act(w, term.Keys())
						select {
						case <-term.Lost():
						case <-time.After(time.Minute):
						}
						if err := term.Check(); !errors.Is(err, ErrTermLost) && !errors.Is(err, ErrSessionLost) {
							w.Error(err)
						}
						if w.now() > time.Second || watched && w.now() != 100*time.Millisecond {
							w.Errorf("heard of it at %v", w.now())
						}
						// Its slot is nobody's before it has said that its work is over.
						b := w.held(m, "b")
						c := w.acquire(w.Context(), m, "c")
						if b.Slot() == term.Slot() || c.finished() {
							w.Errorf("b has slot %d, c %v", b.Slot(), c.err)
						}
						w.must(m.Release(w.Context(), term))
						end, found, err := LastEnd(w.Context(), m.cli, SettleOptions{Last: "/last/x/2/0"})
						if err != nil || !found || end.How != EndLost || end.Token != term.Token() {
							w.Errorf("%+v %v %v", end, found, err)
						}
					})
				})
			}
		}
	}
}

func TestVerifyAsksForBothKeys(t *testing.T) {
	for name, key := range map[string]func(k TermKeys) string{
		"candidate": func(k TermKeys) string { return k.Key }, "slot": func(k TermKeys) string { return k.Slot },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				w.m.Inject(coordtest.Rule{Method: coordtest.Watch, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
				term := w.held(w.semaphore(seats(2)), "a")
				w.must(term.Verify(w.Context()))
				got, err := term.s.cli.Txn(w.Context()).If(term.Cmp()).Then(clientv3.OpPut("guarded", "")).Commit()
				if err != nil || !got.Succeeded {
					w.Error(got, err)
				}
				w.m.Delete(key(term.Keys()))
				if err := term.Verify(w.Context()); !errors.Is(err, ErrKeyGone) {
					w.Error(err)
				}
			})
		})
	}
}

func TestALateReleaseFreesNobodyElse(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(1))
		a := w.held(m, "a")
		keys := w.through(a.Keys())
		w.must(m.Release(w.Context(), a))
		b := w.held(m, "b")
		held := w.keys()
		w.must(keys.Release(w.Context(), m.cli, EndReleased))
		w.must(keys.CloseRecord(w.Context(), m.cli, EndLost))
		w.must(m.Release(w.Context(), a))
		if w.keys() != held || b.Check() != nil {
			w.Errorf("keys %s, want %s", w.keys(), held)
		}
	})
	// A holder that has lost its candidate's key, or its slot's, and releases when others stand in their places.
	for _, slot := range []bool{false, true} {
		t.Run(fmt.Sprintf("slot=%v", slot), func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				o := seats(1)
				o.Settle = SettleOptions{}
				m := w.semaphore(o)
				a := w.held(m, "a")
				keys := a.Keys()
				gone := keys.Key
				if slot {
					gone = keys.Slot
				}
				w.m.Delete(gone)
				<-a.Lost()
				if slot {
					w.m.Delete(keys.Key)
				} else {
					w.m.Delete(keys.Slot)
				}
				b := w.held(m, "b")
				w.must(m.Release(w.Context(), a))
				w.must(b.Verify(w.Context()))
			})
		})
	}
	// On one session a later hold has the same lease, and may have the same slot.
	for _, settle := range []bool{true, false} {
		t.Run(fmt.Sprintf("one session, settle=%v", settle), func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				o := seats(1)
				if !settle {
					o.Settle = SettleOptions{}
				}
				m, err := w.session(SessionOptions{}).Semaphore(o)
				w.must(err)
				a, err := m.Acquire(w.Context(), "a")
				w.must(err)
				keys := a.Keys()
				w.must(m.Release(w.Context(), a))
				b, err := m.Acquire(w.Context(), "b")
				w.must(err)
				held := w.keys()
				w.must(keys.release(w.Context(), m.cli, EndReleased, true, time.Second))
				w.must(m.Release(w.Context(), a))
				if w.keys() != held || b.Verify(w.Context()) != nil {
					w.Errorf("keys %s, want %s", w.keys(), held)
				}
			})
		})
	}
}

func TestAnotherProcessCanGiveASlotBack(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(1))
		a := w.held(m, `{"host":"h"}`)
		keys := w.through(a.Keys())
		b := w.acquire(w.Context(), m, "b")
		before := w.m.Calls(coordtest.Txn)
		w.must(keys.Release(w.Context(), w.m.Client(w), "orphaned"))
		w.must(b.wait().err)
		if n := w.m.Calls(coordtest.Txn) - before; n != 3 || b.at != 0 {
			w.Errorf("%d Txns, b holds at %v", n, b.at)
		}
		end, found, err := LastEnd(w.Context(), m.cli, SettleOptions{Last: "/last/x/1/0"})
		if err != nil || !found || end.How != "orphaned" || end.Holder != `{"host":"h"}` || end.Token != a.Token() {
			w.Errorf("%+v %v %v", end, found, err)
		}
	})
}

func TestAnotherProcessCanTakeAwayWhoWaitsForASlotOrHasJustTakenIt(t *testing.T) {
	for name, lose := range map[string]bool{"as it came": false, "by Txns whose replies are lost": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				var told []TermKeys
				o := seats(1)
				o.Placed = func(k TermKeys) { told = append(told, k) }
				a := w.held(w.semaphore(seats(1)), "a")
				b := w.acquire(w.Context(), w.semaphore(o), "b")
				if len(told) != 1 || told[0].Slot != "" {
					w.Fatalf("told of %+v, want of the key that queues", told)
				}
				queued := told[0]
				if lose {
					w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/1/0"), Action: coordtest.LoseReply(nil)})
				}
				w.must(w.semaphore(seats(1)).Release(w.Context(), a))
				w.must(b.wait().err)

				// It was told of the slot before it asked for it: what dies after that leaves nothing behind.
				last := told[len(told)-1]
				if len(told) < 2 || last.Slot != "/slot/x/1/0" || last.SlotRev != 0 || last.OpenRev != 0 {
					w.Fatalf("told of %+v", told)
				}
				w.must(w.through(last).Release(w.Context(), w.m.Client(w), "orphaned"))
				if w.keys() != "[/last/x/1/0]" {
					w.Error(w.keys())
				}
				w.must(w.through(queued).Release(w.Context(), w.m.Client(w), "orphaned")) // finds nothing
			})
		})
	}
}

func TestAWaitThatIsGivenUpLeavesNothing(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(1))
		w.held(m, "a")
		keys := w.keys()
		ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
		defer cancel()
		b := w.acquire(ctx, m, "b")
		if w.keys() == keys {
			w.Fatal("not queued")
		}
		if err := b.wait().err; !errors.Is(err, context.DeadlineExceeded) || b.at != 20*time.Second {
			w.Errorf("%v at %v", err, b.at)
		}
		if w.keys() != keys || len(w.m.Leases()) != 1 {
			w.Errorf("keys %s, want %s", w.keys(), keys)
		}
		gone, giveUp := context.WithCancelCause(w.Context())
		gave := errors.New("gave up")
		giveUp(gave)
		before := w.m.Calls(coordtest.Txn) + w.m.Calls(coordtest.Grant)
		if _, err := m.Acquire(gone, "c"); !errors.Is(err, gave) {
			w.Error(err)
		}
		if _, held, err := m.TryAcquire(gone, "c"); held || err == nil {
			w.Error(held, err)
		}
		if w.m.Calls(coordtest.Txn)+w.m.Calls(coordtest.Grant) != before {
			w.Error("who has given up asked etcd")
		}
	})
}

func TestAWaiterWhoseKeyOrLeaseGoesNeverHolds(t *testing.T) {
	for name, act := range map[string]func(w *world, key string, lease clientv3.LeaseID){
		"deleted": func(w *world, key string, _ clientv3.LeaseID) { w.m.Delete(key) },
		"revoked": func(w *world, _ string, lease clientv3.LeaseID) { w.must(w.m.Revoke(lease)) },
		"put again": func(w *world, key string, lease clientv3.LeaseID) {
			w.m.Delete(key)
			_, err := w.m.Put(key, "", lease)
			w.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				m := w.semaphore(seats(1))
				a := w.held(m, "a")
				b := w.acquire(w.Context(), m, "b")
				for _, kv := range w.m.List("/s/x/1/") {
					if string(kv.Value) == "b" {
						act(w, string(kv.Key), clientv3.LeaseID(kv.Lease))
					}
				}
				if err := b.wait().err; !errors.Is(err, ErrTermLost) && !errors.Is(err, ErrSessionLost) || b.at > watchAfter {
					w.Errorf("%v at %v", err, b.at)
				}
				w.must(m.Release(w.Context(), a))
				w.held(m, "c")
			})
		})
	}
}

// Red when a key that somebody put among the slots' counts as one of them.
func TestWhatIsNoSlotTakesNone(t *testing.T) {
	for _, name := range []string{"1", "7", "00", "-0", "+0", "x"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				_, err := w.m.Put("/slot/x/1/"+name, "", 0)
				w.must(err)
				term, held, err := w.semaphore(seats(1)).TryAcquire(w.Context(), "a")
				if err != nil || !held || term.Slot() != 0 {
					w.Fatal(held, err)
				}
				w.must(term.Session().Close(w.Context()))
			})
		})
	}
}

// Red when the term of a seat begins although its candidate's key went while the slot was taken, or when what it
// took is kept.
func TestAWaiterThatIsLostWhileItTakesASlotGivesItBack(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(1))
		a := w.held(m, "a")
		b := w.acquire(w.Context(), m, "b")
		time.Sleep(2 * watchAfter)
		own := ""
		for _, kv := range w.m.List("/s/x/1/") {
			if string(kv.Value) == "b" {
				own = string(kv.Key)
			}
		}
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts(own), Action: coordtest.After(func() {
			w.m.Delete(own)
			time.Sleep(watchAfter)
		})})
		w.must(m.Release(w.Context(), a))
		if err := b.wait().err; !errors.Is(err, ErrKeyGone) {
			w.Error(err)
		}
		for _, key := range append(w.m.Keys("/s/"), w.m.Keys("/slot/")...) {
			w.Errorf("left %s", key)
		}
	})
}

func TestAHoldersEndIsSeenByTheRenewalsWhereTheWatchIsSilent(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(2))
		a := w.held(m, "a")
		w.held(m, "b")
		w.m.Inject(coordtest.Rule{Method: coordtest.Watch, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		c := w.acquire(w.Context(), m, "c")
		time.Sleep(1500 * time.Millisecond)
		w.must(m.Release(w.Context(), a))
		w.must(c.wait().err)
		if c.at < 2*time.Second || c.at > 2*time.Second+gather {
			w.Errorf("c holds at %v, want with the next renewal at 2s", c.at)
		}
	})
}

func TestAWaiterSurvivesACompaction(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(1))
		a := w.held(m, "a")
		b := w.acquire(w.Context(), m, "b")
		w.m.Kill(0)
		for range 5 {
			_, err := w.m.Put("/noise", "", 0)
			w.must(err)
		}
		w.must(w.m.Compact(w.m.Rev()))
		w.m.Revive(0)
		time.Sleep(3 * time.Second)
		w.must(a.Check())
		if b.finished() {
			w.Fatal(b.err)
		}
		before := w.m.Calls(coordtest.Txn)
		w.must(m.Release(w.Context(), a))
		w.must(b.wait().err)
		if b.at != 3*time.Second || w.m.Calls(coordtest.Txn)-before != 3 {
			w.Errorf("b holds at %v, after %d Txns", b.at, w.m.Calls(coordtest.Txn)-before)
		}
	})
}

func TestAnotherMaxIsRefused(t *testing.T) {
	holds := func(w *world, m *Semaphore) TermKeys { return w.held(m, "first").Keys() }
	for name, row := range map[string]struct {
		left func(w *world, m *Semaphore)
		who  string
		slot int
	}{
		"while one holds": {func(w *world, m *Semaphore) { holds(w, m) }, "first", -1},
		"while one waits": {func(w *world, m *Semaphore) {
			k := holds(w, m)
			w.m.Delete(k.Slot)
			w.m.Delete(k.Open)
		}, "first", -1},
		"while a slot is not given back": {func(w *world, m *Semaphore) {
			k := holds(w, m)
			w.m.Delete(k.Key)
			w.m.Delete(k.Open)
		}, "", 0},
		"while a hold is not known to be over": {func(w *world, m *Semaphore) { w.must(w.m.Revoke(holds(w, m).Lease)) }, "first", 0},
	} {
		for _, maxima := range [][2]int{{3, 4}, {4, 3}, {3, 30}, {30, 3}} {
			t.Run(fmt.Sprintf("%s: %d of %d", name, maxima[1], maxima[0]), func(t *testing.T) {
				inBubble(t, coordtest.Options{}, func(w *world) {
					row.left(w, w.semaphore(seats(maxima[0])))
					m := w.semaphore(seats(maxima[1]))
					keys, leases := w.keys(), len(w.m.Leases())
					_, err := m.Acquire(w.Context(), "second")
					_, held, tryErr := m.TryAcquire(w.Context(), "second")
					for _, err := range []error{err, tryErr} {
						var other *OtherMaxError
						if !errors.Is(err, ErrOtherMax) || !errors.As(err, &other) {
							w.Fatal(err)
						}
						if other.Max != maxima[1] || other.Other != maxima[0] || len(other.Holders) != 1 || other.Holders[0].Identity != row.who || other.Holders[0].Slot != row.slot {
							w.Errorf("%+v", other)
						}
						for _, want := range []string{fmt.Sprint(maxima[0]), fmt.Sprint(maxima[1]), row.who} {
							if !strings.Contains(err.Error(), want) {
								w.Errorf("%q does not name %s", err, want)
							}
						}
					}
					if held || w.keys() != keys || len(w.m.Leases()) != leases {
						w.Errorf("keys %s, want %s", w.keys(), keys)
					}
				})
			})
		}
	}
	t.Run("unless it is to be ignored", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			holds(w, w.semaphore(seats(3)))
			o := seats(4)
			o.IgnoreOtherMax = true
			m := w.semaphore(o)
			if t := w.held(m, "second"); t.Slot() != 0 {
				w.Error(t.Slot())
			}
			if _, held, err := m.TryAcquire(w.Context(), "third"); !held || err != nil {
				w.Error(held, err)
			}

			// Who does not ignore it is refused all the same.
			if _, err := w.semaphore(seats(4)).Acquire(w.Context(), "fourth"); !errors.Is(err, ErrOtherMax) {
				w.Error(err)
			}
		})
	})
	t.Run("that comes while one waits", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			m := w.semaphore(seats(1))
			a := w.held(m, "a")
			b := w.acquire(w.Context(), m, "b")
			_, err := w.m.Put("/slot/x/2/1", "", 0) // by hand: a contender would have been refused
			w.must(err)
			w.must(m.Release(w.Context(), a))
			if err := b.wait().err; !errors.Is(err, ErrOtherMax) {
				w.Error(err)
			}
		})
	})
	t.Run("that comes just when the slot is taken", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: puts("/slot/x/1/"), Action: coordtest.Before(func() {
				_, err := w.m.Put("/open/x/07/1", "", 0)
				w.must(err)
			})})
			if _, err := w.semaphore(seats(1)).Acquire(w.Context(), "a"); !errors.Is(err, ErrOtherMax) {
				w.Error(err)
			}
			if w.keys() != "[/open/x/07/1]" {
				w.Error(w.keys())
			}
		})
	})
	t.Run("that is no number", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			for _, key := range []string{"/s/x/zz/1", "/s/x/-5/1"} {
				_, err := w.m.Put(key, "who", 0)
				w.must(err)
				_, err = w.m.Put(key+"2", "who else", 0)
				w.must(err)
				var other *OtherMaxError
				if _, err := w.semaphore(seats(1)).Acquire(w.Context(), "a"); !errors.As(err, &other) || other.Other != 0 || len(other.Holders) != 2 || other.Holders[0].Identity != "who" {
					w.Error(err)
				}
				w.m.Delete(key)
				w.m.Delete(key + "2")
			}
		})
	})
}

func TestForeignKeysBelowAreNoSlotsAndNoCandidates(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		for _, key := range []string{"/slot/x/1/x", "/slot/x/1/1", "/slot/x/1/00", "/slot/x/1/-1", "/open/x/1/y", "/s/xy/2/1", "/s/w/2/1"} {
			_, err := w.m.Put(key, "", 0)
			w.must(err)
		}
		m := w.semaphore(seats(1))
		w.must(m.Release(w.Context(), w.held(m, "a")))
		_, err := w.m.Put("/s/x/1/inner/5", "", 0)
		w.must(err)
		if _, err := m.Acquire(w.Context(), "b"); !errors.Is(err, ErrNestedKey) {
			w.Error(err)
		}
		if _, _, err := m.TryAcquire(w.Context(), "b"); !errors.Is(err, ErrNestedKey) {
			w.Error(err)
		}
	})
}

func TestHoldersAreTold(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(2))
		a, b := w.held(m, "a"), w.held(m, "b")
		w.acquire(w.Context(), m, "c")
		tell := func(all []Holder, err error) (lines []string) {
			w.must(err)
			for _, h := range all {
				lines = append(lines, fmt.Sprintf("%s %d/%d", h.Identity, h.Slot, h.Max))
			}
			return lines
		}
		if got := tell(m.Holders(w.Context())); !slices.Equal(got, []string{"a 0/2", "b 1/2"}) {
			w.Error(got)
		}
		w.m.Delete(b.Keys().Key)
		_, err := w.m.Put("/slot/x/2/odd", "", 0)
		w.must(err)
		if got := tell(ListHolders(w.Context(), m.cli, "/s/x", "/slot/x")); !slices.Equal(got, []string{"a 0/2", "c -1/2", " 1/2", " -1/2"}) {
			w.Error(got)
		}
		holders, err := m.Holders(w.Context())
		if err != nil || len(holders) != 2 || holders[0].Token != a.Token() || holders[1].Token != b.Token() || holders[1].Key != "/slot/x/2/1" {
			w.Errorf("%+v, %v", holders, err)
		}
		w.m.Stop(0)
		late, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if _, err := m.Holders(late); err == nil {
			w.Error("told from nowhere")
		}
		w.m.Cont(0)
	})
}

func TestOptionsOfASemaphoreAreChecked(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		for _, o := range []SemaphoreOptions{
			{}, {Key: "/", Max: 1}, {Key: "x"}, {Key: "x", Max: -1}, {Key: "x", Max: 1001}, {Key: "x", Max: 1, TTL: 1500 * time.Millisecond},
			{Key: "x", Max: 1, TTL: 10}, {Key: "x", Max: 1, Margin: time.Hour},
			{Key: "x", Max: 1, Settle: SettleOptions{Open: "o"}}, {Key: "x", Max: 1, Settle: SettleOptions{Last: "o"}},
			{Key: "x", Max: 1, Slots: "x/slots"}, {Key: "x", Max: 1, Slots: "x"}, {Key: "x/1", Max: 1, Slots: "x"},
			{Key: "x", Max: 1, Settle: SettleOptions{Open: "o", Last: "o/last"}}, {Key: "x", Max: 1, Settle: SettleOptions{Open: "x/o", Last: "l"}},
		} {
			if _, err := NewSemaphore(w.m.Client(w), o); !errors.Is(err, ErrInvalidOption) {
				w.Errorf("%+v: %v", o, err)
			}
			if _, err := w.session(SessionOptions{}).Semaphore(o); !errors.Is(err, ErrInvalidOption) {
				w.Errorf("%+v: %v", o, err)
			}
		}
		if _, err := NewSemaphore(w.m.Client(w), SemaphoreOptions{Key: "x", Max: 1}); err != nil {
			w.Error(err)
		}
	})
}

func TestDoReleasesAfterTheWorkHasReturned(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		m := w.semaphore(seats(1))
		wrong := errors.New("wrong")
		err := m.Do(w.Context(), "a", func(ctx context.Context, term *Term) error {
			w.must(term.Verify(ctx))
			return wrong
		})
		if !errors.Is(err, wrong) || w.keys() != "[/last/x/1/0]" {
			w.Error(err, w.keys())
		}
		err = m.Do(w.Context(), "a", func(ctx context.Context, term *Term) error {
			w.m.Delete(term.Keys().Slot)
			<-ctx.Done()
			if w.m.Get("/open/x/1/0") == nil {
				w.Error("the record was closed while the work went on")
			}
			return nil
		})
		if !errors.Is(err, ErrKeyGone) || w.keys() != "[/last/x/1/0]" {
			w.Error(err, w.keys())
		}
		gone, cancel := context.WithCancel(w.Context())
		cancel()
		if err := m.Do(gone, "a", nil); !errors.Is(err, context.Canceled) {
			w.Error(err)
		}
	})
}

func TestMetricsAreToldOfAcquisitions(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		var g gauge
		o := seats(1)
		o.Metrics = g.metrics()
		m := w.semaphore(o)
		a := w.held(m, "a")
		late, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if _, err := m.Acquire(late, "b"); err == nil {
			w.Error("two hold")
		}
		w.must(m.Release(w.Context(), a))
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.won != 1 || g.gaveUp != 1 {
			w.Errorf("%+v", &g)
		}
	})
}
