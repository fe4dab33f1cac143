package hold

import (
	"math"
	"time"
)

// Bounds is the arithmetic of one hold that says why two children cannot overlap. Every field but TTL and
// Grace counts from the moment at which the last verified renewal was sent.
type Bounds struct {
	TTL     time.Duration // granted by etcd; the key does not expire by itself before this
	Renew   time.Duration // TTL/10: how often the hold is renewed
	Silence time.Duration // Term-Renew: how long etcd may be silent without the hold being lost
	Grace   time.Duration // min(kill-after, 0.55 TTL - margin): what a child gets between SIGTERM and SIGKILL on loss
	Term    time.Duration // Kill-Grace: the hold counts as lost, SIGTERM
	Kill    time.Duration // 0.9 TTL - margin: SIGKILL at the latest
}

// BoundsOf computes the bounds of a hold with the granted ttl. margin covers scheduling and reaping.
// Values that do not fit, a margin above half the ttl say, give a Grace of zero and never a negative one;
// to refuse them is the task of whoever parsed them.
func BoundsOf(ttl, killAfter, margin time.Duration) Bounds {
	b := Bounds{TTL: ttl, Renew: ttl / 10, Kill: ttl/10*9 - margin}
	b.Grace = max(0, min(killAfter, ttl/100*55-margin))
	b.Term = b.Kill - b.Grace
	b.Silence = b.Term - b.Renew
	return b
}

// FittingTTL is the smallest TTL, in whole seconds, under which killAfter is not cut short on loss.
func FittingTTL(killAfter, margin time.Duration) time.Duration {
	need := killAfter + margin
	if need > math.MaxInt64/4 || need < killAfter {
		return time.Duration(math.MaxInt64).Truncate(time.Second)
	}
	// need <= 0.55 ttl, rounded up to the second that etcd counts in.
	ttl := need/55*100 + (need%55*100+54)/55
	return (ttl + time.Second - 1) / time.Second * time.Second
}
