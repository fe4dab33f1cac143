package hold_test

import (
	"math"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"pgregory.net/rapid"
)

func TestBoundsAreTheOnesThatTheDocsPrint(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tt := range []struct {
		ttl, killAfter                    time.Duration
		renew, silence, grace, term, kill time.Duration
	}{
		{10 * time.Second, 5 * time.Second, 1000 * ms, 2500 * ms, 5000 * ms, 3500 * ms, 8500 * ms},
		{10 * time.Second, 2 * time.Second, 1000 * ms, 5500 * ms, 2000 * ms, 6500 * ms, 8500 * ms},
		{15 * time.Second, 5 * time.Second, 1500 * ms, 6500 * ms, 5000 * ms, 8000 * ms, 13000 * ms},
		{30 * time.Second, 5 * time.Second, 3000 * ms, 18500 * ms, 5000 * ms, 21500 * ms, 26500 * ms},
		{2 * time.Second, 600 * ms, 200 * ms, 500 * ms, 600 * ms, 700 * ms, 1300 * ms},
		{2 * time.Second, time.Hour, 200 * ms, 500 * ms, 600 * ms, 700 * ms, 1300 * ms},
		{10 * time.Second, 0, 1000 * ms, 7500 * ms, 0, 8500 * ms, 8500 * ms},
	} {
		got := hold.BoundsOf(tt.ttl, tt.killAfter, 500*ms)
		want := hold.Bounds{TTL: tt.ttl, Renew: tt.renew, Silence: tt.silence, Grace: tt.grace, Term: tt.term, Kill: tt.kill}
		if got != want {
			t.Errorf("BoundsOf(%v, %v) = %+v, want %+v", tt.ttl, tt.killAfter, got, want)
		}
	}
}

func TestFittingTTLIsTheSmallestThatFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		killAfter := time.Duration(rapid.Int64Range(0, int64(30*24*time.Hour)).Draw(t, "kill-after"))
		margin := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "margin"))
		ttl := hold.FittingTTL(killAfter, margin)
		if ttl%time.Second != 0 {
			t.Fatalf("%v is no whole number of seconds", ttl)
		}
		if g := hold.BoundsOf(ttl, killAfter, margin).Grace; g != killAfter {
			t.Fatalf("under a ttl of %v only %v of %v fit", ttl, g, killAfter)
		}
		less := ttl - time.Second
		if killAfter > 0 && less > 0 && hold.BoundsOf(less, killAfter, margin).Grace == killAfter {
			t.Fatalf("%v would do as well as %v", less, ttl)
		}
	})
}

func TestFittingTTLKnowsTheUsualCasesAndDoesNotOverflow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ killAfter, want time.Duration }{
		{5 * time.Second, 10 * time.Second},
		{5*time.Second + 1, 11 * time.Second},
		{20 * time.Second, 38 * time.Second},
	} {
		if got := hold.FittingTTL(tt.killAfter, 500*time.Millisecond); got != tt.want {
			t.Errorf("FittingTTL(%v) = %v, want %v", tt.killAfter, got, tt.want)
		}
	}
	if got := hold.FittingTTL(math.MaxInt64, math.MaxInt64); got <= 0 {
		t.Errorf("FittingTTL of the largest durations is %v", got)
	}
}
