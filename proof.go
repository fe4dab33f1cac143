package coord

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Proof is one time for which a host is proven to be registered, without a break: its key was read, by a
// quorum, after a renewal of its lease that counts.
//
// Whoever works on the strength of it fences themselves when it ends: etcd may then still show the key, and
// after the lease time it shows it no more, so that peers take over. As with a [Term], a process that is
// stopped does not notice that it ended; it learns of it from Check.
type Proof struct {
	s       *Session
	bounds  Bounds
	claim   *claim
	keys    TermKeys
	renewed chan struct{}

	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	proven time.Duration // what the deadlines count from; stays when it is over
}

// Context ends when the host cannot be proven to be alive any more: fence yourself then. The cause wraps
// [ErrHostLost], or [ErrClosed] after Stop.
func (p *Proof) Context() context.Context { return p.ctx }

// Lost is closed when the proof is over.
func (p *Proof) Lost() <-chan struct{} { return p.ctx.Done() }

// Deadlines are the moments, on the clock of [LivenessOptions], at which the proof ends and at which the
// work under it must be over, if no verified renewal moves them first. They are final once it has ended.
func (p *Proof) Deadlines() (term, kill time.Duration) {
	proven, _ := p.judge()
	return proven + p.bounds.Term, proven + p.bounds.Kill
}

// Renewed yields after the deadlines rose. One value may stand for several renewals.
func (p *Proof) Renewed() <-chan struct{} { return p.renewed }

// Check judges the proof by the clock, now: nil, or why it is over.
func (p *Proof) Check() error {
	_, err := p.judge()
	return err
}

// Bounds is the arithmetic of the deadlines, from the granted lease time.
func (p *Proof) Bounds() Bounds { return p.bounds }

// Keys names what the registration owns in etcd: enough for another process to end it. Its Rev is the create
// revision of the host's key, which rises with each registration that did not find the key of the one before.
func (p *Proof) Keys() TermKeys { return p.keys }

// judge is Check and what the deadlines count from, in one step.
func (p *Proof) judge() (proven time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return p.proven, context.Cause(p.ctx)
	}
	_ = p.s.Check() // ends the claim with the session
	cause := context.Cause(p.claim.ctx)
	p.s.mu.Lock()
	p.proven = p.s.proven
	p.s.mu.Unlock()
	if cause == nil && p.s.clock() >= p.proven+p.bounds.Term {
		cause = ErrUnproven
	}
	if cause != nil {
		p.end(cause)
	}
	return p.proven, context.Cause(p.ctx)
}

// end ends the proof (mu held).
func (p *Proof) end(cause error) {
	if !errors.Is(cause, ErrClosed) {
		cause = fmt.Errorf("%w: %w", ErrHostLost, lossOf(cause))
	}
	p.cancel(cause)
}

// watch ends the proof when its time is over, whatever any request is doing.
func (p *Proof) watch() {
	for p.Check() == nil {
		term, _ := p.Deadlines()
		over := time.NewTimer(term - p.s.clock())
		select {
		case <-over.C:
		case <-p.claim.ctx.Done():
		}
		over.Stop()
	}
}

// Context is that of the present [Proof]. Where there is none it has ended already, with the reason as its
// cause, and a later call returns another one once the host is proven to be alive again; [HostLiveness.Proven]
// waits for that.
//
// Asking for it the first time makes renewals come every tenth of the lease time, with a read of the key, for
// good. A host that registered long before is not proven until the first of these is answered: ask right after
// registering, or use Proven.
func (h *HostLiveness) Context() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.prove().ctx
}

// Proven waits until the host is proven to be alive and returns the present proof. An error is the end of ctx
// or of the registration.
func (h *HostLiveness) Proven(ctx context.Context) (*Proof, error) {
	for {
		h.mu.Lock()
		p, news := h.prove(), h.news
		h.mu.Unlock()
		if p.Check() == nil {
			return p, nil
		}
		select {
		case <-news:
		case <-h.ctx.Done():
			return nil, fmt.Errorf("prove host: %w", context.Cause(h.ctx))
		case <-ctx.Done():
			return nil, fmt.Errorf("prove host: %w: %w", context.Cause(ctx), p.Check())
		}
	}
}

// prove returns the present proof, or one that is over (mu held).
func (h *HostLiveness) prove() *Proof {
	r := h.on
	h.fenced = true
	h.demand()
	if h.proof != nil && h.proof.Check() == nil {
		return h.proof
	}

	p := &Proof{renewed: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	switch {
	case h.closed || h.ctx.Err() != nil:
		p.end(context.Cause(h.ctx))
	case r == nil:
		p.end(h.why)
	default:
		p.s, p.bounds, p.claim = r.s, r.s.bounds, r.claim
		p.keys = TermKeys{Key: h.key, Rev: r.claim.rev, Lease: r.s.lease}
		if p.Check() == nil {
			h.wg.Go(p.watch)
		}
	}
	h.proof = p
	return p
}

// demand makes the session prove, where proofs are asked for (mu held).
func (h *HostLiveness) demand() {
	if h.fenced && h.on != nil && h.demanded != h.on.s {
		h.demanded = h.on.s
		h.on.s.demand()
	}
}

// renews tells whoever waits for it that the deadlines rose, or that there is a registration again.
func (h *HostLiveness) renews() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.news)
	h.news = make(chan struct{})
	if h.proof == nil {
		return
	}
	select {
	case h.proof.renewed <- struct{}{}:
	default:
	}
}
