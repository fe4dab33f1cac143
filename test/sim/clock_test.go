package sim

import (
	"math/rand/v2"
	"time"
)

// clock is a reading of the bubble's time at a rate, from an origin of its own.
type clock struct {
	began  time.Time
	rate   float64 // 1 at most
	origin time.Duration
}

// newClock draws a clock: often the slowest there is, often the fastest, in percent, where the bounds are tight.
func newClock(r *rand.Rand, began time.Time, spread float64, slow, fast int) clock {
	slowest := 1 / spread
	rate := slowest + r.Float64()*(1-slowest)
	switch at := r.IntN(100); {
	case at < slow:
		rate = slowest
	case at < slow+fast:
		rate = 1
	}
	return clock{began: began, rate: rate, origin: time.Duration(r.Int64N(int64(time.Hour)))}
}

func (c clock) now() time.Duration {
	return c.origin + time.Duration(float64(time.Since(c.began))*c.rate)
}

// lasts is how much of the bubble's time passes while this clock moves by d.
func (c clock) lasts(d time.Duration) time.Duration {
	return time.Duration(float64(max(d, 0))/c.rate) + 1
}

// until is how much of the bubble's time is left until this clock reads at.
func (c clock) until(at time.Duration) time.Duration { return c.lasts(at - c.now()) }
