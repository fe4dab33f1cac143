package coord

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-coord/coord/coordtest"
)

// TestAStormOfCalls lets many goroutines call a few elections of two sessions at random, and closes one session
// under them. Whatever happens: nothing hangs, nothing stays counted, nothing is left in etcd. It is most
// useful under the race detector.
func TestAStormOfCalls(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{T: t, m: coordtest.Start(t, coordtest.Options{}), start: time.Now()}
			dice := newDice(seed)
			sessions := []*Session{w.session(SessionOptions{}), w.session(SessionOptions{})}
			var callers sync.WaitGroup
			for _, s := range sessions {
				for range 2 {
					e := w.election(s, settled)
					for range 2 {
						callers.Go(func() { dice.call(e) })
					}
				}
			}
			if seed%2 == 1 {
				time.Sleep(dice.upTo(8 * time.Second))
				_ = sessions[0].Close(context.Background())
			}
			callers.Wait()
			for i, s := range sessions {
				s.mu.Lock()
				if s.holds != 0 || len(s.claims) != 0 {
					w.Errorf("seed %d, session %d: %d holds, %d claims", seed, i, s.holds, len(s.claims))
				}
				s.mu.Unlock()
				_ = s.Close(context.Background())
			}
			if len(w.m.Keys("/e/")) != 0 || w.m.Get("/open/x") != nil {
				w.Errorf("seed %d left %s", seed, w.keys())
			}
		})
	}
}

// dice is a source of chance that several goroutines share.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, 1))} }

func (d *dice) upTo(most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.r.Int64N(int64(most)))
}

// call makes a dozen calls, and resigns.
func (d *dice) call(e *Election) {
	for range 12 {
		ctx, cancel := context.WithTimeout(context.Background(), d.upTo(3*time.Second))
		switch d.upTo(6) {
		case 0, 1:
			_ = e.Campaign(ctx, "x")
		case 2:
			_, _ = e.TryCampaign(ctx, "x")
		case 3:
			_ = e.Resign(ctx)
		case 4:
			if term := e.Term(); term != nil {
				_ = term.Verify(ctx)
			}
		case 5:
			time.Sleep(d.upTo(500 * time.Millisecond)) // in fake time
		}
		cancel()
	}
	_ = e.Resign(context.Background())
}
