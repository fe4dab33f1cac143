package schedule

import "math/bits"

// clockFrom gives the first matching time of a day at or after one, in seconds since midnight.
func (c *calendar) clockFrom(clock int) (int64, bool) {
	h, m, s := clock/3600, clock/60%60, clock%60
	firstMinute, firstSecond := bits.TrailingZeros64(c.minute), bits.TrailingZeros64(c.second)
	if c.hour>>h&1 != 0 {
		if c.minute>>m&1 != 0 {
			if at, ok := from(c.second, s); ok {
				return clockOf(h, m, at), true
			}
		}
		if at, ok := from(c.minute, m+1); ok {
			return clockOf(h, at, firstSecond), true
		}
	}
	at, ok := from(c.hour, h+1)
	return clockOf(at, firstMinute, firstSecond), ok
}

// clockUntil gives the last matching time of a day at or before one.
func (c *calendar) clockUntil(clock int) (int64, bool) {
	h, m, s := clock/3600, clock/60%60, clock%60
	lastMinute, lastSecond := bits.Len64(c.minute)-1, bits.Len64(c.second)-1
	if c.hour>>h&1 != 0 {
		if c.minute>>m&1 != 0 {
			if at, ok := until(c.second, s); ok {
				return clockOf(h, m, at), true
			}
		}
		if at, ok := until(c.minute, m-1); ok {
			return clockOf(h, at, lastSecond), true
		}
	}
	at, ok := until(c.hour, h-1)
	return clockOf(at, lastMinute, lastSecond), ok
}

func clockOf(h, m, s int) int64 { return int64(h*3600 + m*60 + s) }

// from gives the lowest of a set that is at least n, until the highest that is at most n.
func from(set uint64, n int) (int, bool) {
	set = set >> n << n
	return bits.TrailingZeros64(set), set != 0
}

func until(set uint64, n int) (int, bool) {
	set &= 1<<(n+1) - 1
	return bits.Len64(set) - 1, set != 0
}
