package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ElectionOptions configure an [Election].
type ElectionOptions struct {
	// Key names the election; its candidates are the keys under Key + "/". Required.
	Key string
	// TTL is the lease time in seconds, for a session of the election's own. Default 10.
	TTL int
	// Identity is what a campaign with an empty identity writes.
	Identity string
	// Logger gets renewals that failed, at debug level. nil discards.
	Logger *slog.Logger

	// Settle makes a successor wait until a holder that lost its key early has surely ended. Off by default.
	Settle SettleOptions
	// Waiting is called by the campaigning goroutine whenever what it waits for changes. It must not
	// block, and must not close the election.
	Waiting func(Waiting)
	// Placed is called by the campaigning goroutine as soon as a key of the campaign is known to exist, whether it
	// queues, settles or has won: [TermKeys.Release] of what it is told takes all of it away, so another process
	// can do that for one that died. Between the first request and its reply there is no call yet. It must not
	// block.
	Placed func(TermKeys)
	// Grace and Margin are those of the election's own session; see [SessionOptions].
	Grace, Margin time.Duration
	// Clock is that of the election's own session. Default [Now].
	Clock func() time.Duration
	// Metrics is told of campaigns, and of what the election's own session goes through.
	Metrics Metrics
}

// Candidate is a key in the queue of an election.
type Candidate struct {
	Key      string
	Identity string // as the candidate wrote it: hostile until escaped
	Token    uint64 // create revision
	Lease    clientv3.LeaseID
}

// CandidateOf reads a candidate's key, for who reads a queue in a request of its own. nil is the zero Candidate.
func CandidateOf(kv *mvccpb.KeyValue) Candidate {
	if kv == nil {
		return Candidate{}
	}
	return Candidate{Key: string(kv.Key), Identity: string(kv.Value), Token: uint64(kv.CreateRevision), Lease: clientv3.LeaseID(kv.Lease)}
}

// Election is one contender for one key. It is wire-compatible with etcd's concurrency.Election and with
// etcdctl elect: they queue with it, see it lead, and are seen.
//
// One Election leads or campaigns at most once at a time. Two Elections of one session for one key count
// as two contenders although they share a key name: they take turns inside the process.
type Election struct {
	s      *Session
	owned  bool
	opts   ElectionOptions
	prefix string
	pool   *ElectionPool // that it was borrowed from; nil where it was not

	refused atomic.Bool // see candidate

	ctx    context.Context // ends with Close; a borrowed one's with that of the pool
	cancel context.CancelCauseFunc
	calls  sync.WaitGroup // campaigns under way

	mu   sync.Mutex
	busy bool  // a call is campaigning
	term *Term // leading, or resigning until that is definite
}

// NewElection makes an election with a session of its own. ctx bounds the grant of its lease only.
func NewElection(ctx context.Context, cli *clientv3.Client, o ElectionOptions) (*Election, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	s, err := NewSession(ctx, cli, SessionOptions{
		TTL: time.Duration(o.TTL) * time.Second, Grace: o.Grace, Margin: o.Margin, Logger: o.Logger, Clock: o.Clock,
		Metrics: o.Metrics,
	})
	if err != nil {
		return nil, err
	}
	e := s.election(o)
	e.owned = true
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	return e, nil
}

// Election makes an election on this session. Its Close leaves the session alone.
func (s *Session) Election(o ElectionOptions) (*Election, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	e := s.election(o)
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	return e, nil
}

// election is one whose end is the caller's to give.
func (s *Session) election(o ElectionOptions) *Election {
	return &Election{s: s, opts: o, prefix: prefixOf(o.Key)}
}

func (o ElectionOptions) validate() error {
	switch {
	case strings.Trim(o.Key, "/") == "":
		return fmt.Errorf("%w: key %q: want a name", ErrInvalidOption, o.Key)
	case o.TTL < 0:
		return fmt.Errorf("%w: ttl %d: want seconds, at least 1", ErrInvalidOption, o.TTL)
	case (o.Settle.Open == "") != (o.Settle.Last == ""):
		return fmt.Errorf("%w: settle: want both keys or none", ErrInvalidOption)
	}
	return nil
}

// Session is the session that the election lives on.
func (e *Election) Session() *Session { return e.s }

// Campaign blocks until this contender leads, and then returns nil; or until ctx ends, the session is
// lost, or etcd refuses. On an error no key of the campaign is left. ctx bounds the campaign only, not
// the term. While the term lasts, Campaign returns nil at once and the identity stays as it was.
func (e *Election) Campaign(ctx context.Context, identity string) error {
	_, err := e.CampaignTerm(ctx, identity)
	return err
}

// CampaignTerm is Campaign, and returns the term.
func (e *Election) CampaignTerm(ctx context.Context, identity string) (*Term, error) {
	if t, err := e.start(ctx); t != nil || err != nil {
		return t, err
	}
	ctx, cancel := bind(ctx, e.ctx)
	defer cancel()
	if err := e.s.enter(ctx, e.prefix); err != nil {
		e.stop(nil)
		return nil, fmt.Errorf("campaign for %q: %w", e.opts.Key, err)
	}
	c := e.s.candidate(e, cmp.Or(identity, e.opts.Identity))
	if err := c.campaign(ctx); err != nil {
		return nil, e.fail(c, err)
	}
	return e.lead(ctx, c)
}

// TryCampaign leads if nobody does and nobody waits, and returns whether it leads. It never queues and
// leaves nothing behind. Where settling is on and the last holder may not have ended, it settles first,
// which can take that holder's TTL.
//
// An answer takes one round trip; the first refusal of an Election that does not settle takes two, since that is when it
// asks whether a key of a nested election stands in the way, which is an error.
func (e *Election) TryCampaign(ctx context.Context, identity string) (bool, error) {
	if t, err := e.start(ctx); t != nil || err != nil {
		return t != nil, err
	}
	ctx, cancel := bind(ctx, e.ctx)
	defer cancel()
	if !e.s.tryEnter(e.prefix) {
		e.stop(nil)
		return false, nil
	}
	c := e.s.candidate(e, cmp.Or(identity, e.opts.Identity))
	won, err := c.try(ctx)
	switch {
	case err != nil:
		return false, e.fail(c, err)
	case !won:
		e.exit()
		e.stop(nil)
		return false, nil
	}
	_, err = e.lead(ctx, c)
	return err == nil, err
}

// start marks the election as campaigning, or returns the term that it has. Who has given up already asks nobody.
func (e *Election) start(ctx context.Context) (*Term, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ctx.Err() != nil:
		return nil, ErrClosed
	case e.busy:
		return nil, ErrAlreadyCampaigning
	case e.term != nil && e.term.Check() == nil:
		return e.term, nil
	case e.term != nil:
		// The term is over, and its keys are still to be tidied up: Resign does that.
		return nil, fmt.Errorf("campaign for %q: resign first: %w", e.opts.Key, e.term.Check())
	}
	err := context.Cause(ctx)
	if err == nil {
		err = e.pool.engage(e)
	}
	if err != nil {
		return nil, fmt.Errorf("campaign for %q: %w", e.opts.Key, err)
	}
	e.busy = true
	e.calls.Add(1)
	e.s.demand() // for as long as this contender has a key
	return nil, nil
}

// stop ends what start began.
func (e *Election) stop(t *Term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy, e.term = false, t
	if t == nil {
		e.s.content()
		e.pool.disengage(e)
	}
	e.calls.Done()
}

// fail ends a campaign that did not win.
func (e *Election) fail(c *candidate, err error) error {
	e.s.handBack(c.left, c.keys(), err, e.exit)
	e.stop(nil)
	err = fmt.Errorf("campaign for %q: %w", e.opts.Key, err)
	e.opts.Metrics.campaign(e.opts.Key, &c.attempt, err)
	return err
}

// lead begins the term of a candidate that has won.
func (e *Election) lead(ctx context.Context, c *candidate) (*Term, error) {
	t, err := c.begin(ctx)
	if err != nil {
		return nil, e.fail(c, err)
	}
	e.opts.Metrics.campaign(e.opts.Key, &c.attempt, nil)
	e.stop(t)
	return t, nil
}

// Term is the current term; nil while this contender does not lead.
func (e *Election) Term() *Term {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.term == nil || e.term.Check() != nil {
		return nil
	}
	return e.term
}

// Resign ends the term, deleting its key and closing its record, and returns nil when that is definite,
// or when there is no term. Call it when the work done under the term is over: a successor may start at
// once. After a loss it tidies up, which lets a settling successor start, and returns nil if it could.
//
// On an error the outcome is unknown: the term is over for this contender, and Resign may be called again.
// A session with nothing else on it then stops renewing, so that the key lives no longer than its TTL; one
// with more on it goes on trying by itself.
func (e *Election) Resign(ctx context.Context) error { return e.resign(ctx, EndReleased) }

// ResignAs is Resign, recording how the term ended.
func (e *Election) ResignAs(ctx context.Context, how End) error { return e.resign(ctx, how) }

func (e *Election) resign(ctx context.Context, how End) error {
	e.mu.Lock()
	t := e.term
	e.mu.Unlock()
	if t == nil {
		return nil
	}
	if err := t.end(ctx, how); err != nil {
		if !e.s.muteIfIdle() {
			t.goOn.Do(func() { e.s.releaseOn(t.keys, how) })
		}
		return err
	}
	e.mu.Lock()
	mine := e.term == t // a second Resign at the same time has done the same
	if mine {
		e.term = nil
		e.pool.disengage(e)
	}
	e.mu.Unlock()
	if mine {
		e.s.content()
		e.exit()
	}
	return nil
}

// exit passes the turn on.
func (e *Election) exit() { e.s.exit(e.prefix) }

// Do campaigns, runs fn while leading, and resigns after fn has returned: the shortest correct use. fn's
// context ends with ctx and with the term; fn has to return when it does, and Do waits for it. The result
// is fn's error, or the loss if the term was lost before fn returned.
func (e *Election) Do(ctx context.Context, identity string, fn func(context.Context, *Term) error) error {
	t, err := e.CampaignTerm(ctx, identity)
	if err != nil {
		return err
	}
	return t.during(ctx, fn, e.Resign)
}

// Close ends a campaign that is under way, resigns, and, where the session is the election's own, closes
// that. It is idempotent. On an election borrowed from a pool it does nothing: the pool's Close does.
func (e *Election) Close() error {
	if e.pool != nil {
		return nil
	}
	return e.close()
}

func (e *Election) close() error {
	e.quiesce()
	ctx, cancel := e.s.cleanup()
	defer cancel()
	err := e.Resign(ctx)
	if !e.owned {
		return err
	}
	// A revoked lease takes the key with it, so a resignation in doubt is decided by the revoke.
	if closeErr := e.s.Close(ctx); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	return nil
}

// quiesce ends the campaigns under way, and waits for them.
func (e *Election) quiesce() {
	e.mu.Lock() // so that none begins meanwhile
	e.cancel(ErrClosed)
	e.mu.Unlock()
	e.calls.Wait()
}
