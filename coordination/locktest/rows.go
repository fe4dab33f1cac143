package locktest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-coord/coord/coordination"
)

func (c *trial) granted() {
	c.release(c.Locker, c.acquire(c.Locker, c.key, owner, long))
	c.release(c.Locker, c.acquire(c.Locker, c.key, "o\x00\xff:\n{}", c.TTL)) // an owner is a name, of any bytes
}

func (c *trial) refusedWhileHeld() {
	lease := c.acquire(c.Locker, c.key, owner, long)
	for _, by := range []string{owner, rival} {
		c.refused(c.Locker, by, lease)
		c.refused(c.Peer(), by, lease)
	}
	c.release(c.Locker, lease)
}

// oneOfMany lets many ask at once for a key that is free.
func (c *trial) oneOfMany() {
	lockers := []coordination.Locker{c.Locker, c.Peer()}
	var last uint64
	for range 20 {
		won := c.race(lockers)
		if len(won) != 1 {
			c.Fatalf("%d of 16 who asked at once were granted: %+v", len(won), won)
		}
		last = c.rises(won[0], last)
		c.release(c.Locker, won[0])
	}
}

// race has sixteen goroutines acquire the key and gives the leases of those that were granted.
func (c *trial) race(lockers []coordination.Locker) []coordination.Lease {
	var mu sync.Mutex
	var won []coordination.Lease
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range 16 {
		all.Go(func() {
			<-start
			lease, held, err := lockers[i%len(lockers)].Acquire(c.Context(), c.key, owner, long)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				c.Errorf("acquire: %v", err)
			}
			if held {
				won = append(won, lease)
			}
		})
	}
	close(start)
	all.Wait()
	return won
}

// distinctKeys are names that a careless store takes for one another.
func (c *trial) distinctKeys() {
	names := []string{
		"", "/", "//", "/a", "/a/", "/.", "/..", "%", "%2F", "%2f", "%252F", " ", "+", "\n", "\x00", "\x00\x00", "\xff", "\xff\xfe", "\ufffd",
		"\u00e9", "e\u0301", "A", "a", "{", "}", "{}", "{a}", "{a}b", "*", "?", ":", ":token", "'", "\"", "\\", strings.Repeat("x", 1000),
	}
	leases := map[string]coordination.Lease{}
	for _, name := range names {
		leases[name] = c.acquire(c.Locker, c.key+name, owner, long)
	}
	for _, name := range names {
		c.refused(c.Peer(), rival, leases[name])
	}
	for _, name := range names {
		c.release(c.Locker, leases[name])
		c.release(c.Locker, c.acquire(c.Locker, c.key+name, rival, long))
	}
}

func (c *trial) invalid() {
	ctx, good := c.Context(), coordination.Lease{Key: c.key, Owner: owner, Token: 1}
	for what, err := range map[string]error{
		"acquire without a key":        second(c.Locker.Acquire(ctx, "", owner, long)),
		"acquire without an owner":     second(c.Locker.Acquire(ctx, c.key, "", long)),
		"acquire without a ttl":        second(c.Locker.Acquire(ctx, c.key, owner, 0)),
		"acquire for less than 0":      second(c.Locker.Acquire(ctx, c.key, owner, -1)),
		"renew without a ttl":          second(c.Locker.Renew(ctx, good, 0)),
		"renew for less than 0":        second(c.Locker.Renew(ctx, good, -time.Hour)),
		"renew the zero Lease":         second(c.Locker.Renew(ctx, coordination.Lease{}, long)),
		"renew without a token":        second(c.Locker.Renew(ctx, coordination.Lease{Key: c.key, Owner: owner}, long)),
		"renew without a key":          second(c.Locker.Renew(ctx, coordination.Lease{Owner: owner, Token: 1}, long)),
		"renew without an owner":       second(c.Locker.Renew(ctx, coordination.Lease{Key: c.key, Token: 1}, long)),
		"release the zero Lease":       c.Locker.Release(ctx, coordination.Lease{}),
		"release without a token":      c.Locker.Release(ctx, coordination.Lease{Key: c.key, Owner: owner}),
		"release without a key":        c.Locker.Release(ctx, coordination.Lease{Owner: owner, Token: 1}),
		"release without an owner":     c.Locker.Release(ctx, coordination.Lease{Key: c.key, Token: 1}),
		"acquire, in an ended context": second(c.Locker.Acquire(ended(), "", owner, long)),
	} {
		if !errors.Is(err, coordination.ErrInvalidLease) {
			c.Errorf("%s: %v; want ErrInvalidLease", what, err)
		}
	}
	c.release(c.Locker, c.acquire(c.Locker, c.key, owner, long)) // nothing was taken by the way
}

// second is the error of what Acquire and Renew return.
func second(_ coordination.Lease, _ bool, err error) error { return err }

// ended is a context that has.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func (c *trial) tokensRise() {
	var last uint64
	for i := range 10 {
		l := []coordination.Locker{c.Locker, c.Peer()}[i%2]
		lease := c.acquire(l, c.key, owner, long)
		last = c.rises(lease, last)
		c.release(l, lease)
	}
}

func (c *trial) expires() {
	first := c.acquire(c.Locker, c.key, owner, c.TTL)
	next := c.outlive(c.Peer(), first)
	c.refused(c.Locker, owner, next)
	c.release(c.Locker, next)
	// A token that belongs to the lease and not to the key begins anew where the lease has left no trace.
	again := c.acquire(c.Locker, c.key, owner, long)
	c.rises(again, next.Token)
	c.release(c.Locker, again)
}

func (c *trial) travels() {
	first := c.acquire(c.Locker, c.key, owner, long)
	raw, _ := json.Marshal(first)
	var sent coordination.Lease
	_ = json.Unmarshal(raw, &sent) // what did not travel is not renewed
	peer := c.Peer()
	next := c.keep(peer, sent, long)
	c.refused(c.Locker, owner, next)
	next = c.keep(c.Locker, first, long) // the first process goes on as it did
	c.refused(peer, rival, next)
	c.release(peer, sent)
	c.notRenewed(c.Locker, next, "released elsewhere")
	c.release(c.Locker, c.acquire(c.Locker, c.key, rival, long))
}
