package locktest

import (
	"time"

	"github.com/go-coord/coord/coordination"
)

// attempts is how often a row that needs a short lease to be renewed in time is tried.
const attempts = 20

func (c *trial) renews() {
	lease := c.acquire(c.Locker, c.key, owner, long)
	for range 3 {
		// An instant is enough: a renewal that is asked for later ends later.
		time.Sleep(time.Millisecond) // so that a coarse clock moves on
		next := c.keep(c.Locker, lease, long)
		if !next.ExpiresAt.After(lease.ExpiresAt) {
			c.Errorf("ExpiresAt %v after a renewal of %v; want a later one", next.ExpiresAt, lease.ExpiresAt)
		}
		lease = next
	}
	c.refused(c.Peer(), rival, lease)
	c.release(c.Locker, lease)
	c.lastsLonger()
}

// lastsLonger sees that the store has heard of a renewal: the key is held beyond the end of the first lease.
func (c *trial) lastsLonger() {
	for i := range attempts {
		first := c.acquire(c.Locker, c.sub(i), owner, c.TTL)
		next, held := c.renew(c.Locker, first, long)
		if !held {
			continue // it ran out first
		}
		// The end of the first lease, and as much again.
		time.Sleep(first.Remaining() + c.TTL) // nothing happens then, which is the point
		c.refused(c.Peer(), rival, next)
		c.release(c.Locker, next)
		return
	}
	c.Fatalf("%d leases of %v ran out before they could be renewed", attempts, c.TTL)
}

func (c *trial) renewsForAnotherTime() {
	first := c.acquire(c.Locker, c.key, owner, long)
	longer := c.keep(c.Locker, first, 3*long)
	if !longer.ExpiresAt.After(first.ExpiresAt.Add(long)) {
		c.Errorf("a lease by %v was renewed by %v and lasts for %v", long, 3*long, longer.Remaining())
	}
	c.refused(c.Peer(), rival, longer)
	shorter := c.keep(c.Locker, longer, c.TTL) // true, and held for that long at least
	c.refused(c.Peer(), rival, shorter)
	c.release(c.Locker, shorter)
	c.release(c.Locker, c.freed(c.Peer(), c.key, 0))
}

func (c *trial) doesNotRenew() {
	first := c.acquire(c.Locker, c.key, owner, long)
	c.release(c.Locker, first)
	c.notRenewed(c.Locker, first, "released")
	c.notRenewed(c.Peer(), first, "released")

	next := c.acquire(c.Peer(), c.key, owner, long)
	c.notRenewed(c.Locker, first, "superseded")
	c.refused(c.Locker, rival, next)
	c.release(c.Locker, next)

	expired := c.acquire(c.Locker, c.key, owner, c.TTL)
	next = c.outlive(c.Peer(), expired)
	c.notRenewed(c.Locker, expired, "expired and superseded")
	c.release(c.Locker, next)
	c.notRenewed(c.Locker, expired, "expired")

	made := coordination.Lease{Key: c.sub(0), Owner: owner, Token: next.Token + 1, ExpiresAt: time.Now().Add(long)}
	c.notRenewed(c.Locker, made, "made up")
}

// endsByItself waits for the refusal of a renewal that comes too late. A store may take its time to let a lease go, and
// renews it until then.
func (c *trial) endsByItself() {
	lease := c.acquire(c.Locker, c.key, owner, c.TTL)
	for i := range attempts {
		time.Sleep(lease.Remaining() + c.TTL*time.Duration(i)) // nobody tells when a lease has gone
		next, held := c.renew(c.Locker, lease, c.TTL)
		if !held {
			c.release(c.Locker, c.acquire(c.Peer(), c.key, rival, long)) // not renewed means free
			return
		}
		lease = next
	}
	c.Fatalf("a lease was renewed %d times although it had run out, the last time long before", attempts)
}

func (c *trial) releases() {
	lease := c.acquire(c.Locker, c.key, owner, long)
	c.release(c.Locker, lease)
	c.release(c.Locker, lease)
	next := c.acquire(c.Peer(), c.key, rival, long)
	c.release(c.Peer(), next)

	expired := c.acquire(c.Locker, c.key, owner, c.TTL)
	c.release(c.Peer(), c.outlive(c.Peer(), expired))
	c.release(c.Locker, expired)
	c.release(c.Locker, coordination.Lease{Key: c.sub(0), Owner: owner, Token: 1}) // of a key that never was
}

// staleRelease is the late defer of a holder that was superseded.
func (c *trial) staleRelease() {
	stale := c.acquire(c.Locker, c.key, owner, long)
	c.release(c.Locker, stale)
	next := c.acquire(c.Peer(), c.key, owner, long)
	for _, l := range []coordination.Locker{c.Locker, c.Peer()} {
		c.release(l, stale)
		c.refused(c.Locker, rival, next)
	}
	c.release(c.Peer(), c.keep(c.Peer(), next, long))

	// The same after an end by time.
	expired := c.acquire(c.Locker, c.key, owner, c.TTL)
	next = c.outlive(c.Peer(), expired)
	c.release(c.Locker, expired)
	c.refused(c.Locker, owner, next)
	c.release(c.Peer(), next)
}
