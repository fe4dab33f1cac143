package memlock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordination/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLocker(*testing.T) coordination.Locker { return New() }

func TestTheContract(t *testing.T) {
	t.Parallel()
	locktest.Run(t, newLocker)
}

func TestTheContractInABubble(t *testing.T) {
	t.Parallel()
	locktest.RunWith(t, locktest.Options{TTL: time.Hour, Bubble: true}, func(t *testing.T) locktest.Store {
		return locktest.Store{Locker: newLocker(t)}
	})
}

// Nothing is taken off, and an end is exact.
func TestALeaseLastsForItsTTLToTheNanosecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, ctx := New(), t.Context()
		lease, held, err := l.Acquire(ctx, "k", "o", time.Second)
		if !held || err != nil || lease.Token != 1 || lease.Remaining() != time.Second {
			t.Fatal(lease, held, err)
		}
		time.Sleep(time.Second - 1)
		if _, held, _ := l.Acquire(ctx, "k", "o", time.Second); held {
			t.Error("given away too early")
		}
		if lease, held, err = l.Renew(ctx, lease, time.Minute); !held || err != nil || lease.Remaining() != time.Minute {
			t.Fatal(lease, held, err)
		}
		// A shorter renewal says what it says, and takes nothing back.
		short, held, err := l.Renew(ctx, lease, time.Second)
		if !held || err != nil || short.Remaining() != time.Second {
			t.Error(short, held, err)
		}
		time.Sleep(time.Minute - 1)
		if _, held, _ := l.Acquire(ctx, "k", "o", time.Second); held {
			t.Error("given away too early")
		}
		time.Sleep(time.Nanosecond)
		if _, held, _ := l.Renew(ctx, short, time.Second); held {
			t.Error("renewed too late")
		}
		if next, held, err := l.Acquire(ctx, "k", "p", time.Second); !held || err != nil || next.Token != 2 {
			t.Error(next, held, err)
		}
	})
}

func TestACallerWhoHasGoneGetsNothing(t *testing.T) {
	t.Parallel()
	l := New()
	lease, _, _ := l.Acquire(t.Context(), "k", "o", time.Hour)
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, held, err := l.Acquire(ctx, "other", "o", time.Hour); held || !errors.Is(err, gone) {
		t.Error(held, err)
	}
	if _, held, err := l.Renew(ctx, lease, time.Hour); held || !errors.Is(err, gone) {
		t.Error(held, err)
	}
	if err := l.Release(ctx, lease); err != nil {
		t.Error(err)
	}
	if _, held, _ := l.Acquire(t.Context(), "k", "p", time.Hour); !held {
		t.Error("a late defer released nothing")
	}
}

func TestLeasesThatRanOutAreThrownAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		for i := range 100 * sweepAt {
			if _, held, err := l.Acquire(t.Context(), fmt.Sprint(i), "o", time.Second); !held || err != nil {
				t.Fatal(held, err)
			}
			if len(l.holds) > 2*sweepAt {
				t.Fatalf("%d holds are kept after %d keys", len(l.holds), i)
			}
			time.Sleep(time.Second / (sweepAt / 2))
		}
	})
}

// The same for those that last: all are kept, and looking for others does not cost more with each.
func TestLeasesThatLastAreKept(t *testing.T) {
	t.Parallel()
	l := New()
	for i := range 1000 {
		if _, held, err := l.Acquire(t.Context(), fmt.Sprint(i), "o", time.Hour); !held || err != nil {
			t.Fatal(held, err)
		}
	}
	if len(l.holds) != 1000 || l.sweep < 1000 {
		t.Error(len(l.holds), l.sweep)
	}
}
