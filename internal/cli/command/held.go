package command

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
)

// held is a term of coord as a hold.Hold.
type held struct {
	attempt   attempt
	session   *coord.Session
	term      *coord.Term
	info      hold.Info
	evictions *evictions
	crowded   func(context.Context) bool // asks whether somebody waits for it
	parted    chan struct{}              // closed once the session is, after a release
}

func (h *held) Info() hold.Info { return h.info }

func (h *held) Deadlines() hold.Deadlines {
	term, kill := h.term.Deadlines()
	return hold.Deadlines{Term: term, Kill: kill}
}

func (h *held) Renewed() <-chan struct{} { return h.term.Renewed() }
func (h *held) Lost() <-chan struct{}    { return h.term.Lost() }
func (h *held) Evicted() <-chan error    { return h.evictions.asked }

func (h *held) Cause() error {
	if cause := context.Cause(h.term.Context()); cause != nil {
		return loss{cause}
	}
	return nil
}

// loss is the loss of a hold. Its text is what happened; that a term or a session was lost by it, as the library
// has it, would be to say the same thing again.
type loss struct{ cause error }

func (l loss) Error() string {
	for _, why := range []error{coord.ErrUnproven, coord.ErrLeaseGone, coord.ErrKeyGone, coord.ErrKeyReplaced} {
		if errors.Is(l.cause, why) {
			return hold.ErrLost.Error() + ": " + why.Error()
		}
	}
	return hold.ErrLost.Error() + ": " + l.cause.Error()
}

func (l loss) Unwrap() []error { return []error{hold.ErrLost, l.cause} }

// Release gives up the keys and closes the record. The revoke follows by itself, and nobody here waits for it: candidacy.close
// does. Not before: a key that goes ahead of its record looks like an unclean end to whoever watches.
//
// Where somebody waits the revoke gives way: etcd would sync it just when the successor's decision comes in, which then
// waits for both.
func (h *held) Release(ctx context.Context, end hold.End) error {
	crowded := make(chan bool, 1)
	go func() { crowded <- h.crowded(ctx) }()
	began := time.Now()
	err := h.attempt.release(ctx, h.term, coord.End(end))
	if err == nil {
		go h.leave(crowded, time.Since(began))
	}
	return err
}

// giveWayMost bounds how long a revoke waits for the successor.
const giveWayMost = 100 * time.Millisecond

// leave closes the session after a release that took so long.
func (h *held) leave(crowded <-chan bool, took time.Duration) {
	defer close(h.parted)
	if <-crowded {
		time.Sleep(min(2*took, giveWayMost)) // the successor is another process: nothing here hears that it has decided
	}
	part(h.session)
}

func (h *held) Testament() []byte { return encodeKeys(h.term.Keys()) }

// encodeKeys is a testament: what the release program needs to take away what a wrapper that was killed has in etcd.
func encodeKeys(keys coord.TermKeys) []byte {
	raw, _ := json.Marshal(keys) // of these types it cannot fail
	return raw
}
