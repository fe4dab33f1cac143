// Package hold is what every command that runs a child "while something is held" has in common: the
// contract of a hold, the exit codes, the identity written at a held key, and the rules for names and
// keys. It knows neither etcd nor processes: it is the vocabulary that the supervisor, the guard and the
// commands share, and it imports the standard library only.
//
// # Time
//
// Every deadline here is an Instant: a reading of the clock that runs through suspend (CLOCK_BOOTTIME on
// Linux). The wrapper and the guard are two processes on one machine, so an absolute instant means the
// same in both; a duration would lose the time that the message was under way.
package hold

import (
	"context"
	"math"
	"time"
)

// Instant is a reading of the machine's suspend-proof clock, counted from an arbitrary origin that all
// processes of one machine share until its next boot.
type Instant = time.Duration

// Never is an instant that does not come: it is some seventy years away, so that there is room to count on from it.
const Never Instant = math.MaxInt64 / 4

// Deadlines are the two moments at which the work done under a hold has to end if no verified renewal
// moves them first. Both only ever rise while the hold lasts.
type Deadlines struct {
	// Term is when the hold counts as lost: from here on the child is told to stop, and no later renewal
	// takes that back. Nothing may be started at or after it.
	Term Instant
	// Kill is when nothing of the child may be alive any more.
	Kill Instant
}

// Info describes a hold that was acquired. It does not change while the hold lasts.
type Info struct {
	Kind  string        // "elect", "sema", "host" or "fence"
	Name  string        // office or semaphore, as the user typed it
	Rev   uint64        // the fencing token: create revision of the winning key
	Lease int64         // etcd lease id; 0 where there is none
	Slot  int           // slot of a semaphore; -1 where there is none
	TTL   time.Duration // 0: it does not run out by itself, and its Deadlines are Never
}

// Hold is something held, as the supervisor sees it.
//
// A Hold never ends by itself while it can be proven: it ends by Release, or it is lost. A lost hold
// stays lost. Lost tells no lies in one direction only: it may be closed although etcd still shows the
// key (ambiguity is loss), but it is closed at Deadlines().Term at the latest when nothing was heard.
type Hold interface {
	Info() Info
	// Deadlines are recomputed at each verified renewal. They are final once Lost is closed.
	Deadlines() Deadlines
	// Renewed yields after the deadlines rose. Readings are conflated: one value may stand for many.
	Renewed() <-chan struct{}
	// Lost is closed when the hold is lost or has been released.
	Lost() <-chan struct{}
	// Cause says why Lost is closed; nil while it is open.
	Cause() error
	// Evicted yields at most once, when an operator asks the holder to leave: an error that wraps ErrEvicted and
	// says who asks. The hold goes on, and is renewed, until it is released. nil where nobody can ask.
	Evicted() <-chan error
	// Release gives the hold up. It is called only when nothing of the child is left: after a loss it
	// still says so, which lets a settling successor start. It is idempotent and may be retried.
	Release(ctx context.Context, end End) error
	// Testament is what another process needs to release this hold if this one dies: opaque to the
	// supervisor and the guard, one line of JSON, no secrets.
	Testament() []byte
}

// Acquirer obtains a hold. Acquire returns when the hold is won, settled and verified, when it is known
// that it will not be (an error that wraps ErrNotAcquired), or when ctx ends; on every error it has left
// nothing behind but what it reports.
//
// placed is called whenever a key of ours has come to stand in a queue, with the testament that takes it away; the
// latest call counts. It does not block, and may come late.
type Acquirer interface {
	Acquire(ctx context.Context, placed func(testament []byte)) (Hold, error)
}

// End is how a hold ended, as it is recorded for whoever asks who held it last.
type End string

const (
	EndReleased End = "released" // the child ended, or the operator stopped it, and the hold was given up
	EndLost     End = "lost"     // the hold was lost; everything of the child is gone
	EndOrphaned End = "orphaned" // the wrapper died; its guard ended the child and released
	EndExpired  End = "expired"  // nobody said how: a settling successor found the record open
	EndEvicted  End = "evicted"  // an operator asked the holder to leave, and it did
)
