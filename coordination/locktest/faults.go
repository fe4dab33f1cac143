package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/go-coord/coord/coordination"
)

// endedContext sees whether a call that nobody answered is taken for a refusal: false would send one away whom the key is
// free for, or tell a holder that it holds nothing.
func (c *trial) endedContext() {
	lease, held, err := c.Locker.Acquire(ended(), c.key, owner, long)
	c.noRefusal("acquire", held, err)
	if held {
		c.release(c.Locker, lease)
	}
	next := c.freed(c.Peer(), c.key, long)
	_, held, err = c.Locker.Renew(ended(), next, long)
	c.noRefusal("renew", held, err)
	c.refused(c.Peer(), owner, next)

	if err := c.Locker.Release(ended(), next); errors.Is(err, coordination.ErrInvalidLease) {
		c.Errorf("release: %v", err)
	}
	c.release(c.Locker, next)
	c.release(c.Locker, c.acquire(c.Peer(), c.key, rival, long))
}

func (c *trial) noRefusal(what string, held bool, err error) {
	c.Helper()
	switch {
	case err == nil && !held:
		c.Fatalf("%s without an answer: false, nil; want an error", what)
	case errors.Is(err, coordination.ErrInvalidLease):
		c.Errorf("%s without an answer: %v; want another error", what, err)
	}
}

// silence asks a store that does not answer.
func (c *trial) silence() {
	if c.Silence == nil {
		c.Logf("the store cannot be silenced: nothing was tried")
		return
	}
	kept := c.acquire(c.Locker, c.key, owner, long)
	dropped := c.acquire(c.Locker, c.sub(0), owner, long)
	restore := c.Silence()
	for what, call := range map[string]func(context.Context) error{
		"acquire": func(ctx context.Context) error { return second(c.Locker.Acquire(ctx, c.sub(1), owner, c.TTL)) },
		"renew":   func(ctx context.Context) error { return second(c.Locker.Renew(ctx, kept, long)) },
		"release": func(ctx context.Context) error { return c.Locker.Release(ctx, dropped) },
	} {
		ctx, cancel := context.WithTimeout(c.Context(), c.TTL)
		if err := call(ctx); err == nil || errors.Is(err, coordination.ErrInvalidLease) {
			c.Errorf("%s, and nobody answers: %v; want an error", what, err)
		}
		cancel()
	}
	restore()

	// What was promised before is true, and what was tried can be tried again.
	kept = c.insist(kept)
	c.refused(c.Peer(), rival, kept)
	c.release(c.Locker, kept)
	c.release(c.Locker, dropped)
	for _, key := range []string{c.sub(0), c.sub(1)} {
		c.release(c.Locker, c.freed(c.Locker, key, c.TTL))
	}
}

// insist renews until there is an answer.
func (c *trial) insist(lease coordination.Lease) coordination.Lease {
	c.Helper()
	for began := time.Now(); ; time.Sleep(c.TTL / 10) { // nobody tells when the store is back
		next, held, err := c.Locker.Renew(c.Context(), lease, long)
		switch {
		case held && err == nil:
			return next
		case err == nil || time.Since(began) > most:
			c.Fatalf("a lease that is good for %v was not renewed after a silence: %v, %v", lease.Remaining(), held, err)
		}
	}
}

// loses lets the answer to the next request be lost, unless the store cannot.
func (c *trial) loses() bool {
	if c.LoseReply == nil {
		c.Logf("the store loses no answers: nothing was tried")
		return false
	}
	c.LoseReply()
	return true
}

// patiently bounds a call whose answer is lost.
func (c *trial) patiently() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Context(), 4*c.TTL)
}

func (c *trial) lostAcquire() {
	if !c.loses() {
		return
	}
	ctx, cancel := c.patiently()
	defer cancel()
	lease, held, err := c.Locker.Acquire(ctx, c.key, owner, c.TTL)
	c.noRefusal("acquire", held, err)
	if held {
		c.outlive(c.Peer(), lease)
	} else {
		c.freed(c.Peer(), c.key, c.TTL)
	}
}

// lostRenew asks for less than there is: whether or not it was done, the old end is true.
func (c *trial) lostRenew() {
	lease := c.acquire(c.Locker, c.key, owner, 8*c.TTL)
	if !c.loses() {
		c.release(c.Locker, lease)
		return
	}
	ctx, cancel := c.patiently()
	defer cancel()
	next, held, err := c.Locker.Renew(ctx, lease, c.TTL)
	if err == nil && !held && !lease.Expired() {
		c.Fatalf("renew without an answer: false, nil; want an error")
	}
	if held {
		lease = next
	}
	c.outlive(c.Peer(), lease)
}

func (c *trial) lostRelease() {
	lease := c.acquire(c.Locker, c.key, owner, long)
	if !c.loses() {
		c.release(c.Locker, lease)
		return
	}
	ctx, cancel := c.patiently()
	defer cancel()
	_ = c.Locker.Release(ctx, lease) // nil or not, it may be called again
	c.release(c.Locker, lease)
	next := c.acquire(c.Peer(), c.key, rival, long)
	c.release(c.Locker, lease) // once more: it may have been under way
	c.refused(c.Locker, owner, next)
	c.release(c.Peer(), next)
}

// countsFromTheSend makes answers late, so that it shows from where ExpiresAt counts. An answer was sent for d before it
// came, at least.
func (c *trial) countsFromTheSend() {
	if c.Slow == nil {
		c.Logf("the store cannot be slowed down: nothing was tried")
		return
	}
	ttl := 4 * c.TTL
	late := ttl / 5
	restore := c.Slow(late)
	defer restore()
	check := func(what string, lease coordination.Lease) {
		if past := lease.ExpiresAt.Sub(time.Now().Add(ttl - late)); past > 0 {
			c.Errorf("%s: ExpiresAt is %v past what was asked for, from the send on", what, past)
		}
	}
	lease := c.acquire(c.Locker, c.key, owner, ttl)
	check("acquire", lease)
	if next, held := c.renew(c.Locker, lease, ttl); held {
		check("renew", next)
	}
}
