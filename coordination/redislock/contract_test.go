package redislock

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordination/locktest"
	"github.com/go-coord/coord/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// retries has a client send again what was not answered, as it does where it is not told otherwise.
func retries(o *redis.Options) { o.MaxRetries = 3 }

func TestTheContract(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	for how, change := range map[string]func(*redis.Options){"a client that sends once": func(*redis.Options) {}, "a client that sends again": retries} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			locktest.RunWith(t, locktest.Options{TTL: 100 * time.Millisecond}, func(t *testing.T) locktest.Store {
				s, wire := redistest.Start(t, redistest.Options{}), &redistest.Wire{}
				return locktest.Store{
					Locker: New(s.Client(t, wire.Over, change), Options{}),
					Peer:   func() coordination.Locker { return New(s.Client(t, change), Options{}) },
					Slow: func(d time.Duration) (restore func()) {
						wire.Slow(d)
						return func() { wire.Slow(0) }
					},
					Silence: func() (restore func()) {
						s.Stop()
						return s.Cont
					},
					LoseReply: wire.LoseReply,
				}
			})
		})
	}
}

// The same while the server is stopped, and loses answers.
func TestTheHistoryOfARedisInTrouble(t *testing.T) {
	t.Parallel()
	locktest.History(t, locktest.Options{TTL: 200 * time.Millisecond, Clients: 12, Keys: 12, Operations: 2000}, func(t *testing.T) locktest.Store {
		s, wire := redistest.Start(t, redistest.Options{}), &redistest.Wire{}
		return locktest.Store{
			Locker: New(s.Client(t, wire.Over, retries), Options{}),
			Peer:   func() coordination.Locker { return New(s.Client(t, wire.Over), Options{}) },
			Trouble: func(ctx context.Context) {
				for ctx.Err() == nil {
					switch rand.IntN(4) {
					case 0:
						s.Stop()
						pause(ctx, rand.N(300*time.Millisecond))
						s.Cont()
					default:
						wire.LoseReply()
					}
					pause(ctx, rand.N(20*time.Millisecond))
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
