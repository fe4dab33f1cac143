package command

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
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
	atOnce    bool                       // it was won without having waited
	since     time.Time                  // when
	crowded   func(context.Context) bool // asks whether somebody waits for it
	parting   sync.Once
	parted    chan struct{} // closed once the session is
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

// Release gives up the keys and closes the record; then, or meanwhile, the lease is revoked, for which candidacy.close waits.
//
// Where somebody waits the revoke gives way: etcd would sync it just when the successor's decision comes in, which then
// waits for both. Where nobody does the two go out together, and the lease may go ahead of the record: that would look like an
// unclean end, but to nobody.
func (h *held) Release(ctx context.Context, end hold.End) error {
	crowded, released := make(chan bool, 1), make(chan error, 1)
	began := time.Now()
	if h.atOnce && time.Since(h.since) < shortHold {
		crowded <- false // nobody was there, a moment ago
	} else {
		go func() { crowded <- h.crowded(ctx) }()
	}
	go func() { released <- h.attempt.release(ctx, h.term, coord.End(end)) }()
	var err error
	select {
	case awaited := <-crowded:
		if !awaited {
			h.part(0)
		}
		err = <-released
	case err = <-released:
	}
	if err == nil {
		h.part(min(2*time.Since(began), giveWayMost))
	}
	return err
}

// shortHold is how long a hold lasts that ends without a look for who waits: a command that does nothing is over by then.
const shortHold = 20 * time.Millisecond

// giveWayMost bounds how long a revoke waits for the successor.
const giveWayMost = 100 * time.Millisecond

// part closes the session, once, after a while. Nobody waits for it here.
func (h *held) part(after time.Duration) {
	h.parting.Do(func() {
		go func() {
			defer close(h.parted)
			time.Sleep(after) // the successor is another process: nothing here hears that it has decided
			part(h.session)
		}()
	})
}

func (h *held) Testament() []byte { return encodeKeys(h.term.Keys()) }

// encodeKeys is a testament: what the release program needs to take away what a wrapper that was killed has in etcd.
func encodeKeys(keys coord.TermKeys) []byte {
	raw, _ := json.Marshal(keys) // of these types it cannot fail
	return raw
}
