package coord

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Term is one time of leading an election, or of holding a slot of a semaphore, from the moment it was proven
// to the moment it is given up or lost.
//
// A Term says what its holder may believe, not what others do: a process that is stopped, or a machine
// that is frozen, can act after its term without having noticed. Whatever must not be written twice is
// protected by comparing Token where it is stored.
type Term struct {
	s     *Session
	claim *claim // of the key that the token is of; the term lasts as long
	queue *claim // of the candidate key beside a slot's; nil in an election, where it is the same
	keys  TermKeys
	slot  int
	once  sync.Once // of letting the session off
	goOn  sync.Once // of releasing in the background
	exit  sync.Once // of passing on the turn on a session that was given to a semaphore
}

// Context ends when the term does. Its cause wraps ErrTermLost, ErrSessionLost, ErrClosed or ErrResigned.
func (t *Term) Context() context.Context { return t.claim.ctx }

// Lost is closed when the term is over, for whatever reason.
func (t *Term) Lost() <-chan struct{} { return t.claim.ctx.Done() }

// Token is the fencing token: the create revision of the winning key. It rises with every term, over all
// elections of one etcd cluster. Of a semaphore it is that of the slot's key, and rises with every term of that
// slot: store the highest token seen by semaphore and slot.
func (t *Term) Token() uint64 { return t.keys.Token() }

// Slot is the slot of a semaphore that is held, from 0 to Max - 1; -1 for an election.
func (t *Term) Slot() int { return t.slot }

// Session is the session that the term lives on.
func (t *Term) Session() *Session { return t.s }

// Deadlines are the moments, on the session's clock, at which the term counts as lost and at which the
// work done under it must be over, if no verified renewal moves them first.
func (t *Term) Deadlines() (term, kill time.Duration) { return t.s.Deadlines() }

// Deadline is the second of Deadlines as wall-clock time, for people.
func (t *Term) Deadline() time.Time { return t.s.Deadline() }

// Renewed yields after the deadlines rose; see [Session.Renewed].
func (t *Term) Renewed() <-chan struct{} { return t.s.Renewed() }

// Check judges the term by the clock, without asking etcd: nil, or why it is over. Call it before each
// step that assumes leadership; what it says is true for the moment it is said.
func (t *Term) Check() error {
	_ = t.s.Check() // judges the clock, and ends the claim with the session
	return context.Cause(t.claim.ctx)
}

// Verify asks etcd, linearizably, whether the term still stands, and loses it if not. An error that does
// not wrap ErrTermLost or ErrSessionLost says that etcd could not be asked.
func (t *Term) Verify(ctx context.Context) error {
	if err := t.Check(); err != nil {
		return err
	}
	for _, c := range t.claims() {
		try, cancel := t.s.try(ctx)
		got, err := t.s.cli.Get(try, c.key)
		cancel()
		if err != nil {
			return fmt.Errorf("verify term: %w", err)
		}
		if why := c.mine(only(got)); why != nil {
			c.lose(why)
		}
	}
	return t.Check()
}

// claims are those of the keys that the term needs.
func (t *Term) claims() []*claim {
	if t.queue == nil {
		return []*claim{t.claim}
	}
	return []*claim{t.claim, t.queue}
}

// Cmp is a compare for the caller's own Txn: it holds while this term does. Of a semaphore it compares the slot's
// key, so it holds for as long as nobody else can have that slot.
func (t *Term) Cmp() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(t.claim.key), "=", t.claim.rev)
}

// Keys names what the term owns in etcd: enough for another process to end it.
func (t *Term) Keys() TermKeys { return t.keys }

// begin makes a won candidate a term.
func (c *candidate) begin(ctx context.Context) (*Term, error) {
	if err := c.s.begin(ctx, c.claim); err != nil {
		return nil, c.leave(err)
	}
	return &Term{s: c.s, claim: c.claim, keys: c.keys(), slot: -1}, nil
}

// begin counts a term on a claim that has won. From here on only proofs count for the session; where the last one
// is too old to begin with, the next is waited for.
func (s *Session) begin(ctx context.Context, c *claim) error {
	for {
		if err := context.Cause(ctx); err != nil {
			return err // won too late: the caller has gone
		}
		s.mu.Lock()
		now := s.clock()
		fresh := s.checkAt(now) == nil && now < s.proven+s.bounds.Term
		lost, risen := context.Cause(c.ctx), s.risen
		if fresh && lost == nil {
			if s.holds++; s.holds == 1 {
				s.watchdog.Reset(s.left(now)) // plain renewals count for nothing any more: it may have slept by one
			}
		}
		s.mu.Unlock()
		switch {
		case lost != nil:
			return lost
		case fresh:
			return nil
		}
		s.renewNow()
		select {
		case <-risen:
		case <-c.ctx.Done():
		case <-ctx.Done():
		}
	}
}

// during runs fn while the term lasts, and then gives it up: what every Do does.
func (t *Term) during(ctx context.Context, fn func(context.Context, *Term) error, release func(context.Context) error) error {
	inner, cancel := bind(ctx, t.Context())
	err := fn(inner, t)
	cancel()
	lost := t.Check()
	return errors.Join(lost, err, release(ctx))
}

// end gives the term up and says so in etcd. The first to call it lets the session off.
func (t *Term) end(ctx context.Context, how End) error {
	lost := context.Cause(t.claim.ctx)
	for _, c := range t.claims() {
		c.drop(ErrResigned)
	}
	t.once.Do(func() {
		t.s.mu.Lock()
		t.s.holds--
		t.s.mu.Unlock()
	})
	if how == EndReleased && (errors.Is(lost, ErrTermLost) || errors.Is(lost, ErrSessionLost)) {
		how = EndLost
	}
	return t.s.giveUp(ctx, t.keys, how)
}
