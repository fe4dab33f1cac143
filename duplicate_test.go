package coord

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/go-coord/coord/coordtest"
)

// killed registers a host as a process that is gone: its key is on a lease that nobody renews.
func (w *world) killed(m HostMetadata, ttl int64) clientv3.LeaseID {
	w.Helper()
	lease, err := w.m.Grant(0, ttl)
	w.must(err)
	_, err = w.m.Put(HostsPrefix+m.HostUUID, encodeHost(m), lease)
	w.must(err)
	return lease
}

// An agent that was killed and started again registers when its former key has expired, and not before.
func TestARestartedAgentOutwaitsItsFormerKey(t *testing.T) {
	for _, ttl := range []int64{2, 10, 30} {
		t.Run(fmt.Sprint(ttl), func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				w.killed(HostMetadata{HostUUID: "h1", Hostname: "dc1-h1", StartedAt: 1}, ttl)
				time.Sleep(700 * time.Millisecond)
				h := w.live(h1, LivenessOptions{})
				if at := w.now(); at != time.Duration(ttl)*time.Second {
					w.Errorf("registered at %v", at)
				}
				if w.said(h1Key).Version != "1" || len(w.m.Leases()) != 1 || h.State() != LivenessHealthy {
					w.Errorf("%+v, leases %v", w.said(h1Key), w.m.Leases())
				}
			})
		})
	}
}

// A key that is renewed is a live process's: the registration fails as soon as that is seen twice, and touches nothing.
func TestALiveDuplicateIsAnError(t *testing.T) {
	for _, refresh := range []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second} {
		t.Run(refresh.String(), func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				first := w.live(h1, LivenessOptions{Refresh: refresh})
				time.Sleep(2500 * time.Millisecond)
				before, rev := w.now(), w.m.Rev()
				_, err := w.tryHost(w.Context(), HostMetadata{HostUUID: "h1"}, LivenessOptions{})
				var dup *DuplicateHostError
				if !errors.Is(err, ErrDuplicateHost) || !errors.As(err, &dup) || !dup.Renewed || dup.Lease != first.LeaseID() || dup.Host.Hostname != "dc1-h1" {
					w.Fatalf("%v", err)
				}
				for _, part := range []string{`"h1"`, `"dc1-h1"`, leaseText(first.LeaseID()), "are left", "2000-01-01"} {
					if !strings.Contains(err.Error(), part) {
						w.Errorf("%v: want %s in it", err, part)
					}
				}
				if took := w.now() - before; took > 9*time.Second {
					w.Errorf("it took %v", took)
				}
				if w.m.Rev() != rev || len(w.m.Leases()) != 1 {
					w.Errorf("revision %d after %d, leases %v", w.m.Rev(), rev, w.m.Leases())
				}
			})
		})
	}
}

// A leader that does not count its leases yet, and one that does not know yet that it leads no more, give answers that do not fit
// those after them. That is no renewal.
func TestAnAnswerThatDoesNotFitIsNoRenewal(t *testing.T) {
	for name, ttl := range map[string]int64{"not counted yet": int64(time.Duration(math.MaxInt64).Seconds()), "over there": 0} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				w.killed(HostMetadata{HostUUID: "h1"}, 10)
				odd := w.m.Inject(coordtest.Rule{Method: coordtest.TimeToLive, Action: func(c *coordtest.Call) (proto.Message, error) {
					reply, err := c.Commit(c.Context)
					reply.(*pb.LeaseTimeToLiveResponse).TTL = ttl
					return reply, err
				}})
				w.live(h1, LivenessOptions{})
				if at := w.now(); at != 10*time.Second || odd.Hits() != 1 {
					w.Errorf("registered at %v, after %d such answers", at, odd.Hits())
				}
			})
		})
	}
}

func TestTheWaitForAFormerKeyIsBounded(t *testing.T) {
	for name, row := range map[string]struct {
		ttl     int64
		wait    time.Duration
		within  time.Duration
		took    time.Duration
		is      error
		message string
	}{
		"no wait":           {10, -1, time.Hour, 0, ErrDuplicateHost, "10s are left"},
		"a bound":           {10, 4 * time.Second, time.Hour, 4 * time.Second, ErrDuplicateHost, "are left"},
		"the caller's":      {10, 0, 3 * time.Second, 3 * time.Second, context.DeadlineExceeded, "are left"},
		"no lease":          {0, 0, time.Hour, 0, ErrDuplicateHost, "has no lease"},
		"a caller, a bound": {10, 20 * time.Second, 5 * time.Second, 5 * time.Second, ErrDuplicateHost, "are left"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				if row.ttl > 0 {
					w.killed(h1, row.ttl)
				} else {
					_, err := w.m.Put(h1Key, "not ours", 0)
					w.must(err)
				}
				ctx, cancel := context.WithTimeout(w.Context(), row.within)
				defer cancel()
				_, err := w.tryHost(ctx, h1, LivenessOptions{DuplicateWait: row.wait})
				if !errors.Is(err, row.is) || !errors.Is(err, ErrDuplicateHost) || !strings.Contains(err.Error(), row.message) {
					w.Error(err)
				}
				if w.now() != row.took {
					w.Errorf("it took %v, want %v", w.now(), row.took)
				}
				if w.m.Get(h1Key) == nil || len(w.m.Leases()) != int(min(row.ttl, 1)) {
					w.Errorf("keys %s, leases %v", w.keys(), w.m.Leases())
				}
			})
		})
	}
}

// A change of leader starts all leases anew: nobody renewed that one.
func TestALeaseThatAMovedLeaderStartsAnewIsNotTakenForRenewed(t *testing.T) {
	inBubble(t, coordtest.Options{Members: 3}, func(w *world) {
		w.killed(h1, 10)
		time.AfterFunc(5500*time.Millisecond, func() { w.m.MoveLeader(1) })
		w.live(h1, LivenessOptions{})
		if at := w.now(); at != 15500*time.Millisecond {
			w.Errorf("registered at %v", at)
		}
	})
}

// Another one that comes first is another wait.
func TestAKeyThatIsReplacedWhileItIsWaitedForIsLookedAtAnew(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.killed(h1, 10)
		time.AfterFunc(4*time.Second, func() { w.m.Delete(h1Key); w.killed(HostMetadata{HostUUID: "h1"}, 15) })
		w.live(h1, LivenessOptions{})
		if at := w.now(); at != 19*time.Second {
			w.Errorf("registered at %v", at)
		}
	})
}

// No answer about the lease leaves the bound; a session that is lost meanwhile ends the wait.
func TestAWaitForAFormerKeyGoesOnWithoutAnswers(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.killed(h1, 30)
		w.m.Inject(coordtest.Rule{Method: coordtest.TimeToLive, Times: coordtest.Forever, Action: coordtest.Refuse(coordtest.Unavailable("no"))})
		_, err := w.tryHost(w.Context(), h1, LivenessOptions{})
		var dup *DuplicateHostError
		if !errors.As(err, &dup) || dup.Left != -1 || strings.Contains(err.Error(), "are left") || w.now() != 11*time.Second {
			w.Errorf("after %v: %v", w.now(), err)
		}
		w.m.Heal()
		began := w.now()
		time.AfterFunc(time.Second, func() {
			for _, lease := range w.m.Leases() {
				if lease.TTL == 10 {
					w.must(w.m.Revoke(lease.ID))
				}
			}
		})
		if _, err := w.tryHost(w.Context(), h1, LivenessOptions{}); !errors.Is(err, ErrLeaseGone) || w.now()-began > 4*time.Second {
			w.Errorf("after %v: %v", w.now()-began, err)
		}
		synctest.Wait()
	})
}
