package etcdlock

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordination/locktest"
	"github.com/go-coord/coord/coordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// locker is a Locker that is closed with its test.
func locker(t *testing.T, m *coordtest.Medium, members ...int) *Locker {
	l := New(m.Client(t, members...), Options{})
	t.Cleanup(func() { _ = l.Close() }) // a test may leave etcd silent
	return l
}

// changes picks the requests that change a lock.
func changes(c *coordtest.Call) bool {
	return c.Method == coordtest.KeepAlive || coordtest.Writes(DefaultPrefix)(c)
}

// silence stops all members.
func silence(m *coordtest.Medium) (restore func()) {
	for i := range m.Endpoints() {
		m.Stop(i)
	}
	return func() {
		for i := range m.Endpoints() {
			m.Cont(i)
		}
	}
}

func TestTheContract(t *testing.T) {
	t.Parallel()
	for how, lost := range map[string]error{"silence": nil, "a broken connection": coordtest.Unavailable("broken")} {
		t.Run("an answer is lost by "+how, func(t *testing.T) {
			t.Parallel()
			o := locktest.Options{Bubble: true, TTL: 2 * time.Second, Operations: 500}
			locktest.RunWith(t, o, func(t *testing.T) locktest.Store {
				m := coordtest.Start(t, coordtest.Options{Members: 3, RevokeLag: 700 * time.Millisecond})
				return locktest.Store{
					Locker: locker(t, m),
					Peer:   func() coordination.Locker { return locker(t, m) },
					Slow: func(d time.Duration) (restore func()) {
						return m.Inject(coordtest.Rule{Times: coordtest.Forever, Action: coordtest.After(func() { time.Sleep(d) })}).Remove // in a bubble
					},
					Silence:   func() (restore func()) { return silence(m) },
					LoseReply: func() { m.Inject(coordtest.Rule{When: changes, Action: coordtest.LoseReply(lost)}) },
				}
			})
		})
	}
}

// The same while etcd has every trouble that a client can see.
func TestTheHistoryOfAnEtcdInTrouble(t *testing.T) {
	t.Parallel()
	o := locktest.Options{Bubble: true, TTL: 2 * time.Second, Clients: 12, Keys: 12, Operations: 1000}
	locktest.History(t, o, func(t *testing.T) locktest.Store {
		m := coordtest.Start(t, coordtest.Options{Members: 3, RevokeLag: 300 * time.Millisecond})
		return locktest.Store{
			Locker: locker(t, m), Peer: func() coordination.Locker { return locker(t, m) },
			Trouble: func(ctx context.Context) { trouble(ctx, m) },
		}
	})
}

// trouble does one thing after the other to m, none of which breaks a promise of etcd's.
func trouble(ctx context.Context, m *coordtest.Medium) {
	broken := coordtest.Unavailable("broken")
	faults := []func(){
		func() { m.Inject(coordtest.Rule{When: changes, Action: coordtest.LoseReply(nil)}) },
		func() { m.Inject(coordtest.Rule{When: changes, Action: coordtest.LoseReply(broken)}) },
		func() { m.Inject(coordtest.Rule{Times: 2, Action: coordtest.LoseRequest()}) },
		func() { m.Inject(coordtest.Rule{Times: 3, Action: coordtest.Refuse(broken)}) },
		func() { m.Inject(coordtest.Rule{When: changes, Action: coordtest.LateBy(3 * time.Second)}) },
		func() { m.Inject(coordtest.Rule{Method: coordtest.KeepAlive, Action: coordtest.StaleAck(0)}) },
		func() { m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: coordtest.LoseReply(broken)}) },
		func() { m.Inject(coordtest.Rule{Method: coordtest.Revoke, Times: 3, Action: coordtest.LoseRequest()}) },
		func() { m.MoveLeader(rand.IntN(3)) },
		func() { m.Disconnect(rand.IntN(3)) },
		m.Restart,
		func() {
			m.NoQuorum(true)
			time.AfterFunc(rand.N(2*time.Second), func() { m.NoQuorum(false) })
		},
		func() {
			i := rand.IntN(3)
			m.Stop(i)
			time.AfterFunc(rand.N(2*time.Second), func() { m.Cont(i) })
		},
	}
	for ctx.Err() == nil {
		faults[rand.IntN(len(faults))]()
		select {
		case <-time.After(rand.N(200 * time.Millisecond)):
		case <-ctx.Done():
		}
	}
	m.Heal()
}

// count is how many requests of each kind reached etcd since the last look.
type count struct{ reads, grants, renewals, txns, revokes int }

func calls(m *coordtest.Medium) count {
	defer m.ResetCalls()
	return count{m.Calls(coordtest.Range), m.Calls(coordtest.Grant), m.Calls(coordtest.KeepAlive), m.Calls(coordtest.Txn), m.Calls(coordtest.Revoke)}
}
