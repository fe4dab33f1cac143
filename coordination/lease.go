package coordination

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrInvalidLease is returned where what is asked makes no sense for any Locker: an empty key or owner, a ttl that is
// not positive, a lease without a token.
var ErrInvalidLease = errors.New("coordination: invalid lease")

// Lease is a lock that is held, for a time, with its fencing token.
//
// The zero Lease holds nothing. A Lease can be stored and sent as JSON; what comes back has lost the monotonic reading
// of its ExpiresAt, so that a wall clock that is set back makes it look longer than it is.
type Lease struct {
	// Key is what is locked.
	Key string
	// Owner says who holds it, for people and logs. It opens no doors: the same owner is refused like any other.
	Owner string
	// Token is the fencing token: greater than that of every earlier lease of Key, and kept by Renew. Whoever guards the
	// resource remembers the highest that it has seen of Key, and rejects lower ones.
	Token uint64
	// ExpiresAt is the moment until which nobody else is given Key, as far as clocks tell: it is counted from before the
	// request was sent, less what the Locker takes off for clocks that run at different rates. It is never later than the
	// ttl that was asked for.
	ExpiresAt time.Time
}

// Validate reports whether the lease is one that a Locker can have granted: an error that wraps [ErrInvalidLease] names
// what is missing. It says nothing about whether the lease is still held.
func (lease Lease) Validate() error {
	switch {
	case lease.Key == "":
		return fmt.Errorf("%w: no key", ErrInvalidLease)
	case lease.Owner == "":
		return fmt.Errorf("%w: no owner", ErrInvalidLease)
	case lease.Token == 0:
		return fmt.Errorf("%w: no token", ErrInvalidLease)
	}
	return nil
}

// Remaining is how long the lease is good for without asking anybody: 0 or less where it is over. Of the wall clock and
// the monotonic one the stricter counts: the one stands still while the machine sleeps, the other can be set.
func (lease Lease) Remaining() time.Duration { return lease.remaining(time.Now()) }

func (lease Lease) remaining(now time.Time) time.Duration {
	return min(lease.ExpiresAt.Sub(now), lease.ExpiresAt.Round(0).Sub(now.Round(0)))
}

// Expired reports whether the lease has run out by this process's clocks. That it has not is true for the moment of the
// call, and a process can be paused right after it: see the package comment.
func (lease Lease) Expired() bool { return lease.Remaining() <= 0 }

// Locker grants leases. The package comment has its contract as a table. It is safe for concurrent use.
type Locker interface {
	// Acquire asks for key once, and does not wait: false says that somebody holds it. ctx bounds the call only, not
	// the lease. After an error it is not known whether the key is held: it is free again after ttl at the latest.
	Acquire(ctx context.Context, key string, owner string, ttl time.Duration) (Lease, bool, error)
	// Renew extends a lease by ttl, counted from now. false says that it is over. After an error the old ExpiresAt is
	// still true.
	Renew(ctx context.Context, lease Lease, ttl time.Duration) (Lease, bool, error)
	// Release gives a lease up. It is nil also where the lease is over already, and then does nothing. After an error
	// it may be called again.
	Release(ctx context.Context, lease Lease) error
}
