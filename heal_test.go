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

	"github.com/go-coord/coord/coordtest"
)

func TestALostHostIsBackAtOnce(t *testing.T) {
	for name, row := range map[string]struct {
		lose  func(w *world, h *HostLiveness)
		lease bool // it stays
		cause error
	}{
		"key deleted":   {func(w *world, h *HostLiveness) { w.m.Delete(h.Key()) }, true, ErrKeyGone},
		"lease revoked": {func(w *world, h *HostLiveness) { w.must(w.m.Revoke(h.LeaseID())) }, false, ErrKeyGone},
	} {
		for _, fenced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fenced=%v", name, fenced), func(t *testing.T) {
				inBubble(t, coordtest.Options{}, func(w *world) {
					h := w.live(h1, LivenessOptions{})
					if fenced {
						w.must(h.Context().Err())
					}
					time.Sleep(5 * time.Second)
					lease := h.LeaseID()
					row.lose(w, h)
					lost := w.now()
					if c := w.await(h, LivenessHealthy); c.Err != nil || w.now() != lost {
						w.Errorf("back after %v: %v", w.now()-lost, c.Err)
					}
					if kv := w.m.Get(h1Key); kv == nil || kv.Lease != int64(h.LeaseID()) || (h.LeaseID() == lease) != row.lease {
						w.Errorf("lease %x, was %x, key %v", h.LeaseID(), lease, kv)
					}
					time.Sleep(time.Minute)
					if len(w.m.Leases()) != 1 || h.State() != LivenessHealthy {
						w.Errorf("leases %v, state %v", w.m.Leases(), h.State())
					}
					if fenced && h.Context().Err() != nil {
						w.Errorf("the return is not proven: %v", context.Cause(h.Context()))
					}
					w.must(h.Stop(w.Context()))
					w.nothing()
				})
			})
		}
	}
}

func TestAHundredHostsWhoseLeasesAreRevokedAreBackWithinASecond(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		cli := w.m.Client(w)
		var hosts []*HostLiveness
		for i := range 100 {
			h, err := RegisterHostLiveness(w.Context(), cli, HostMetadata{HostUUID: fmt.Sprint("h", i)}, LivenessOptions{Clock: w.now})
			w.must(err)
			hosts = append(hosts, h)
		}
		time.Sleep(2 * time.Second)
		for _, h := range hosts {
			w.must(w.m.Revoke(h.LeaseID()))
		}
		time.Sleep(time.Second)
		if n := len(w.m.Keys(HostsPrefix)); n != 100 {
			w.Errorf("%d keys after a second", n)
		}
		for _, h := range hosts {
			w.must(h.Stop(w.Context()))
		}
		w.nothing()
	})
}

// A host that is thrown out again and again slows down, but is back within a few seconds each time.
func TestAHostThatIsThrownOutAgainAndAgainSlowsDown(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		puts := 0
		for range 600 {
			if w.m.Delete(h1Key) {
				puts++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if puts < 25 || puts > 60 {
			w.Errorf("registered %d times in a minute", puts)
		}
		time.Sleep(2 * time.Second)
		if w.m.Get(h1Key) == nil || h.State() != LivenessHealthy {
			w.Errorf("keys %s, state %v", w.keys(), h.State())
		}
	})
}

// Silence for as long as the lease lives: the same lease is kept. Longer than the session's deadline: the key moves to
// another one, and was never away. Longer than the lease: it is back with the first answer.
func TestAHostOutlivesASilentEtcd(t *testing.T) {
	for silent, row := range map[time.Duration]struct{ kept, same bool }{
		8 * time.Second:         {true, true},
		9400 * time.Millisecond: {true, false},
		time.Minute:             {false, false},
	} {
		t.Run(silent.String(), func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				h := w.live(h1, LivenessOptions{})
				time.Sleep(3100 * time.Millisecond)
				before := w.m.Get(h1Key)
				w.m.Stop(0)
				m := h1
				m.Version = "2"
				if !row.kept {
					time.AfterFunc(15*time.Second, func() { w.must(h.UpdateMetadata(w.Context(), m)) })
				}
				time.Sleep(silent)
				w.m.Cont(0)
				time.Sleep(10 * time.Second)
				after := w.m.Get(h1Key)
				if after == nil {
					w.Fatal("it is not back")
				}
				if kept := after.CreateRevision == before.CreateRevision; kept != row.kept {
					w.Errorf("the key went on: %v", kept)
				}
				if same := after.Lease == before.Lease; same != row.same {
					w.Errorf("the lease went on: %v", same)
				}
				if !row.kept && w.said(h1Key).Version != "2" {
					w.Error("what was said meanwhile is lost")
				}
				if n := len(w.m.Leases()); n != 1 || h.State() != LivenessHealthy {
					w.Errorf("%d leases, state %v", n, h.State())
				}
			})
		})
	}
}

// While an etcd that refuses is asked for a lease, pauses grow to half a minute.
func TestHealingSlowsDownWhereEtcdRefuses(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		time.Sleep(2 * time.Second)
		w.m.NoSpace(true)
		w.must(w.m.Revoke(h.LeaseID()))
		w.m.ResetCalls()
		time.Sleep(10 * time.Minute)
		if n := w.m.Calls(coordtest.Grant); n < 25 || n > 45 {
			w.Errorf("%d grants asked for in ten minutes", n)
		}
		w.m.NoSpace(false)
		time.Sleep(31 * time.Second)
		if w.m.Get(h1Key) == nil || h.State() != LivenessHealthy {
			w.Errorf("keys %s, state %v", w.keys(), h.State())
		}

		// A lease that is good is kept where only the put is refused.
		lease := h.LeaseID()
		w.m.NoSpace(true)
		w.m.Delete(h1Key)
		time.Sleep(time.Minute)
		w.m.NoSpace(false)
		time.Sleep(31 * time.Second)
		if kv := w.m.Get(h1Key); kv == nil || kv.Lease != int64(lease) {
			w.Errorf("key %v, want it on lease %x", kv, lease)
		}
	})
}

// A watch that says nothing, on a member that was stopped: the key is looked at now and then.
func TestADeletionThatNoWatchSawIsSeen(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		time.Sleep(time.Second)
		w.m.HoldWatches(true)
		w.m.Delete(h1Key)
		w.m.Inject(coordtest.Rule{Method: coordtest.Range, Action: coordtest.LoseRequest()}) // the first look is not answered
		time.Sleep(2*time.Minute + time.Second)
		if w.m.Get(h1Key) == nil {
			w.Error("it is not back")
		}
		w.m.HoldWatches(false)
		w.must(h.Stop(w.Context()))
	})
}

// A key of another process's under the own UUID is left alone, and waited for.
func TestALiveForeignKeyIsNeverOverwritten(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		time.Sleep(2 * time.Second)
		other := w.session(SessionOptions{})
		theirs := HostMetadata{HostUUID: "h1", Hostname: "other\x1b[31m", StartedAt: 1}
		rev, err := w.m.Put(h1Key, encodeHost(theirs), other.Lease())
		w.must(err)
		c := w.await(h, LivenessDuplicate)
		var dup *DuplicateHostError
		if !errors.Is(c.Err, ErrDuplicateHost) || !errors.As(c.Err, &dup) || dup.Host.Hostname != theirs.Hostname || dup.Lease != other.Lease() {
			w.Errorf("%v", c.Err)
		}
		if text := c.Err.Error(); strings.Contains(text, "\x1b") || !strings.Contains(text, "1970-01-01T00:00:00Z") {
			w.Error(text)
		}
		m := h1
		m.Version = "2"
		w.must(h.UpdateMetadata(w.Context(), m)) // kept
		time.Sleep(5 * time.Minute)
		if kv := w.m.Get(h1Key); kv == nil || kv.ModRevision != rev || h.State() != LivenessDuplicate {
			w.Fatalf("key %v, state %v", kv, h.State())
		}
		w.m.Delete(h1Key)
		gone := w.now()
		w.await(h, LivenessHealthy)
		if w.now() != gone || w.said(h1Key).Version != "2" {
			w.Errorf("back after %v: %+v", w.now()-gone, w.said(h1Key))
		}

		// Stop while it waits leaves the other's key.
		rev, err = w.m.Put(h1Key, encodeHost(theirs), other.Lease())
		w.must(err)
		w.await(h, LivenessDuplicate)
		w.must(h.Stop(w.Context()))
		if kv := w.m.Get(h1Key); kv == nil || kv.ModRevision != rev || len(w.m.Leases()) != 1 {
			w.Errorf("key %v, leases %v", kv, w.m.Leases())
		}
	})
}

// Stop comes in the middle of each request of a heal, before its commit and after: nothing is left then.
func TestStopIsFinalAtEveryPointOfAHeal(t *testing.T) {
	lose := map[string]func(w *world, h *HostLiveness){
		"deleted": func(w *world, h *HostLiveness) { w.m.Delete(h.Key()) },
		"revoked": func(w *world, h *HostLiveness) { w.must(w.m.Revoke(h.LeaseID())) },
		"twice": func(w *world, h *HostLiveness) {
			w.must(w.m.Revoke(h.LeaseID()))
			w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Skip: 1, Action: coordtest.Before(func() { _ = w.m.Revoke(w.m.Leases()[0].ID) })})
		},
		"moved": func(w *world, h *HostLiveness) { w.m.Stop(0); time.Sleep(9500 * time.Millisecond); w.m.Cont(0) },
	}
	for cause, lose := range lose {
		for _, method := range []coordtest.Method{coordtest.Grant, coordtest.Txn, coordtest.Revoke, coordtest.Watch, coordtest.KeepAlive} {
			for when, at := range map[string]func(func()) coordtest.Action{"before": coordtest.Before, "after": coordtest.After} {
				for skip := range 3 {
					t.Run(fmt.Sprintf("%s/%s/%s/%d", cause, method, when, skip), func(t *testing.T) {
						inBubble(t, coordtest.Options{}, func(w *world) {
							h := w.live(h1, LivenessOptions{})
							time.Sleep(3100 * time.Millisecond)
							var stop sync.Once
							stopping := make(chan struct{})
							hold := at(func() {
								stop.Do(func() { close(stopping) })
								time.Sleep(100 * time.Millisecond) // in fake time: Stop runs meanwhile
							})
							w.m.Inject(coordtest.Rule{Method: method, Skip: skip, Action: hold})
							lose(w, h)
							select {
							case <-stopping:
							case <-time.After(5 * time.Second): // there is no such point
							}
							began := w.now()
							w.must(h.Stop(w.Context()))
							w.nothing()
							if took := w.now() - began; took > 2*time.Second {
								w.Errorf("Stop took %v", took)
							}
							time.Sleep(time.Second)
							w.nothing()
						})
					})
				}
			}
		}
	}
}

// A lease that is gone again and again is asked for with pauses.
func TestALeaseThatDoesNotLastIsReplaced(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		time.Sleep(2 * time.Second)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: 5, Action: coordtest.Before(func() {
			for _, lease := range w.m.Leases() {
				_ = w.m.Revoke(lease.ID)
			}
		})})
		w.must(w.m.Revoke(h.LeaseID()))
		lost := w.now()
		w.await(h, LivenessHealthy)
		if took := w.now() - lost; took < 300*time.Millisecond || took > 2*time.Second || len(w.m.Leases()) != 1 {
			w.Errorf("back after %v, leases %v", took, w.m.Leases())
		}
	})
}

// A session that ends while its key is being put is followed by another.
func TestAnEtcdThatFallsSilentInAHealIsOutlived(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		time.Sleep(2 * time.Second)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Before(func() { w.m.Stop(0) })})
		lease := h.LeaseID()
		w.m.Delete(h1Key)
		time.Sleep(30 * time.Second)
		w.m.Cont(0)
		time.Sleep(10 * time.Second)
		if h.State() != LivenessHealthy || h.LeaseID() == lease || w.m.Get(h1Key) == nil || len(w.m.Leases()) != 1 {
			w.Errorf("%v, keys %s, leases %v", h.State(), w.keys(), w.m.Leases())
		}
	})
}

// A key that was to move to the new lease and expires in that moment is put anew.
func TestAKeyThatExpiresOnItsWayIsPutAnew(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		time.Sleep(3100 * time.Millisecond)
		w.m.Stop(0)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Skip: 1, Action: coordtest.Before(func() { w.m.Delete(h1Key) })})
		time.Sleep(9400 * time.Millisecond)
		w.m.Cont(0)
		time.Sleep(5 * time.Second)
		if kv := w.m.Get(h1Key); kv == nil || kv.Lease != int64(h.LeaseID()) || h.State() != LivenessHealthy {
			w.Errorf("%v: %v", h.State(), kv)
		}
	})
}

func TestWithoutHealingTheFirstLossIsTheLast(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{NoHeal: true})
		w.m.Delete(h1Key)
		c := w.await(h, LivenessStopped)
		if !errors.Is(c.Err, ErrHostLost) || !errors.Is(c.Err, ErrKeyGone) {
			w.Error(c.Err)
		}
		time.Sleep(time.Minute)
		w.nothing()
		if err := h.UpdateMetadata(w.Context(), h1); !errors.Is(err, ErrHostLost) {
			w.Error(err)
		}
		if _, err := h.Proven(w.Context()); !errors.Is(err, ErrHostLost) {
			w.Error(err)
		}
		w.must(h.Stop(w.Context()))
		if h.State() != LivenessStopped {
			w.Error(h.State())
		}
	})
}

func TestAClosedClientEndsARegistration(t *testing.T) {
	for name, healing := range map[string]bool{"healthy": false, "healing": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				h := w.live(h1, LivenessOptions{})
				time.Sleep(2 * time.Second)
				if healing {
					w.m.NoSpace(true)
					w.m.Delete(h1Key)
					time.Sleep(time.Second)
				}
				w.must(h.cli.Close())
				if c := w.await(h, LivenessStopped); !errors.Is(c.Err, ErrClientClosed) {
					w.Error(c.Err)
				}
				// The client ends its calls before its connection: a revoke may still come through.
				switch err := h.Stop(w.Context()); {
				case err == nil && w.m.Get(h1Key) != nil:
					w.Error("a lease was left without a word")
				case err != nil && !strings.Contains(err.Error(), "revoke lease"):
					w.Error(err)
				}
				time.Sleep(11 * time.Second)
				w.nothing()
			})
		})
	}
}

// Where etcd does not answer, Stop is bounded and says what was left.
func TestStopIsBoundedAndTellsTheTruth(t *testing.T) {
	for name, row := range map[string]struct {
		before  func(w *world, h *HostLiveness)
		within  time.Duration
		message string
	}{
		"silent": {func(w *world, h *HostLiveness) { w.m.Stop(0) }, 7 * time.Second, "revoke lease"},
		"silent while healing": {func(w *world, h *HostLiveness) {
			w.m.Stop(0)
			time.Sleep(20 * time.Second)
		}, 7 * time.Second, "revoke lease"},
		"no goodbye": {func(w *world, h *HostLiveness) { w.m.NoSpace(true) }, time.Second, "say goodbye"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				h := w.live(h1, LivenessOptions{})
				time.Sleep(2 * time.Second)
				row.before(w, h)
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				began := w.now()
				err := h.Stop(ctx)
				if err == nil || !strings.Contains(err.Error(), "stop host: "+row.message) {
					w.Error(err)
				}
				if took := w.now() - began; took > row.within {
					w.Errorf("it took %v", took)
				}
				synctest.Wait()
			})
		})
	}
}
