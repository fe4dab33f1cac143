package coord

import (
	"cmp"
	"fmt"
	"time"
)

// Defaults of the arithmetic in [Bounds].
const (
	// DefaultTTL is the lease time of a session: how long a dead holder blocks its successor.
	DefaultTTL = 10 * time.Second
	// DefaultGrace is the time that the holder's work has between being told to stop and its deadline.
	DefaultGrace = 5 * time.Second
	// DefaultMargin is what scheduling, killing and reaping may take after the deadline.
	DefaultMargin = 500 * time.Millisecond
)

// maxTTL is the longest lease time: nobody waits for longer because a record says so.
const maxTTL = 24 * time.Hour

// rateError is the share of a TTL that is given away so that clocks whose rates differ still agree on
// who may work. NTP daemons slew by up to 8.3 % (chrony's default maxslewrate); 10 % covers that.
const rateError = 0.1

// Bounds is the arithmetic of a lease: what has to happen when, counted from the moment at which the
// last verified renewal was *sent* (see [Session]).
//
//	0        Renew            Term                 Kill        TTL
//	|----------|----------------|---------------------|-----------|------>
//	sent    next renewal   loss: told to stop   nothing alive   etcd may give the key away
//	                  <-------- Grace -------->
//	            <- Silence ->
//
// Kill + margin lies before TTL by the 10 % that clock rates may differ: two holders' works never overlap.
type Bounds struct {
	TTL     time.Duration // T, as granted by etcd: the key does not expire earlier than this
	Renew   time.Duration // T/10: from one renewal to the next
	Silence time.Duration // Term - Renew: for how long etcd may be silent without a loss
	Grace   time.Duration // min(asked grace, 0.55 T - margin): from Term to Kill
	Term    time.Duration // Kill - Grace: the hold counts as lost from here on, with no way back
	Kill    time.Duration // 0.9 T - margin: nothing of the holder's work may be alive any more
	Margin  time.Duration
}

// NewBounds computes the bounds of a lease of ttl. Zero values take the defaults. It fails where no time
// would be left between loss and deadline.
func NewBounds(ttl, margin, grace time.Duration) (Bounds, error) {
	ttl, margin, grace = cmp.Or(ttl, DefaultTTL), cmp.Or(margin, DefaultMargin), cmp.Or(grace, DefaultGrace)
	if ttl < time.Second || ttl > maxTTL || ttl%time.Second != 0 {
		return Bounds{}, fmt.Errorf("%w: ttl %v: want whole seconds from 1s to 24h", ErrInvalidOption, ttl)
	}
	if grace < 0 {
		return Bounds{}, fmt.Errorf("%w: grace %v: want a positive duration", ErrInvalidOption, grace)
	}
	if margin < 0 || ttl*55/100 <= margin {
		return Bounds{}, fmt.Errorf("%w: margin %v: want less than 0.55 of the ttl %v", ErrInvalidOption, margin, ttl)
	}
	return bounds(ttl, margin, grace), nil
}

// bounds is the formula, for values that were checked: whoever checked them for a TTL may use any longer.
func bounds(ttl, margin, grace time.Duration) Bounds {
	b := Bounds{TTL: ttl, Margin: margin, Renew: ttl / 10, Grace: min(grace, ttl*55/100-margin)}
	b.Kill = ttl - time.Duration(float64(ttl)*rateError) - margin
	b.Term = b.Kill - b.Grace
	b.Silence = b.Term - b.Renew
	return b
}
