package etcdlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordtest"
)

// broken is the error of a connection that ended.
var broken = coordtest.Unavailable("broken")

// A put whose answer is lost is found by the next one, and is what it says.
func TestAnAcquireWhoseAnswerIsLostIsAdopted(t *testing.T) {
	for how, action := range map[string]coordtest.Action{
		"silence": coordtest.LoseReply(nil), "broken": coordtest.LoseReply(broken), "it never came": coordtest.LoseRequest(), "refused for now": coordtest.Refuse(broken),
	} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				w.m.Inject(coordtest.Rule{When: puts, Action: action})
				began := time.Now()
				lease := w.held(w.l, "k", 10*time.Second)
				kv := w.m.Get(w.l.name("k"))
				if kv == nil || uint64(kv.CreateRevision) != lease.Token || kv.Version != 1 {
					w.Errorf("%v, %+v", kv, lease)
				}
				if got := lease.ExpiresAt.Sub(began); got != 9*time.Second {
					w.Errorf("expires %v after the grant was asked for", got)
				}
				// The first may still be under way: a release waits until it cannot come any more.
				calls(w.m)
				w.m.Inject(coordtest.Rule{Method: coordtest.Revoke, Action: coordtest.LoseReply(nil)})
				w.released(w.l, lease)
				if got := calls(w.m); got.revokes != 2 || len(w.m.Leases()) != 0 {
					w.Errorf("%+v, %v", got, w.m.Leases())
				}
			})
		})
	}
}

// A put that comes late, after a release, holds the key for nobody.
func TestAPutThatComesLateFindsNoLease(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		release := make(chan struct{})
		w.m.Inject(coordtest.Rule{When: puts, Action: coordtest.Late(release)})
		lease := w.held(w.l, "k", 10*time.Second)
		w.released(w.l, lease)
		close(release)
		w.settle()
		if keys := w.m.Keys(""); len(keys) != 0 {
			w.Errorf("held for nobody: %v", keys)
		}
	})
}

// The same where the key was moved to another lease, and where that is not known to be done.
func TestAPutThatComesLateAfterAMoveFindsNoLease(t *testing.T) {
	for name, moved := range map[string]bool{"moved": true, "perhaps moved": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				release := make(chan struct{})
				w.m.Inject(coordtest.Rule{When: puts, Action: coordtest.Late(release)})
				lease := w.held(w.l, "k", 10*time.Second)
				w.m.Inject(coordtest.Rule{Method: coordtest.Revoke, Action: coordtest.LoseRequest()}) // of the lease that it was on
				if moved {
					lease = w.renewed(w.l, lease, 20*time.Second)
				} else {
					w.m.Inject(coordtest.Rule{When: puts, Times: coordtest.Forever, Action: coordtest.LoseReply(nil)})
					if _, held, err := w.l.Renew(w.within(time.Second), lease, 20*time.Second); held || !errors.Is(err, context.DeadlineExceeded) {
						w.Error(held, err)
					}
				}
				w.released(w.l, lease)
				close(release)
				w.settle()
				if keys := w.m.Keys(""); len(keys) != 0 {
					w.Errorf("held for nobody: %v", keys)
				}
			})
		})
	}
}

// Where somebody else has the key, a put that may still come is a refusal only when it cannot, and did not.
func TestARaceThatWasLostIsDecided(t *testing.T) {
	for name, row := range map[string]struct {
		meanwhile func(w *world, other *Locker, lease coordination.Lease) // before the revoke is done
		is        error
	}{
		"the other still has it": {func(*world, *Locker, coordination.Lease) {}, nil},
		"the other has let it go": {func(w *world, other *Locker, lease coordination.Lease) {
			_ = other.Release(w.Context(), lease)
		}, coord.ErrUndecided},
		"it went from hand to hand": {func(w *world, other *Locker, lease coordination.Lease) {
			_ = other.Release(w.Context(), lease)
			w.held(other, "k", 10*time.Second)
		}, coord.ErrUndecided},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				release := make(chan struct{})
				other := w.peer()
				var lease coordination.Lease
				w.m.Inject(coordtest.Rule{When: puts, Action: coordtest.Late(release)})
				w.m.Inject(coordtest.Rule{When: puts, Action: coordtest.Before(func() { lease = w.held(other, "k", 10*time.Second) })})
				w.m.Inject(coordtest.Rule{Method: coordtest.Revoke, Action: coordtest.Before(func() { row.meanwhile(w, other, lease) })})
				if _, held, err := w.l.Acquire(w.Context(), "k", "o", 10*time.Second); held || !errors.Is(err, row.is) || row.is == nil && err != nil {
					w.Error(held, err)
				}
				if w.l.spare != nil {
					w.Error("a lease that a put may still come for is no spare one")
				}
				w.m.Delete(w.l.name("k"))
				close(release)
				w.settle()
				if keys := w.m.Keys(""); len(keys) != 0 {
					w.Errorf("held for nobody: %v", keys)
				}
			})
		})
	}
}

// Until the lease is gone, that is an error.
func TestARaceThatCannotBeDecidedIsAnError(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.m.Inject(coordtest.Rule{When: puts, Action: coordtest.LoseRequest()})
		w.m.Inject(coordtest.Rule{When: puts, Action: coordtest.Before(func() { w.held(w.peer(), "k", 10*time.Second) })})
		fault := w.m.Inject(coordtest.Rule{Method: coordtest.Revoke, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		if _, held, err := w.l.Acquire(w.within(3*time.Second), "k", "o", 10*time.Second); held || !errors.Is(err, context.DeadlineExceeded) {
			w.Error(held, err)
		}
		fault.Remove()
	})
}

// What a caller gives up is undone, whatever became of it.
func TestAnAcquireThatIsGivenUpHoldsNothing(t *testing.T) {
	for how, action := range map[string]coordtest.Action{
		"done, and the answer lost": coordtest.LoseReply(nil), "never done": coordtest.LoseRequest(), "done much later": coordtest.LateBy(5 * time.Second),
	} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				w.m.Inject(coordtest.Rule{When: puts, Times: coordtest.Forever, Action: action})
				ctx, cancel := context.WithCancel(w.Context())
				time.AfterFunc(700*time.Millisecond, cancel)
				began := time.Now()
				if _, held, err := w.l.Acquire(ctx, "k", "o", 10*time.Second); held || !errors.Is(err, context.Canceled) || time.Since(began) > time.Second {
					w.Errorf("%v, %v, after %v", held, err, time.Since(began))
				}
				w.settle()
				for range 6 {
					if keys, leases := w.m.Keys(""), w.m.Leases(); len(keys) != 0 || len(leases) != 0 {
						w.Errorf("left behind: %v, %v", keys, leases)
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// If the revoke is lost as well, it is over with the ttl.
func TestAnAcquireThatCannotBeUndoneEndsWithItsTTL(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.m.Inject(coordtest.Rule{When: puts, Times: coordtest.Forever, Action: coordtest.LoseReply(nil)})
		w.m.Inject(coordtest.Rule{Method: coordtest.Revoke, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		began := time.Now()
		if _, held, err := w.l.Acquire(w.within(time.Second), "k", "o", 10*time.Second); held || err == nil {
			w.Error(held, err)
		}
		w.settle()
		w.m.Heal()
		other := w.peer()
		for {
			lease, held, err := other.Acquire(w.Context(), "k", "p", 10*time.Second)
			if err != nil {
				w.Fatal(err)
			}
			if held {
				w.released(other, lease)
				break
			}
			time.Sleep(time.Second / 10)
		}
		if after := time.Since(began); after < 9*time.Second || after > 11*time.Second {
			w.Errorf("free after %v", after)
		}
	})
}

// A lease that has run out when etcd answers again is no lease.
func TestAnAcquireThatTakesTooLongFails(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.m.Inject(coordtest.Rule{When: puts, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		began := time.Now()
		_, held, err := w.l.Acquire(w.Context(), "k", "o", 10*time.Second)
		if held || !errors.Is(err, errTooLate) || time.Since(began) != 9*time.Second {
			w.Errorf("%v, %v, after %v", held, err, time.Since(began))
		}
	})
}

// Of a grant and of a renewal that were asked for twice, the end counts from the one that was answered.
func TestTheEndCountsFromTheRequestThatWasAnswered(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: coordtest.LoseRequest()})
		lease := w.held(w.l, "k", 10*time.Second) // the second grant was asked for a second later, and answered at once
		if got := lease.Remaining(); got != 9*time.Second {
			w.Errorf("acquired, expires in %v", got)
		}
		w.m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: coordtest.After(func() { time.Sleep(time.Second / 2) })})
		if got := w.held(w.l, "late", 10*time.Second).Remaining(); got != 9*time.Second-time.Second/2 {
			w.Errorf("acquired late, expires in %v", got)
		}
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Action: coordtest.LoseRequest()})
		if got := w.renewed(w.l, lease, 10*time.Second).Remaining(); got != 9*time.Second {
			w.Errorf("renewed, expires in %v", got)
		}
		// An answer that is late takes its time from the lease.
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Action: coordtest.After(func() { time.Sleep(time.Second / 2) })})
		w.m.Inject(coordtest.Rule{Method: coordtest.Range, Action: coordtest.Delay(time.Second / 4)})
		if got := w.renewed(w.l, lease, 10*time.Second).Remaining(); got != 9*time.Second-750*time.Millisecond {
			w.Errorf("renewed late, expires in %v", got)
		}
	})
}

// A member that was deposed while it was paused acknowledges what never happened.
func TestARenewalInAnOlderTermIsNotBelieved(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		lease := w.held(w.l, "k", 10*time.Second)
		time.Sleep(4 * time.Second)
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Action: coordtest.StaleAck(0)})
		calls(w.m)
		lease = w.renewed(w.l, lease, 10*time.Second)
		if got := calls(w.m); got.renewals != 2 || got.reads != 2 || w.lasts("k") != 10 {
			w.Errorf("%+v, and etcd keeps it for %d s", got, w.lasts("k"))
		}

		// As long as nothing else comes, nothing is renewed, and the old end is true.
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Times: coordtest.Forever, Action: coordtest.StaleAck(0)})
		_, held, err := w.l.Renew(w.within(2*time.Second), lease, 10*time.Second)
		if held || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "renewed in raft term 1, read in 2") {
			w.Error(held, err)
		}
		time.Sleep(lease.Remaining() - 1)
		if _, held, err := w.peer().Acquire(w.Context(), "k", "p", time.Second); held || err != nil {
			w.Error(held, err)
		}
	})
}

// A lease that runs out while it is renewed is over, whoever acknowledged it.
func TestALeaseThatRunsOutWhileItIsRenewedIsOver(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		lease := w.held(w.l, "k", 10*time.Second)
		id := w.m.Leases()[0].ID
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Action: coordtest.After(func() { w.m.Expire(id) })})
		if _, held, err := w.l.Renew(w.Context(), lease, 10*time.Second); held || err != nil {
			w.Error(held, err)
		}
		// And by the way to a longer one.
		lease = w.held(w.l, "k", 10*time.Second)
		id = w.m.Leases()[0].ID
		w.m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: coordtest.After(func() { w.m.Expire(id) })})
		if _, held, err := w.l.Renew(w.Context(), lease, 20*time.Second); held || err != nil {
			w.Error(held, err)
		}
		w.settle()
		if left := w.m.Leases(); len(left) != 0 {
			w.Errorf("left behind: %+v", left)
		}
	})
}

// One that waits for its end to be noticed blocks the renewal: that costs a try, and then the answer is no.
func TestARenewalOfALeaseThatIsAboutToGoIsAnswered(t *testing.T) {
	inBubble(t, coordtest.Options{RevokeLag: 3 * time.Second}, func(w *world) {
		lease := w.held(w.l, "k", 10*time.Second)
		time.Sleep(11 * time.Second)
		if _, held, err := w.l.Renew(w.Context(), lease, 10*time.Second); held || err != nil {
			w.Error(held, err)
		}
	})
}

// A member that is behind may not know a lease yet.
func TestALeaseThatAMemberDoesNotKnowIsAskedForAgain(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		lease := w.held(w.l, "k", 10*time.Second)
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Action: func(c *coordtest.Call) (proto.Message, error) {
			return &pb.LeaseKeepAliveResponse{Header: &pb.ResponseHeader{RaftTerm: 2}, ID: c.Request.(*pb.LeaseKeepAliveRequest).ID}, nil
		}})
		w.renewed(w.l, lease, 10*time.Second)
	})
}

// The move to a longer lease, when its answer is lost.
func TestAMoveWhoseAnswerIsLostIsFound(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		lease := w.held(w.l, "k", 10*time.Second)
		w.m.Inject(coordtest.Rule{When: puts, Action: coordtest.LoseReply(broken)})
		lease = w.renewed(w.l, lease, 60*time.Second)
		w.settle()
		if left := w.m.Leases(); len(left) != 1 || w.lasts("k") < 59 {
			w.Errorf("%+v", left)
		}
		w.released(w.l, lease)
	})
}

// Nobody knows which lease the key is on: neither may be revoked. The next renewal looks.
func TestAMoveThatIsGivenUpLeavesTheOldEndTrue(t *testing.T) {
	for how, action := range map[string]coordtest.Action{"done": coordtest.LoseReply(nil), "not done": coordtest.LoseRequest()} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				lease := w.held(w.l, "k", 10*time.Second)
				fault := w.m.Inject(coordtest.Rule{When: puts, Times: coordtest.Forever, Action: action})
				if _, held, err := w.l.Renew(w.within(time.Second), lease, 60*time.Second); held || !errors.Is(err, context.DeadlineExceeded) {
					w.Error(held, err)
				}
				fault.Remove()
				time.Sleep(lease.Remaining() - 1)
				if _, held, err := w.peer().Acquire(w.Context(), "k", "p", time.Second); held || err != nil {
					w.Fatal(held, err)
				}
				lease = w.renewed(w.l, lease, 60*time.Second)
				w.settle()
				if w.lasts("k") != 60 {
					w.Errorf("etcd keeps it for %d s", w.lasts("k"))
				}
				w.released(w.l, lease)
			})
		})
	}
}

// Two renew one lease at once, for different times: the longer one is kept.
func TestARenewalTakesNothingBackFromAnother(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		lease := w.held(w.l, "k", 10*time.Second)
		other := w.peer()
		w.m.Inject(coordtest.Rule{When: puts, Action: coordtest.Before(func() { w.renewed(other, lease, time.Minute) })})
		w.renewed(w.l, lease, 20*time.Second)
		w.settle()
		if left := w.m.Leases(); len(left) != 1 || w.lasts("k") != 60 {
			w.Errorf("%+v", left)
		}
		w.released(other, lease)
		if left := w.m.Leases(); len(left) != 0 {
			w.Errorf("left behind: %+v", left)
		}
	})
}

// What is remembered of a key is a guess: it can have been moved since.
func TestAKeyThatIsOnAnotherLeaseIsFollowed(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		lease := w.held(w.l, "k", 10*time.Second)
		w.renewed(w.peer(), lease, time.Minute)
		w.settle() // the lease that this one knows of is revoked
		lease = w.renewed(w.l, lease, 10*time.Second)
		if w.lasts("k") != 60 {
			w.Errorf("etcd keeps it for %d s", w.lasts("k"))
		}
		// Put by hand, on no lease.
		if _, err := w.m.Put(w.l.name("k"), "x", clientv3.NoLease); err != nil {
			w.Fatal(err)
		}
		lease = w.renewed(w.l, lease, 10*time.Second)
		if kv := w.m.Get(w.l.name("k")); string(kv.Value) != "o" || w.lasts("k") != 10 {
			w.Errorf("%v", kv)
		}
		w.released(w.l, lease)
	})
}

// A key without a lease is held, by whoever put it, until it is released.
func TestAKeyThatWasPutByHand(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		rev, err := w.m.Put(w.l.name("k"), "x", clientv3.NoLease)
		if err != nil {
			w.Fatal(err)
		}
		if _, held, err := w.l.Acquire(w.Context(), "k", "o", time.Second); held || err != nil {
			w.Error(held, err)
		}
		w.released(w.l, coordination.Lease{Key: "k", Owner: "o", Token: uint64(rev)})
		if keys := w.m.Keys(""); len(keys) != 0 {
			w.Error(keys)
		}
	})
}

func TestAReleaseWhoseAnswerIsLostIsRepeated(t *testing.T) {
	for how, action := range map[string]coordtest.Action{
		"done": coordtest.LoseReply(nil), "done, and broken": coordtest.LoseReply(broken), "not done": coordtest.LoseRequest(),
	} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				lease := w.held(w.l, "k", 10*time.Second)
				w.m.Inject(coordtest.Rule{When: deletes, Action: action})
				w.released(w.l, lease)
				if keys := w.m.Keys(""); len(keys) != 0 {
					w.Error(keys)
				}
			})
		})
	}
}

// A late defer has a context that has ended.
func TestAReleaseIsTriedInAContextThatHasEnded(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		ended, cancel := context.WithCancel(w.Context())
		cancel()
		lease := w.held(w.l, "k", 10*time.Second)
		if err := w.l.Release(ended, lease); err != nil || len(w.m.Keys("")) != 0 {
			w.Error(err, w.m.Keys(""))
		}
		// Once, and not for ever.
		lease = w.held(w.l, "k", 10*time.Second)
		w.m.Inject(coordtest.Rule{When: deletes, Action: coordtest.LoseRequest()})
		began := time.Now()
		if err := w.l.Release(ended, lease); err == nil || time.Since(began) != mostTry {
			w.Errorf("%v, after %v", err, time.Since(began))
		}
		// Nor where it is refused for now.
		w.m.Inject(coordtest.Rule{When: deletes, Action: coordtest.Refuse(broken)})
		if err := w.l.Release(ended, lease); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "broken") {
			w.Error(err)
		}
		w.released(w.l, lease)
	})
}

// A release that cannot exclude a put that comes late is not done.
func TestAReleaseThatCannotBeSureFails(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.m.Inject(coordtest.Rule{When: puts, Action: coordtest.LoseReply(broken)})
		lease := w.held(w.l, "k", 10*time.Second)
		fault := w.m.Inject(coordtest.Rule{Method: coordtest.Revoke, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		if err := w.l.Release(w.within(time.Second), lease); !errors.Is(err, context.DeadlineExceeded) {
			w.Error(err)
		}
		fault.Remove()
		w.released(w.l, lease)
		if keys := w.m.Keys(""); len(keys) != 0 {
			w.Error(keys)
		}
	})
}

// A member that was stopped costs a try, not the lease.
func TestAStoppedMemberCostsATry(t *testing.T) {
	inBubble(t, coordtest.Options{Members: 3}, func(w *world) {
		lease := w.held(w.l, "k", 10*time.Second)
		w.m.Stop(1)
		defer w.m.Cont(1)
		began := time.Now()
		for range 6 {
			lease = w.renewed(w.l, lease, 10*time.Second)
		}
		if after := time.Since(began); after > 30*time.Second {
			w.Errorf("six renewals took %v", after)
		}
		if lease.Expired() {
			w.Error("expired")
		}
		w.released(w.l, lease)
	})
}

// A member that is gone refuses connections: that is no answer, however often it is asked.
func TestAnEtcdThatIsGoneAnswersNobody(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		lease := w.held(w.l, "k", 30*time.Second)
		w.m.Kill(0)
		w.settle()
		if _, held, err := w.l.Renew(w.within(5*time.Second), lease, 30*time.Second); held || !errors.Is(err, context.DeadlineExceeded) {
			w.Error(held, err)
		}
		w.m.Revive(0)
		w.released(w.l, w.renewed(w.l, lease, 30*time.Second))
	})
}
