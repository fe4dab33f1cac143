package plan

import (
	"time"

	"github.com/go-coord/coord/internal/cron/record"
)

// Verb is what to do.
type Verb int

// Verbs.
const (
	Wait    Verb = iota // nothing, until At or until something changes
	Run                 // claim ID, and start it
	Skip                // record that ID is not started, and why
	Range               // record that From to ID.Tick were not started, and why
	Queue               // record that ID waits for the run before it
	Take                // end the run before it, and let ID wait for that
	Close               // record that Open was lost
	Abandon             // record that Want was not met in time
)

// Act is what to do, when, and what it rests on. What it points to are copies: the state goes on changing.
type Act struct {
	Verb   Verb
	At     time.Time // not before. Zero with Wait: only if something changes
	ID     record.ID
	From   int64 // Range
	Ticks  int   // Range
	Kind   record.Kind
	Status record.Status // Skip, Range
	Reason record.Reason // Skip, Range
	Open   *Open         // Close; Skip for overlap: the run that is in the way
	Want   *Want         // Run of a request, Abandon; Take: the request that is superseded, if there is one
	// Alone: nothing of the job may be open.
	Alone   bool
	Attempt int
	// By is the moment after which a start is no longer wanted. Zero: none.
	By time.Time
	// Due is when it was due: what lateness is counted from.
	Due time.Time
}

// sooner gives the act whose time comes first; Wait without a time is never.
func sooner(a, b Act) Act {
	switch {
	case a.idle():
		return b
	case b.idle(), !b.At.Before(a.At):
		return a
	}
	return b
}

func (a Act) idle() bool { return a.Verb == Wait && a.At.IsZero() }
