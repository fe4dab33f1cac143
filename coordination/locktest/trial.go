package locktest

import (
	"strconv"
	"time"

	"github.com/go-coord/coord/coordination"
)

const (
	// long is the ttl of leases that are not to run out.
	long = time.Minute
	// most bounds what takes a moment: the end of a lease, an answer after a silence. It is reached only when that never
	// comes.
	most = time.Minute
	// owner and rival are two names. Rows that are about owners have more.
	owner, rival = "owner", "rival"
)

// sub is a further key of this row.
func (c *trial) sub(n int) string { return c.key + "-" + strconv.Itoa(n) }

// acquire acquires a key that is free.
func (c *trial) acquire(l coordination.Locker, key, owner string, ttl time.Duration) coordination.Lease {
	c.Helper()
	began := time.Now()
	lease, held, err := l.Acquire(c.Context(), key, owner, ttl)
	if err != nil || !held {
		c.Fatalf("acquire a free key: %v, %v; want it held", held, err)
	}
	c.sound(lease, key, owner, ttl, began)
	return lease
}

// sound checks a lease that was asked for between began and now.
func (c *trial) sound(lease coordination.Lease, key, owner string, ttl time.Duration, began time.Time) {
	c.Helper()
	now := time.Now()
	if err := lease.Validate(); err != nil || lease.Key != key || lease.Owner != owner {
		c.Errorf("%+v: %v; want a lease of %q by %q", lease, err, key, owner)
	}
	switch at := lease.ExpiresAt; {
	case at == at.Round(0) && now != now.Round(0): // a bubble's clock has no such reading
		c.Errorf("ExpiresAt %v has no monotonic reading", at)
	case at.After(now.Add(ttl)):
		c.Errorf("ExpiresAt is %v after the answer, for a ttl of %v", at.Sub(now), ttl)
	case at.Before(began):
		c.Errorf("ExpiresAt is %v before the request", began.Sub(at))
	}
}

// refused asks for a key that prev holds, and reports whether that was refused. It is a break of the contract if it was
// not although prev is still good.
func (c *trial) refused(l coordination.Locker, owner string, prev coordination.Lease) bool {
	c.Helper()
	lease, held, err := l.Acquire(c.Context(), prev.Key, owner, long)
	switch {
	case err != nil:
		c.Fatalf("acquire a key that is held: %v; want a refusal without an error", err)
	case held && !prev.Expired():
		c.Fatalf("%q was given to %q (token %d) %v before the lease of %q (token %d) ends",
			prev.Key, owner, lease.Token, prev.Remaining(), prev.Owner, prev.Token)
	case !held && lease != coordination.Lease{}:
		c.Errorf("a refusal came with %+v; want the zero Lease", lease)
	}
	return !held
}

// outlive waits until prev has run out and somebody else was granted its key.
func (c *trial) outlive(l coordination.Locker, prev coordination.Lease) coordination.Lease {
	c.Helper()
	next := c.freed(l, prev.Key, prev.Remaining())
	if !prev.Expired() {
		c.Fatalf("%q was given away %v before its lease ends", prev.Key, prev.Remaining())
	}
	c.rises(next, prev.Token)
	return next
}

// rises checks a token against the one before, and gives it.
func (c *trial) rises(lease coordination.Lease, last uint64) uint64 {
	c.Helper()
	if lease.Token <= last {
		c.Errorf("token %d after %d: want a higher one", lease.Token, last)
	}
	return lease.Token
}

// freed asks for a key that is to be free within a time, until it is granted. Errors are no answer.
func (c *trial) freed(l coordination.Locker, key string, within time.Duration) coordination.Lease {
	c.Helper()
	var held bool
	var err error
	for deadline := time.Now().Add(within + most); time.Now().Before(deadline); {
		var lease coordination.Lease
		if lease, held, err = l.Acquire(c.Context(), key, rival, long); held && err == nil {
			return lease
		}
		time.Sleep(c.TTL / 10) // nobody tells when a lease runs out
	}
	c.Fatalf("%q is not free %v after its lease ran out: %v, %v", key, most, held, err)
	return coordination.Lease{}
}

// release releases, which has to be answered.
func (c *trial) release(l coordination.Locker, lease coordination.Lease) {
	c.Helper()
	if err := l.Release(c.Context(), lease); err != nil {
		c.Fatalf("release: %v", err)
	}
}

// renew renews a lease that is good. It is no break of the contract if that ran out meanwhile: then held is false.
func (c *trial) renew(l coordination.Locker, lease coordination.Lease, ttl time.Duration) (next coordination.Lease, held bool) {
	c.Helper()
	began := time.Now()
	next, held, err := l.Renew(c.Context(), lease, ttl)
	switch {
	case err != nil:
		c.Fatalf("renew: %v", err)
	case !held && !lease.Expired():
		c.Fatalf("a lease that is good for %v was not renewed", lease.Remaining())
	case !held:
		c.unheld(next)
		return next, false
	case next.Token != lease.Token:
		c.Errorf("a renewal changed the token from %d to %d", lease.Token, next.Token)
	}
	c.sound(next, lease.Key, lease.Owner, ttl, began)
	return next, true
}

// keep renews a lease that does not run out meanwhile.
func (c *trial) keep(l coordination.Locker, lease coordination.Lease, ttl time.Duration) coordination.Lease {
	c.Helper()
	next, held := c.renew(l, lease, ttl)
	if !held {
		c.Fatalf("a lease ran out %v ago, while it was renewed", -lease.Remaining())
	}
	return next
}

// unheld checks what comes with a false.
func (c *trial) unheld(lease coordination.Lease) {
	c.Helper()
	if lease != (coordination.Lease{}) {
		c.Errorf("false came with %+v; want the zero Lease", lease)
	}
}

// notRenewed renews a lease that somebody else's has followed, or that was released.
func (c *trial) notRenewed(l coordination.Locker, lease coordination.Lease, what string) {
	c.Helper()
	next, held, err := l.Renew(c.Context(), lease, long)
	if held || err != nil {
		c.Fatalf("renew a lease that was %s: %v, %v; want false, nil", what, held, err)
	}
	c.unheld(next)
}
