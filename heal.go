package coord

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Healing, by what the key was lost by:
//
//	key deleted          put it again on the same lease, at once
//	lease not found      a new lease and the key on it, at once
//	etcd silent          the session goes on renewing until its own deadline; then a new lease is asked for
//	                     until there is one, and the key moves to it if it is still there
//	another process's    it is left alone: the session goes on, and the key is put when the other's is gone
//
// Attempts that fail are repeated with pauses that double from 100 ms to 30 s. One goroutine does all of it.

const (
	// healFirst and healMost bound the pause after an attempt that failed.
	healFirst = 100 * time.Millisecond
	healMost  = 30 * time.Second
	// calm is how long a registration has to last for its loss to be healed without a pause before it, and
	// quickMost is the longest such pause: who is thrown out again and again slows down, and not for long.
	calm      = time.Second
	quickMost = 2 * time.Second
	// lookEvery is how many lease times pass between two looks at a key that nothing is proven of: the watch of
	// a member that was stopped is silent for ever.
	lookEvery = 6
)

// run heals until Stop, or until nothing can be healed any more.
func (h *HostLiveness) run(r *registration) {
	defer close(h.done)
	quick := backoff{low: healFirst, high: quickMost}
	for {
		why := lossOf(h.stay(r))
		if h.ctx.Err() != nil {
			return
		}
		if h.final(why) {
			h.retire(r.s)
			return
		}
		lost := h.o.Clock()
		h.say(LivenessHealing, why)
		h.log.Warn("host lost", "lease", leaseText(r.s.lease), "reason", why.Error())
		if lost-r.since >= calm {
			quick.reset()
		} else {
			quick.pause(h.ctx)
		}

		again := h.heal(r)
		if again == nil {
			if h.ctx.Err() == nil {
				h.final(why) // the client was closed
			}
			return
		}
		r = again
		gap := h.o.Clock() - lost
		h.say(LivenessHealthy, nil)
		h.renews()
		h.o.Metrics.healed(gap)
		h.log.Info("host registered again", "lease", leaseText(r.s.lease), "gap", gap)
	}
}

// stay returns why the registration ended.
func (h *HostLiveness) stay(r *registration) error {
	look := time.NewTicker(lookEvery * r.s.bounds.TTL)
	defer look.Stop()
	for {
		select {
		case <-r.claim.ctx.Done():
			return context.Cause(r.claim.ctx)
		case <-h.ctx.Done():
			return context.Cause(h.ctx)
		case <-r.s.Renewed():
			h.renews()
		case <-look.C:
			h.look(r)
		}
	}
}

// look reads the key, where no verified renewal does.
func (h *HostLiveness) look(r *registration) {
	h.mu.Lock()
	fenced := h.fenced
	h.mu.Unlock()
	if fenced {
		return
	}
	try, cancel := r.s.try(h.ctx)
	defer cancel()
	got, err := h.cli.Get(try, h.key)
	if err != nil {
		return // the renewals see to that
	}
	if why := r.claim.mine(only(got)); why != nil {
		r.claim.lose(why)
	}
}

// lossOf is a loss without the words that are for candidates.
func lossOf(cause error) error {
	for _, known := range []error{ErrKeyGone, ErrKeyReplaced} {
		if errors.Is(cause, known) {
			return known
		}
	}
	return cause
}

// final ends the registration where its loss is for good, and reports whether it did.
func (h *HostLiveness) final(why error) bool {
	if h.cli.Ctx().Err() != nil {
		why = ErrClientClosed
	} else if !h.o.NoHeal {
		return false
	}
	why = fmt.Errorf("%w: %w", ErrHostLost, why)
	h.cancel(why)
	h.say(LivenessStopped, why)
	return true
}

// heal registers again, with what is left of the lost registration r. It is nil after Stop, and where the
// client was closed; then nothing of any attempt is left.
func (h *HostLiveness) heal(r *registration) *registration {
	s := r.s
	r.claim.drop(ErrClosed)
	var stale []*Session // their leases go once the key is on another one: it must not vanish before it has moved
	defer func() {
		for _, old := range stale {
			h.retire(old)
		}
	}()
	pause := backoff{low: healFirst, high: healMost}
	for h.ctx.Err() == nil && h.cli.Ctx().Err() == nil {
		if s != nil && s.Check() != nil {
			stale, s = append(stale, s), nil
		}
		again, err := h.attempt(&s)
		switch {
		case h.ctx.Err() != nil: // then nothing that was put may stay
		case err == nil:
			return again
		default:
			h.failed(s, err, s == r.s, &pause)
		}
	}
	h.mu.Lock()
	h.on = nil
	h.mu.Unlock()
	if s != nil {
		stale = append(stale, s)
	}
	return nil
}

// failed takes in how an attempt failed and waits for as long as the next one has to. A lease that went with
// the key is not waited for.
func (h *HostLiveness) failed(s *Session, err error, first bool, pause *backoff) {
	var dup *DuplicateHostError
	if errors.As(err, &dup) {
		h.yield(s, dup, pause)
		return
	}
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.lose(ErrLeaseGone)
	}
	gone := s != nil && errors.Is(s.Check(), ErrLeaseGone) // by this attempt, or by a renewal meanwhile
	if !gone || !first {
		h.log.Debug("healing failed", "err", err)
		h.say(LivenessHealing, err)
		pause.pause(h.ctx)
	}
}

// attempt is one try to register, on the session that there is or on a new one.
func (h *HostLiveness) attempt(s **Session) (*registration, error) {
	if *s == nil {
		fresh, err := h.open(h.ctx)
		if err != nil {
			return nil, err
		}
		*s = fresh
	}
	return h.put(h.ctx, *s)
}

// yield leaves another process's key alone until it is gone, or the next pause is over.
func (h *HostLiveness) yield(s *Session, dup *DuplicateHostError, pause *backoff) {
	if h.say(LivenessDuplicate, dup) {
		h.log.Warn("host not registered", "reason", dup.Error())
	}
	ctx, cancel := context.WithCancel(h.ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer cancel()
		awaitEnd(ctx, s, h.key, dup.seen+1, dup.stands)
	}()
	pause.pause(ctx)
	cancel()
	<-gone
}

// retire revokes a lease that is not needed any more, in the background of all but Stop.
func (h *HostLiveness) retire(s *Session) {
	h.wg.Go(func() {
		ctx, cancel := s.cleanup()
		defer cancel()
		err := s.Close(ctx)
		h.mu.Lock()
		defer h.mu.Unlock()
		if err == nil {
			delete(h.leases, s.lease)
		} else if h.ctx.Err() != nil {
			h.leftover = fmt.Errorf("stop host: %w", err)
		}
	})
}

func leaseText(id clientv3.LeaseID) string { return fmt.Sprintf("%x", int64(id)) }
