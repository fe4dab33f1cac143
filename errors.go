package coord

import "errors"

// Returned when something is constructed.
var (
	// ErrInvalidOption is returned when an option has a value that cannot be meant; the text names it.
	ErrInvalidOption = errors.New("coord: invalid option")
)

// Causes of a loss, found with errors.Is on a returned error or on context.Cause of a session's or
// term's context.
var (
	// ErrSessionLost is returned when the session's lease can no longer be proven to be alive. It wraps
	// one of the causes below.
	ErrSessionLost = errors.New("coord: session lost")
	// ErrTermLost is returned when a key was taken from a candidate or leader although its session lives.
	// It wraps ErrKeyGone or ErrKeyReplaced.
	ErrTermLost = errors.New("coord: term lost")
	// ErrUnproven is the cause when no verified renewal came in time. etcd may still show the key.
	ErrUnproven = errors.New("no verified renewal in time")
	// ErrLeaseGone is the cause when etcd does not know the lease any more: expired or revoked.
	ErrLeaseGone = errors.New("lease expired or revoked")
	// ErrKeyGone is the cause when the own key was deleted.
	ErrKeyGone = errors.New("own key deleted")
	// ErrKeyReplaced is the cause when the own key has another create revision or another lease.
	ErrKeyReplaced = errors.New("own key replaced")
	// ErrStoreRegressed is the cause when etcd's revision went back or its cluster id changed: it was
	// restored from a snapshot or swapped, and tokens given out before mean nothing there.
	ErrStoreRegressed = errors.New("coord: etcd's history went back")
	// ErrClientClosed is the cause when the client was closed by its owner: nothing can be proven through it.
	ErrClientClosed = errors.New("the client was closed")
	// ErrClosed is the cause when the session, or the election, was closed by its owner.
	ErrClosed = errors.New("coord: closed")
	// ErrResigned is the cause of a term's end when its holder resigned.
	ErrResigned = errors.New("coord: resigned")
)

// Of a host that registered.
var (
	// ErrDuplicateHost is returned when another live process is registered under the same host UUID. The
	// error is a *DuplicateHostError, which tells about it.
	ErrDuplicateHost = errors.New("coord: another live process has this host uuid")
	// ErrHostLost is the cause when a registered host cannot be proven to be alive any more. It wraps
	// ErrSessionLost, ErrUnproven, ErrKeyGone or ErrKeyReplaced.
	ErrHostLost = errors.New("coord: host not proven alive")
)

// Returned by the calls of an election or a semaphore.
var (
	// ErrAlreadyCampaigning is returned when a call on the same Election is still campaigning.
	ErrAlreadyCampaigning = errors.New("coord: this election is already campaigning")
	// ErrNestedKey is returned when a key under the election's prefix holds a further "/": another
	// election is nested in this one, and the oldest key would be a wrong leader.
	ErrNestedKey = errors.New("coord: another election is nested under this key")
	// ErrOtherMax is returned when a semaphore is in use under another max than the one that was asked for:
	// together they would let more in than either says. See [OtherMaxError].
	ErrOtherMax = errors.New("coord: the semaphore is in use under another max")
	// ErrNoLeader is returned when nobody leads.
	ErrNoLeader = errors.New("coord: no leader")
	// ErrUndecided is returned when a request may or may not have been committed and nobody could be
	// asked in time. What it left behind, if anything, goes with the lease.
	ErrUndecided = errors.New("coord: outcome unknown")
)
