package locks

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordination/etcdlock"
	"github.com/go-coord/coord/coordination/locktest"
	"github.com/go-coord/coord/coordination/memlock"
	"github.com/go-coord/coord/coordination/redislock"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/redistest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// onEtcd is a Locker that is closed with its test. Its keys are those of the test alone.
func onEtcd(t *testing.T, cli *clientv3.Client, prefix string) coordination.Locker {
	l := etcdlock.New(cli, etcdlock.Options{Prefix: prefix})
	t.Cleanup(func() { _ = l.Close() }) // what is left goes by its ttl
	return l
}

// clients gives Lockers in turn, each on one of a few clients, as few processes with many goroutines have them.
func inTurn(lockers ...coordination.Locker) func() coordination.Locker {
	n := 0
	return func() coordination.Locker {
		n++
		return lockers[n%len(lockers)]
	}
}

// Fifty clients, ten thousand calls: there is an order in which all answers are right, and in which tokens rise.
func TestTenThousandCallsOfFiftyClients(t *testing.T) {
	many := func(ttl time.Duration) locktest.Options {
		return locktest.Options{TTL: ttl, Clients: 50, Keys: 40, Operations: 10_000}
	}
	t.Run("memlock", func(t *testing.T) {
		locktest.History(t, many(100*time.Millisecond), func(*testing.T) locktest.Store { return locktest.Store{Locker: memlock.New()} })
	})
	t.Run("etcdlock", func(t *testing.T) {
		server, prefix := etcdtest.Shared(t), etcdtest.Prefix(t)
		locktest.History(t, many(time.Second), func(t *testing.T) locktest.Store {
			var lockers []coordination.Locker
			for range 5 {
				lockers = append(lockers, onEtcd(t, server.Client(t), prefix))
			}
			return locktest.Store{Locker: lockers[0], Peer: inTurn(lockers...)}
		})
	})
	t.Run("redislock", func(t *testing.T) {
		server := redistest.Start(t, redistest.Options{})
		locktest.History(t, many(100*time.Millisecond), func(t *testing.T) locktest.Store {
			var lockers []coordination.Locker
			for range 5 {
				lockers = append(lockers, redislock.New(server.Client(t), redislock.Options{}))
			}
			return locktest.Store{Locker: lockers[0], Peer: inTurn(lockers...)}
		})
	})
}

// The whole contract on an etcd, over a network that can be slow, or silent.
func TestTheContractOnEtcd(t *testing.T) {
	t.Parallel()
	server := etcdtest.Shared(t)
	locktest.RunWith(t, locktest.Options{TTL: time.Second}, func(t *testing.T) locktest.Store {
		proxy, prefix := etcdtest.NewProxy(t, server.Endpoint()), etcdtest.Prefix(t)
		return locktest.Store{
			Locker: onEtcd(t, etcdtest.Client(t, proxy.Addr()), prefix),
			Peer:   func() coordination.Locker { return onEtcd(t, server.Client(t), prefix) },
			Slow: func(d time.Duration) (restore func()) {
				proxy.Delay(d / 2) // in each direction, so that the answer is sent half of it after the request was
				return proxy.Revive
			},
			Silence: func() (restore func()) {
				proxy.Blackhole()
				return proxy.Revive
			},
		}
	})
}

// Three members, one of which is always in some trouble. None is stopped for as long as a lease lasts: see the comment
// of package etcdlock.
func TestTheHistoryOfThreeMembersInTrouble(t *testing.T) {
	t.Parallel()
	group := etcdtest.Cluster(t, 3, etcdtest.Options{TickMs: 50, ElectionMs: 500})
	o := locktest.Options{TTL: 6 * time.Second, Clients: 16, Keys: 16, Operations: 1000}
	locktest.History(t, o, func(t *testing.T) locktest.Store {
		prefix := etcdtest.Prefix(t)
		lockers := []coordination.Locker{onEtcd(t, group.Client(t), prefix), onEtcd(t, group.Client(t), prefix), onEtcd(t, group.Client(t, 0), prefix)}
		return locktest.Store{Locker: lockers[0], Peer: inTurn(lockers...), Trouble: func(ctx context.Context) {
			for ctx.Err() == nil {
				i := rand.IntN(group.Len())
				switch rand.IntN(4) {
				case 0:
					group.Restart(i)
				case 1:
					i = group.Leader()
					fallthrough
				case 2:
					group.Stop(i)
					pause(ctx, time.Second)
					group.Cont(i)
				case 3:
					group.MoveLeader(i)
				}
				group.Ready()
				group.Leader()
				pause(ctx, time.Second)
			}
		}}
	})
}

// A Redis that keeps what it acknowledged, and is stopped, killed and started again.
func TestTheHistoryOfARedisThatIsKilled(t *testing.T) {
	t.Parallel()
	server, wire := redistest.Start(t, redistest.Options{Durable: true}), &redistest.Wire{}
	again := func(o *redis.Options) { o.MaxRetries = 3 }
	o := locktest.Options{TTL: 300 * time.Millisecond, Clients: 16, Keys: 16, Operations: 2000}
	locktest.History(t, o, func(t *testing.T) locktest.Store {
		return locktest.Store{
			Locker: redislock.New(server.Client(t, wire.Over, again), redislock.Options{}),
			Peer:   inTurn(redislock.New(server.Client(t, wire.Over), redislock.Options{}), redislock.New(server.Client(t, again), redislock.Options{})),
			Trouble: func(ctx context.Context) {
				for ctx.Err() == nil {
					switch rand.IntN(6) {
					case 0:
						server.Restart()
					case 1:
						server.Stop()
						pause(ctx, rand.N(200*time.Millisecond))
						server.Cont()
					default:
						wire.LoseReply()
					}
					pause(ctx, rand.N(50*time.Millisecond))
				}
			},
		}
	})
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// The permission that docs/coordination.md names is enough.
func TestAUserNeedsToReadAndWriteThePrefix(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	ctx := t.Context()
	for _, step := range []func() error{
		func() error { _, err := root.RoleAdd(ctx, "locks"); return err },
		func() error {
			_, err := root.RoleGrantPermission(ctx, "locks", etcdlock.DefaultPrefix, clientv3.GetPrefixRangeEnd(etcdlock.DefaultPrefix), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := root.UserAdd(ctx, "worker", "secret"); return err },
		func() error { _, err := root.UserGrantRole(ctx, "worker", "locks"); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	l := onEtcd(t, server.As(t, "worker", "secret"), "")
	lease, held, err := l.Acquire(ctx, "a/b", "o", time.Minute)
	if !held || err != nil {
		t.Fatal(held, err)
	}
	for _, ttl := range []time.Duration{time.Minute, 2 * time.Minute} {
		if lease, held, err = l.Renew(ctx, lease, ttl); !held || err != nil {
			t.Fatal(held, err)
		}
	}
	if err := l.Release(ctx, lease); err != nil {
		t.Error(err)
	}
	// And no other prefix.
	elsewhere := onEtcd(t, server.As(t, "worker", "secret"), "/elsewhere/")
	if _, held, err := elsewhere.Acquire(ctx, "k", "o", time.Minute); held || err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Error(held, err)
	}
}
