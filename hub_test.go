package coord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
)

// fleet is n sessions of one client; with an election each, which it leads, where holds says so.
func (w *world) fleet(cli *clientv3.Client, n int, holds bool, o SessionOptions) []*Session {
	w.Helper()
	var all []*Session
	for i := range n {
		o.Clock = w.now
		s, err := NewSession(w.Context(), cli, o)
		w.must(err)
		w.Cleanup(func() { _ = s.Close(context.Background()) })
		if holds {
			w.must(w.election(s, ElectionOptions{Key: fmt.Sprintf("/e/%d", i)}).Campaign(w.Context(), "x"))
		}
		all = append(all, s)
	}
	return all
}

// renews picks the renewals of one lease.
func renews(lease clientv3.LeaseID) func(*coordtest.Call) bool {
	return func(c *coordtest.Call) bool { return c.Request.(*pb.LeaseKeepAliveRequest).ID == int64(lease) }
}

// Red when every session has a stream of its own, or when a hub outlives its sessions.
func TestSessionsOfAClientShareStreams(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		cli := w.m.Client(w)
		plain := w.fleet(cli, 2*streamLeases+1, false, SessionOptions{Refresh: 3 * time.Second})
		held := w.fleet(cli, 3, true, SessionOptions{})
		time.Sleep(time.Minute)
		h := held[0].hub
		h.mu.Lock()
		kinds := map[bool]int{}
		for st := range h.streams {
			kinds[st.proves]++
			if st.leases > streamLeases {
				w.Errorf("%d leases on a stream", st.leases)
			}
		}
		h.mu.Unlock()
		if kinds[false] != 3 || kinds[true] != 1 {
			w.Errorf("streams of plain and of holding sessions: %v", kinds)
		}
		for _, s := range append(plain, held...) {
			w.must(s.Check())
			w.must(s.Close(w.Context()))
		}
		hubs.mu.Lock()
		defer hubs.mu.Unlock()
		if hubs.of[cli] != nil || len(h.streams) != 0 {
			w.Errorf("left: hub %v, %d streams", hubs.of[cli], len(h.streams))
		}
	})
}

// Red when a late reply is waited for, when those behind it pay for it with a pause, or when the late lease goes
// back among the others before it was answered.
func TestALateLeaseHoldsUpNobody(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		others := w.fleet(w.m.Client(w), 20, true, SessionOptions{})
		// Which of them go behind the late one on its stream is chance: so several are, one after the other.
		for _, i := range []int{7, 3, 12, 0} {
			late := others[i]
			others = slices.Delete(slices.Clone(others), i, i+1)
			time.Sleep(5500 * time.Millisecond)
			w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, When: renews(late.lease), Times: 4, Action: coordtest.LoseRequest()})
			worst := time.Duration(0)
			for range 1000 {
				time.Sleep(10 * time.Millisecond)
				for _, s := range others {
					s.mu.Lock()
					worst = max(worst, w.now()-s.proven)
					s.mu.Unlock()
				}
			}
			// T/10 to the next renewal, T/20 once until the late reply is given up, and the gathering of reads.
			if limit := time.Second + 500*time.Millisecond + 20*time.Millisecond; worst > limit {
				w.Errorf("another lease went unproven for %v, want at most %v", worst, limit)
			}
			if err := late.Check(); !errors.Is(err, ErrUnproven) && err != nil {
				w.Error(err)
			}
		}
	})
}

func TestALateLeaseComesBackAmongTheOthers(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		all := w.fleet(w.m.Client(w), 3, true, SessionOptions{})
		time.Sleep(1500 * time.Millisecond)
		w.m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, When: renews(all[0].lease), Action: coordtest.LoseRequest()})
		most := 0
		for range 300 {
			time.Sleep(10 * time.Millisecond)
			all[0].hub.mu.Lock()
			most = max(most, len(all[0].hub.streams))
			all[0].hub.mu.Unlock()
		}
		all[0].hub.mu.Lock()
		defer all[0].hub.mu.Unlock()
		if most != 2 || len(all[0].hub.streams) != 1 {
			w.Errorf("%d streams at most, %d in the end; want 2, 1", most, len(all[0].hub.streams))
		}
	})
}

// Red when each session reads by itself.
func TestReadsOfAClientsSessionsGoTogether(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		all := w.fleet(w.m.Client(w), 2*maxOps+10, true, SessionOptions{})
		time.Sleep(time.Second / 2)
		before := w.m.Calls(coordtest.Txn)
		time.Sleep(10 * time.Second)
		// Ten rounds of three Txns, where all come at once. By themselves they were 2,500.
		if n := w.m.Calls(coordtest.Txn) - before; n > 100 {
			w.Errorf("%d Txns for ten renewals of %d sessions", n, len(all))
		}
		for _, s := range all {
			w.must(s.Check())
		}
	})
}

// Red when a Txn that is refused is refused to all who are in it.
func TestAKeyThatMayNotBeReadHarmsItsOwnSessionOnly(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		cli := w.m.Client(w)
		var sound gauge
		all := w.fleet(cli, 10, true, SessionOptions{Metrics: sound.metrics()})
		bad := w.fleet(cli, 1, false, SessionOptions{})[0]
		w.must(w.election(bad, ElectionOptions{Key: "/bad"}).Campaign(w.Context(), "x"))
		time.Sleep(1500 * time.Millisecond)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: coordtest.Touches("/bad/"), Times: coordtest.Forever,
			Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
		time.Sleep(10 * time.Second)
		for _, s := range all {
			w.must(s.Check())
		}
		sound.mu.Lock()
		defer sound.mu.Unlock()
		if err := bad.Check(); err == nil || sound.failed > 0 {
			w.Errorf("the refused one: %v; %d renewals of the others failed", err, sound.failed)
		}
	})
}

func TestTroubleOnSharedStreamsAndReadsIsNobodysLoss(t *testing.T) {
	for name, rule := range map[string]coordtest.Rule{
		"a stream breaks":          {Method: coordtest.KeepAlive, Times: 3, Action: coordtest.Refuse(coordtest.Unavailable("broken"))},
		"a reply for nobody":       {Method: coordtest.KeepAlive, Times: 3, Action: otherLease},
		"reads are lost":           {Method: coordtest.Txn, Times: 3, Action: coordtest.LoseRequest()},
		"reads cannot be answered": {Method: coordtest.Txn, Times: 3, Action: coordtest.Refuse(rpctypes.ErrGRPCTimeout)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{Members: 2}, func(w *world) {
				all := w.fleet(w.m.Client(w), 10, true, SessionOptions{})
				time.Sleep(1500 * time.Millisecond)
				w.m.Inject(rule)
				time.Sleep(20 * time.Second)
				for _, s := range all {
					w.must(s.Check())
				}
			})
		})
	}
}

// A session that ends while its renewal or its read is under way waits for neither.
func TestASessionEndsUnderItsRenewal(t *testing.T) {
	for _, method := range []coordtest.Method{coordtest.KeepAlive, coordtest.Txn} {
		t.Run(string(method), func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				all := w.fleet(w.m.Client(w), 3, true, SessionOptions{})
				time.Sleep(500 * time.Millisecond)
				w.m.Inject(coordtest.Rule{Method: method, Times: 3, Action: coordtest.Delay(200 * time.Millisecond)})
				time.Sleep(550 * time.Millisecond)
				before := w.now()
				for _, s := range all {
					w.must(s.Close(w.Context()))
				}
				if took := w.now() - before; took != 0 {
					w.Errorf("closed after %v", took)
				}
			})
		})
	}
}
