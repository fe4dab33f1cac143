package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Acquire blocks until a slot is held, and returns its term; or until ctx ends, the session is lost, or etcd refuses.
// On an error nothing is left in etcd. ctx bounds the call only, not the term.
//
// While anything under another Max is there, a candidate, a slot or a record of a hold that nobody knows to be over,
// the error wraps [ErrOtherMax], unless that is to be ignored.
func (m *Semaphore) Acquire(ctx context.Context, identity string) (*Term, error) {
	c, err := m.join(ctx, identity)
	if err != nil {
		return nil, fmt.Errorf("acquire slot of %q: %w", m.opts.Key, err)
	}
	if err := c.acquire(ctx); err != nil {
		return nil, m.fail(c, err)
	}
	return m.begin(ctx, c)
}

// TryAcquire holds a slot if one is free now, and reports whether it does. It never queues and leaves nothing
// behind; nor is it refused while a slot is free and nobody waits, whoever else tries at the same time. Where
// settling is on and only slots are free whose last holders may not have ended, it settles first.
func (m *Semaphore) TryAcquire(ctx context.Context, identity string) (t *Term, held bool, err error) {
	v, err := m.survey(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("acquire slot of %q: %w", m.opts.Key, err)
	}
	if !m.room(v) || m.s != nil && !m.s.tryEnter(m.queue.own) {
		return nil, false, nil
	}
	c, err := m.seat(ctx, identity)
	if err != nil {
		return nil, false, fmt.Errorf("acquire slot of %q: %w", m.opts.Key, err)
	}
	won, err := c.try(ctx, v)
	switch {
	case err != nil:
		return nil, false, m.fail(c, err)
	case !won:
		return nil, false, m.drop(c)
	}
	t, err = m.begin(ctx, c)
	return t, err == nil, err
}

// join takes the turn, where there is one to take, and makes a seat.
func (m *Semaphore) join(ctx context.Context, identity string) (*seat, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err // who has given up already asks nobody
	}
	if m.s != nil {
		if err := m.s.enter(ctx, m.queue.own); err != nil {
			return nil, err
		}
	}
	return m.seat(ctx, identity)
}

// seat makes an attempt, on a session of its own unless one was given.
func (m *Semaphore) seat(ctx context.Context, identity string) (*seat, error) {
	s := m.s
	if s == nil {
		var err error
		if s, err = NewSession(ctx, m.cli, SessionOptions{
			TTL: m.opts.TTL, Grace: m.opts.Grace, Margin: m.opts.Margin, Logger: m.opts.Logger, Clock: m.opts.Clock,
			Metrics: m.opts.Metrics,
		}); err != nil {
			return nil, err
		}
	}
	c := &seat{
		attempt: s.attempt(candidateKey(m.queue.own, s.lease), cmp.Or(identity, m.opts.Identity), m.opts.Waiting),
		m:       m, slot: -1, settlers: map[int]*settler{}, answers: map[int]ttlAnswer{},
	}
	if placed := m.opts.Placed; placed != nil {
		c.placed = func() { placed(c.keys()) }
	}
	return c, nil
}

// begin begins the term of a seat that has won.
func (m *Semaphore) begin(ctx context.Context, c *seat) (*Term, error) {
	if err := c.s.begin(ctx, c.hold); err != nil {
		return nil, m.fail(c, c.leave(err))
	}
	m.opts.Metrics.campaign(m.opts.Key, &c.attempt, nil)
	return &Term{s: c.s, claim: c.hold, queue: c.claim, keys: c.keys(), slot: c.slot}, nil
}

// fail ends an attempt that did not win.
func (m *Semaphore) fail(c *seat, err error) error {
	if m.s != nil {
		m.s.handBack(c.left, c.keys(), err, func() { m.s.exit(m.queue.own) })
	} else if closeErr := m.drop(c); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	err = fmt.Errorf("acquire slot of %q: %w", m.opts.Key, err)
	m.opts.Metrics.campaign(m.opts.Key, &c.attempt, err)
	return err
}

// drop ends what seat began, where nothing was put or a revoke takes it away.
func (m *Semaphore) drop(c *seat) error {
	if m.s != nil {
		m.s.exit(m.queue.own)
		return nil
	}
	ctx, cancel := c.s.cleanup()
	defer cancel()
	return c.s.Close(ctx)
}

// Release ends a term of this semaphore, freeing its slot, and returns nil when that is definite. Call it when the work
// done under the term is over: a successor may start at once. After a loss it tidies up. It may be called again, and
// for a nil term does nothing. ctx bounds it, but it is tried once where ctx has ended.
//
// On an error the outcome is unknown: the term is over for its holder. What is left goes with the lease, or with the
// next call.
func (m *Semaphore) Release(ctx context.Context, t *Term) error {
	return m.ReleaseAs(ctx, t, EndReleased)
}

// ReleaseAs is Release, recording how the term ended.
func (m *Semaphore) ReleaseAs(ctx context.Context, t *Term, how End) error {
	if t == nil {
		return nil
	}
	err := t.end(ctx, how)
	switch {
	case m.s == nil:
		closeErr := t.s.Close(ctx)
		if closeErr == nil && t.keys.Open == "" {
			return nil // a revoke takes the keys with it, so it decides what was in doubt
		}
		return errors.Join(err, closeErr)
	case err == nil:
		t.exit.Do(func() { m.s.exit(m.queue.own) })
	case !m.s.muteIfIdle():
		t.goOn.Do(func() { m.s.releaseOn(t.keys, how) })
	}
	return err
}

// Do acquires a slot, runs fn, and releases after fn has returned: the shortest correct use. fn's context ends with
// ctx and with the term; fn has to return when it does, and Do waits for it. The result is fn's error, or the loss
// if the term was lost before fn returned.
func (m *Semaphore) Do(ctx context.Context, identity string, fn func(context.Context, *Term) error) error {
	t, err := m.Acquire(ctx, identity)
	if err != nil {
		return err
	}
	return t.during(ctx, fn, func(ctx context.Context) error { return m.Release(ctx, t) })
}
