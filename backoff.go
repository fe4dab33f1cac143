package coord

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff yields pauses that double from low to high, each drawn from its upper half, so that clients
// which failed together do not come back together.
type backoff struct{ low, high, next time.Duration }

// pause waits for the next pause, or until ctx ends; it reports whether ctx is still alive.
func (b *backoff) pause(ctx context.Context) bool {
	d := max(b.next, b.low)
	b.next = min(2*d, b.high)
	t := time.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// reset makes the next pause the shortest one.
func (b *backoff) reset() { b.next = 0 }
