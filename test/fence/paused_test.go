package fence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/go-coord/coord/coordination/fence"
)

// runs is how many times each guard is tried.
const runs = 1000

// point is a place in a write at which its process may be paused.
type point int

const (
	before point = iota // it has looked at its lease, and asks the guard next
	inside              // the guard has accepted its token, and the data is not written
	after               // the data is written, and the write is not over
	points
)

// pause is called at each point of a write. Data that is written in one step has no inside and no after.
type pause func(point)

// target is data behind a guard, or behind none.
type target interface {
	// write writes token to the data of key.
	write(ctx context.Context, key string, token uint64, at pause) error
	// landed are the tokens written to it, in the order in which they came to be its value.
	landed(ctx context.Context, key string) ([]uint64, error)
}

// story is one run: at which point the holder is paused, and whether until its successor has begun or has written.
type story struct {
	at     point
	beyond bool // until it has written; only before the guard was asked, or the successor waits for the holder
	spin   int  // how long the holder takes to wake, the successor to begin: in turns of the scheduler
	token  uint64
	higher uint64
}

func random(r *rand.Rand) story {
	s := story{at: point(r.IntN(int(points))), spin: r.IntN(40), token: 1 + r.Uint64N(1<<62)}
	s.beyond = s.at == before && r.IntN(2) == 0
	s.higher = s.token + 1 + r.Uint64N(1<<62)
	return s
}

func (s story) String() string {
	return fmt.Sprintf("token %d paused at point %d, until %d has written: %v", s.token, s.at, s.higher, s.beyond)
}

// play lets it happen. The holder has written before, in peace; then it is paused in the middle of its second write.
func (s story) play(ctx context.Context, to target, key string) (holder, successor error) {
	if err := to.write(ctx, key, s.token, func(point) {}); err != nil {
		return err, nil
	}
	paused, begun, written, woken := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		asleep := false
		err := to.write(ctx, key, s.token, func(p point) {
			if p != s.at || asleep {
				return
			}
			asleep = true
			close(paused)
			if <-begun; s.beyond {
				<-written
			}
			for range s.spin {
				runtime.Gosched()
			}
		})
		if !asleep { // this data has no such point
			close(paused)
		}
		woken <- err
	}()
	<-paused
	close(begun)
	for range 40 - s.spin {
		runtime.Gosched()
	}
	successor = to.write(ctx, key, s.higher, func(point) {})
	close(written)
	return <-woken, successor
}

// stale reports whether a write of a lower token landed after one of a higher.
func stale(history []uint64) bool { return !slices.IsSorted(history) }

// hurt tells one story after the other to a target, and gives in how many a stale write landed.
func hurt(t *testing.T, name string, to target, n int) (landed int) {
	t.Helper()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	for i := range n {
		s, key := random(r), fmt.Sprintf("%s-%d", name, i)
		holder, successor := s.play(t.Context(), to, key)
		history, err := to.landed(t.Context(), key)
		if err != nil || successor != nil {
			t.Fatalf("seed %d, %v: successor %v, history %v", seed, s, successor, err)
		}
		late := errors.Is(holder, &fence.ErrFenced{Have: s.token, Seen: s.higher})
		switch {
		case holder != nil && !late:
			t.Fatalf("seed %d, %v: %v", seed, s, holder)
		case !slices.Contains(history, s.higher) || history[0] != s.token:
			t.Fatalf("seed %d, %v: history %d", seed, s, history)
		case late:
			refused++
		}
		if stale(history) {
			landed++
		}
	}
	t.Logf("%s: %d runs, %d holders refused, %d stale writes landed", name, n, refused, landed)
	if landed == 0 && refused == 0 {
		t.Errorf("%s: nobody was too late in %d runs: the harness shows nothing", name, n)
	}
	return landed
}

// A holder that was paused beyond its lease never writes over what its successor wrote; and without a guard it does.
func TestAPausedWriterNeverLandsAStaleWrite(t *testing.T) {
	t.Parallel()
	for name, open := range targets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n := hurt(t, "guarded", open(t, true), runs); n > 0 {
				t.Errorf("%d stale writes landed in %d runs", n, runs)
			}
			if n := hurt(t, "unguarded", open(t, false), runs/10); n == 0 {
				t.Errorf("without a guard no stale write landed in %d runs: the harness would not see one", runs/10)
			}
		})
	}
}
