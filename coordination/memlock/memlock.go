// Package memlock is a [coordination.Locker] in the memory of one process: for tests, and for programs that are one
// process.
//
// # What is not guaranteed
//
// Nobody outside of the process is excluded, and nothing survives it: a new one begins with the first token again. Where
// tokens are stored with data that outlives the process, use a Locker whose store does so too.
//
// A goroutine is paused as a process is, only for less long: the lease of one that is not scheduled in time is over all
// the same, and only the token tells.
//
// # What is authoritative
//
// The Locker itself, by Go's monotonic clock, which is also the holder's: an end is exact, and nothing is taken off a ttl.
// That clock stands still while the machine sleeps, so that a lease lasts longer than its ttl by then; its ExpiresAt
// does not, since [coordination.Lease.Remaining] looks at the wall clock too. In a testing/synctest bubble all of it
// follows the fake clock.
//
// Tokens rise over all keys of a Locker, by 1 with each grant. What is kept for a lease that ran out goes with a later
// Acquire, so that the memory used is that of the leases that last, and no key costs anything for having been used.
//
// No call waits for anything, or fails but for arguments that make no sense ([coordination.ErrInvalidLease]) or a context
// that has ended. Release also works with one that has.
package memlock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordination/internal/contract"
)

// Locker grants leases in this process. Lockers know nothing of each other: share one.
type Locker struct {
	mu    sync.Mutex
	token uint64          // the last one granted
	holds map[string]hold // by key
	sweep int             // at so many, those that ran out are thrown away
}

// hold is a lease as the Locker knows it.
type hold struct {
	token uint64
	until time.Time // with a monotonic reading
}

// sweepAt is the least number of holds at which it is worth looking for those that ran out.
const sweepAt = 64

var _ coordination.Locker = (*Locker)(nil)

// New makes a Locker that has granted nothing yet.
func New() *Locker { return &Locker{holds: map[string]hold{}, sweep: sweepAt} }

// Acquire grants key, unless it is held.
func (l *Locker) Acquire(ctx context.Context, key, owner string, ttl time.Duration) (coordination.Lease, bool, error) {
	if err := contract.Acquire(key, owner, ttl); err != nil {
		return coordination.Lease{}, false, err
	}
	if ctx.Err() != nil {
		return coordination.Lease{}, false, fmt.Errorf("acquire %q: %w", key, context.Cause(ctx))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if h, ok := l.holds[key]; ok && now.Before(h.until) {
		return coordination.Lease{}, false, nil
	}
	l.token++
	h := hold{token: l.token, until: now.Add(ttl)}
	l.holds[key] = h
	l.tidy(now)
	return coordination.Lease{Key: key, Owner: owner, Token: h.token, ExpiresAt: h.until}, true, nil
}

// Renew extends a lease that has not run out. One that lasts longer than ttl is not cut short: the lease that is
// returned says ttl, and the key is free when both are over.
func (l *Locker) Renew(ctx context.Context, lease coordination.Lease, ttl time.Duration) (coordination.Lease, bool, error) {
	if err := contract.Renew(lease, ttl); err != nil {
		return coordination.Lease{}, false, err
	}
	if ctx.Err() != nil {
		return coordination.Lease{}, false, fmt.Errorf("renew %q: %w", lease.Key, context.Cause(ctx))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	h, ok := l.holds[lease.Key]
	if !ok || h.token != lease.Token || !now.Before(h.until) {
		return coordination.Lease{}, false, nil
	}
	lease.ExpiresAt = now.Add(ttl)
	if lease.ExpiresAt.After(h.until) {
		l.holds[lease.Key] = hold{token: h.token, until: lease.ExpiresAt}
	}
	return lease, true, nil
}

// Release frees the key if it is this lease that holds it.
func (l *Locker) Release(_ context.Context, lease coordination.Lease) error {
	if err := lease.Validate(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds[lease.Key].token == lease.Token {
		delete(l.holds, lease.Key)
	}
	return nil
}

// tidy throws away what ran out, as soon as that may be half of all (mu held).
func (l *Locker) tidy(now time.Time) {
	if len(l.holds) < l.sweep {
		return
	}
	for key, h := range l.holds {
		if !now.Before(h.until) {
			delete(l.holds, key)
		}
	}
	l.sweep = max(2*len(l.holds), sweepAt)
}
