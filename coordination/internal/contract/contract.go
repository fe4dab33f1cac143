// Package contract is what the Lockers of this module carry out alike: which arguments make sense, and how the end of a
// lease is counted.
//
// What is authoritative is the table in the comment of package coordination. This package asks nobody and knows no
// store.
package contract

import (
	"fmt"
	"time"

	"github.com/go-coord/coord/coordination"
)

// rate is the part of a ttl that is taken off where the store has a clock of its own: two clocks may run at rates that
// differ by 10 %, which is more than the fastest correction of a time daemon (8.3 %).
const rate = 10

// Acquire reports whether a key can be asked for like this: nil, or an error that wraps coordination.ErrInvalidLease.
func Acquire(key, owner string, ttl time.Duration) error {
	return Renew(coordination.Lease{Key: key, Owner: owner, Token: 1}, ttl)
}

// Renew reports whether a lease can be renewed like this.
func Renew(lease coordination.Lease, ttl time.Duration) error {
	if err := lease.Validate(); err != nil {
		return err
	}
	if ttl <= 0 {
		return fmt.Errorf("%w: ttl %v, want more than 0", coordination.ErrInvalidLease, ttl)
	}
	return nil
}

// ExpiresAt is the end of a lease that was asked for at sent, for asked, and that a store with a clock of its own granted
// for granted: the store lets the key go after granted by its clock, and whoever asked for less gets no more than that.
func ExpiresAt(sent time.Time, asked, granted time.Duration) time.Time {
	return sent.Add(min(asked, granted-granted/rate))
}
