package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// DefaultPoolTTLSec is the lease time of a pool's sessions, in seconds. It is longer than an election's of its
// own: a session that many keys depend on, or that lives for long, is better kept through a trouble of etcd's.
const DefaultPoolTTLSec = 30

// PoolOptions configure an [ElectionPool].
type PoolOptions struct {
	// TTLSec is the lease time of the sessions, in whole seconds. Default 30.
	TTLSec int
	// Logger gets renewals that failed, at debug level. nil discards.
	Logger *slog.Logger

	// SharedSession puts all elections on one session: one lease and one renewal, whatever the number of keys,
	// and one fate. A loss of that session ends every term. Off by default: then each key has its own, for as
	// long as the pool lives.
	SharedSession bool
	// Identity is what a campaign with an empty identity writes.
	Identity string
	// Settle gives the settle options of a key's election; see [ElectionOptions]. nil: no election settles.
	Settle func(key string) SettleOptions
	// Grace and Margin are those of the sessions; see [SessionOptions].
	Grace, Margin time.Duration
	// Clock is that of the sessions. Default [Now].
	Clock func() time.Duration
	// Metrics is told of campaigns, and of what the sessions go through.
	Metrics Metrics
}

// PoolStats is what a pool has at one moment.
type PoolStats struct {
	SessionCount int  // sessions that live
	Closed       bool // Close was called
	TTLSec       int  // lease time asked for, in seconds

	Active   int // borrowed elections that campaign, lead, or have not resigned since
	Replaced int // sessions so far that were found dead and replaced
}

// ElectionPool lends elections on sessions that it keeps: the first borrow of a key grants a lease, every later
// one costs etcd nothing.
//
// Two elections borrowed for one key are two contenders, as they are on any one session: one leads, the other is
// refused or waits its turn in this process. So keep the election for as long as it leads, and call Resign on it:
// one that is forgotten while it leads goes on leading until the pool is closed. Close on a borrowed election
// does nothing; it does not resign. An election stays with its session: where that was lost, borrow again.
//
// A pool is safe for concurrent use.
type ElectionPool struct {
	cli  *clientv3.Client
	opts PoolOptions
	bad  error // what is wrong with the options

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // grants under way, and sessions that wait for their end

	mu       sync.Mutex
	loans    map[string]*loan
	active   map[*Election]struct{}
	retired  map[*Session]struct{} // dead and replaced, not closed yet
	replaced int

	closeOnce sync.Once
	closeErr  error
}

// NewElectionPool makes a pool. It asks etcd nothing; the client stays the caller's. Options that cannot be
// meant, as a negative TTLSec, are reported by Election.
func NewElectionPool(cli *clientv3.Client, o PoolOptions) *ElectionPool {
	p := &ElectionPool{
		cli: cli, opts: o,
		loans: map[string]*loan{}, active: map[*Election]struct{}{}, retired: map[*Session]struct{}{},
	}
	p.opts.TTLSec = cmp.Or(o.TTLSec, DefaultPoolTTLSec)
	if p.opts.TTLSec < 0 || p.opts.TTLSec > int(maxTTL/time.Second) {
		p.bad = fmt.Errorf("%w: ttl %d: want seconds, from 1 to %d", ErrInvalidOption, o.TTLSec, int(maxTTL/time.Second))
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// Election borrows an election for key, on the pool's session for it. Where that session is dead, or there is none
// yet, a lease is granted, once for all who ask meanwhile; an error of the grant is theirs, and the next borrow
// asks again. ctx bounds this call only: neither the session nor the other borrowers depend on it.
//
// After Close the error is ErrClosed.
func (p *ElectionPool) Election(ctx context.Context, key string) (*Election, error) {
	o := ElectionOptions{
		Key: key, Identity: p.opts.Identity, Logger: p.opts.Logger, Grace: p.opts.Grace, Margin: p.opts.Margin,
		Clock: p.opts.Clock, Metrics: p.opts.Metrics,
	}
	if p.opts.Settle != nil {
		o.Settle = p.opts.Settle(key)
	}
	if err := cmp.Or(p.bad, o.validate()); err != nil {
		return nil, fmt.Errorf("borrow election of %q: %w", key, err)
	}
	name := ""
	if !p.opts.SharedSession {
		name = prefixOf(key)
	}
	s, err := p.borrow(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("borrow election of %q: %w", key, err)
	}
	e := s.election(o)
	e.pool, e.ctx, e.cancel = p, p.ctx, func(error) {}
	return e, nil
}

// Stats tells what the pool has now.
func (p *ElectionPool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := PoolStats{
		Closed: p.ctx.Err() != nil, TTLSec: p.opts.TTLSec, Active: len(p.active), Replaced: p.replaced,
	}
	for _, l := range p.loans {
		if l.alive() {
			st.SessionCount++
		}
	}
	return st
}

// engage notes that a borrowed election begins to campaign, which it may not once the pool is closed. An
// election that was not borrowed has no pool.
func (p *ElectionPool) engage(e *Election) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() == nil {
		p.active[e] = struct{}{}
	}
	return context.Cause(p.ctx)
}

// disengage notes that a borrowed election neither campaigns nor leads any more.
func (p *ElectionPool) disengage(e *Election) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.active, e)
}

// Close ends campaigns that are under way, resigns every term, and closes all sessions, which revokes their
// leases. It goes through all of them whatever fails, waits for them, and returns what went wrong, joined. Call
// it when the work done under the terms is over. It is idempotent.
func (p *ElectionPool) Close() error {
	p.closeOnce.Do(func() {
		p.mu.Lock()
		p.cancel(ErrClosed)
		var active []*Election
		for e := range p.active {
			active = append(active, e)
		}
		p.mu.Unlock()

		// A term that settles is resigned, so that its record is closed; the keys of the others go with the lease.
		p.closeErr = each(active, func(e *Election) error {
			e.quiesce()
			if !e.opts.Settle.on() {
				return nil
			}
			return e.close()
		})
		p.wg.Wait()
		p.mu.Lock()
		sessions := p.sessions()
		p.mu.Unlock()
		p.closeErr = errors.Join(p.closeErr, each(sessions, func(s *Session) error { return s.Close(context.Background()) }))
	})
	return p.closeErr
}

// sessions are all that are not closed yet (p.mu held, no grant under way).
func (p *ElectionPool) sessions() []*Session {
	var all []*Session
	for _, l := range p.loans {
		all = append(all, l.s)
	}
	for s := range p.retired {
		all = append(all, s)
	}
	return all
}

// atOnce is how many elections or sessions are closed at the same time.
const atOnce = 64

// each calls do for every item, a few dozen at a time, and joins the errors.
func each[T any](items []T, do func(T) error) error {
	errs := make([]error, len(items))
	free := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, item := range items {
		free <- struct{}{}
		wg.Go(func() {
			errs[i] = do(item)
			<-free
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
