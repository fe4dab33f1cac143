package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// SessionOptions configure a [Session]. The zero value is usable.
type SessionOptions struct {
	// TTL is the lease time to ask for: whole seconds, at least 1 s. Default 10 s. etcd may grant more
	// (its floor is 1.5 election timeouts, 2 s by default); what it granted is used in all arithmetic.
	TTL time.Duration
	// Grace is the time between being told of a loss and the deadline by which the work has to be over.
	// Default 5 s; cut to what the granted TTL has room for, see [Bounds].
	Grace time.Duration
	// Margin is what scheduling, killing and reaping may take. Default 500 ms.
	Margin time.Duration
	// Logger gets renewals that failed, at debug level. nil discards.
	Logger *slog.Logger
	// Clock is the clock of the deadlines. Default [Now]; tests put a fake one here.
	Clock func() time.Duration
	// Metrics is told of renewals and of the loss.
	Metrics Metrics

	// Refresh, where it is not 0, makes a plain session, for what must be seen to be alive and excludes nobody:
	// it renews this often, and reads nothing unless somebody campaigns or leads on it. It counts as lost only when the TTL,
	// less the margin and what clock rates may differ by, has passed since the last acknowledged renewal;
	// Grace is not used up to then. Less than half of the TTL; a third is usual.
	Refresh time.Duration
}

// Session is one etcd lease and the proof that it lives.
//
// Invariants:
//
//	(S1) proven only rises, and only to the send time of the Grant or of a renewal after whose reply a
//	     linearizable read, answered in the same raft term, showed a key of this lease (keepalive.go).
//	(S2) Once lost, always lost: no later reply changes that. A lost session renews nothing.
//	(S3) The loss does not depend on an answer: a watchdog and every Check judge the clock alone.
//	(S4) Whatever ends a session, its lease is revoked, or left to its TTL where etcd cannot be reached.
type Session struct {
	cli    *clientv3.Client
	lease  clientv3.LeaseID
	bounds Bounds
	clock  func() time.Duration
	log    *slog.Logger
	tell   Metrics
	hub    *hub

	refresh time.Duration // 0, or how often a plain session renews

	ctx     context.Context // ends with the session, by loss or Close; its cause says which
	cancel  context.CancelCauseFunc
	kick    chan struct{} // renew now
	renewed chan struct{} // proven rose: holds one value, for one listener
	wg      sync.WaitGroup

	mu        sync.Mutex
	proven    time.Duration // (S1)
	risen     chan struct{} // closed, and another one made, whenever proven rises: for any number of listeners
	plain     time.Duration // send time of the last acknowledged renewal, verified or not
	holds     int           // terms that run: while there is one, only proven counts
	demands   int           // who wants proofs: campaigns, terms, and who asked for them
	kept      bool          // a stream renews it by itself (keep.go)
	late      bool          // the stream waited too long for it
	attempts  int64         // candidates so far
	closed    bool          // no goroutine may be added any more
	muted     bool          // renew no more: let the TTL bound what could not be resigned
	claims    map[*claim]struct{}
	paced     time.Time // when one more claim is watched soon, were there never two at once (claim.go)
	unwatched int       // claims whose watch waits for a renewal
	offices   map[string]*office
	seen      store

	watchdog  *time.Timer
	closeOnce sync.Once
	closeErr  error
}

// store is what replies said of etcd's history.
type store struct {
	cluster  uint64
	revision int64
}

// NewSession grants a lease and keeps it alive. ctx bounds the grant only: the session lives until Close
// or until it is lost. The client stays the caller's.
func NewSession(ctx context.Context, cli *clientv3.Client, o SessionOptions) (*Session, error) {
	clock := o.Clock
	if clock == nil {
		clock = Now
	}
	asked, err := NewBounds(o.TTL, o.Margin, o.Grace)
	if err == nil && (o.Refresh < 0 || 2*o.Refresh >= asked.TTL) {
		err = fmt.Errorf("%w: refresh %v: want less than half of the ttl %v", ErrInvalidOption, o.Refresh, asked.TTL)
	}
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}

	sent, granted, err := grant(ctx, cli, clock, asked.TTL)
	if err != nil {
		return nil, fmt.Errorf("grant lease: %w", err)
	}
	if granted.TTL < int64(asked.TTL/time.Second) {
		return nil, fmt.Errorf("grant lease: etcd granted %d s, less than the %v asked for", granted.TTL, asked.TTL)
	}

	s := &Session{
		cli: cli, lease: granted.ID, clock: clock, log: orDiscard(o.Logger), tell: o.Metrics, refresh: o.Refresh,
		kick: make(chan struct{}, 1), renewed: make(chan struct{}, 1),
		bounds: bounds(time.Duration(granted.TTL)*time.Second, asked.Margin, cmp.Or(o.Grace, DefaultGrace)),
		proven: sent, risen: make(chan struct{}), claims: map[*claim]struct{}{}, offices: map[string]*office{},
	}
	s.seen.note(granted.ResponseHeader)
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.hub = joinHub(cli)
	s.mu.Lock()
	s.watchdog = time.AfterFunc(s.left(clock()), s.judge)
	s.mu.Unlock()
	s.wg.Go(s.run)
	return s, nil
}

// run is the session's one goroutine of its own: it renews until the session ends, and then leaves.
func (s *Session) run() {
	stop := context.AfterFunc(s.cli.Ctx(), func() { s.lose(ErrClientClosed) })
	s.renewals()
	stop()
	s.mu.Lock()
	s.watchdog.Stop() // it is not set again: the session is over
	s.mu.Unlock()
	s.hub.leave()
	if cause := context.Cause(s.ctx); errors.Is(cause, ErrSessionLost) {
		s.tell.lost(cause)
	}
}

// grant asks for a lease until ctx ends. A member that accepts and never answers costs one try of a second,
// then the next is asked, with more patience each time; a lease whose reply was lost has no key and lapses.
//
// The deadline counts from before the request: when etcd began to count is unknown, but not earlier.
func grant(ctx context.Context, cli *clientv3.Client, clock func() time.Duration, ttl time.Duration) (sent time.Duration, granted *clientv3.LeaseGrantResponse, err error) {
	for patience := time.Second; ; patience += patience / 2 {
		sent = clock()
		try, cancel := context.WithTimeout(ctx, patience)
		granted, err = cli.Grant(try, int64(ttl/time.Second))
		late := try.Err() != nil && ctx.Err() == nil
		cancel()
		if !late {
			return sent, granted, err
		}
	}
}

func orDiscard(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}

// Lease is the id of the lease.
func (s *Session) Lease() clientv3.LeaseID { return s.lease }

// TTL is the lease time that etcd granted.
func (s *Session) TTL() time.Duration { return s.bounds.TTL }

// Bounds is the arithmetic of this session, from the granted TTL.
func (s *Session) Bounds() Bounds { return s.bounds }

// Deadlines are the moments, on the session's clock, at which the session counts as lost and at which
// nothing that depends on it may be alive, if no verified renewal moves them first. They only rise.
func (s *Session) Deadlines() (term, kill time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proven + s.bounds.Term, s.proven + s.bounds.Kill
}

// Deadline is the kill deadline as a wall-clock time, for people. It is as good as the conversion: use
// Deadlines and the session's clock to decide.
func (s *Session) Deadline() time.Time {
	_, kill := s.Deadlines()
	return time.Now().Add(kill - s.clock())
}

// Renewed yields after the deadlines rose. One value may stand for several renewals.
func (s *Session) Renewed() <-chan struct{} { return s.renewed }

// Context ends when the session does; its cause wraps ErrSessionLost or ErrClosed.
func (s *Session) Context() context.Context { return s.ctx }

// Lost is closed when the session is lost or closed.
func (s *Session) Lost() <-chan struct{} { return s.ctx.Done() }

// Check judges the session by the clock, now, and returns why it is over, or nil. A process that was
// stopped learns of its loss here, whether or not a timer has fired yet.
func (s *Session) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.check()
}

// check is Check with s.mu held: it is what every decision to go on starts with.
func (s *Session) check() error { return s.checkAt(s.clock()) }

func (s *Session) checkAt(now time.Duration) error {
	if s.ctx.Err() == nil && s.left(now) <= 0 {
		s.lose(ErrUnproven)
	}
	return context.Cause(s.ctx)
}

// base is what the loss counts from. A plain renewal may keep an idle session going; once something is
// held, only proofs count (s.mu held).
func (s *Session) base() time.Duration {
	if s.holds > 0 {
		return s.proven
	}
	return max(s.proven, s.plain)
}

// lose ends the session for good (S2). The first cause stays.
func (s *Session) lose(why error) { s.cancel(fmt.Errorf("%w: %w", ErrSessionLost, why)) }

// proves reports whether renewals are to be verified: not on a plain session that nothing depends on (s.mu held).
func (s *Session) proves() bool { return s.refresh == 0 || s.holds > 0 || s.demands > 0 }

// pause is the time from now to the renewal that follows one which began at began. Plain ones come together, at
// instants that are a twentieth of their period apart, so that those of many sessions share packets.
func (s *Session) pause(began, now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := began + s.bounds.Renew
	if !s.proves() {
		next = began + s.refresh
		next -= next % max(s.refresh/20, 1)
	}
	return max(0, next-now)
}

// demand makes a plain session verify its renewals, at the pace of one that holds, until as many calls of
// content were made. It moves nothing that the loss counts from.
func (s *Session) demand() {
	s.mu.Lock()
	s.demands++
	s.mu.Unlock()
	if s.refresh > 0 {
		s.renewNow()
	}
}

func (s *Session) content() {
	s.mu.Lock()
	s.demands--
	s.mu.Unlock()
}

// left is the time from now until the session is lost if nothing renews it (s.mu held).
func (s *Session) left(now time.Duration) time.Duration {
	limit := s.bounds.Term
	if s.refresh > 0 && s.holds == 0 {
		limit = s.bounds.Kill // nobody has to be stopped before
	}
	return s.base() + limit - now
}

// judge is what the watchdog's timer runs: it ends the session when its time is over, whatever any request
// is doing (S3), and else sets the timer to when that will be.
func (s *Session) judge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.clock(); s.checkAt(now) == nil {
		s.watchdog.Reset(s.left(now))
	}
}

// note takes in the header of a reply to a linearizable request that was sent when floor was the highest
// revision seen, and reports whether etcd's history went back since (s.mu held).
func (s *Session) note(h header, floor int64) error {
	if h.GetClusterId() != s.seen.cluster || h.GetRevision() < floor {
		s.lose(ErrStoreRegressed)
		return ErrStoreRegressed
	}
	s.seen.note(h)
	return nil
}

// header is the part of etcd's response header that is used here.
type header interface {
	GetClusterId() uint64
	GetMemberId() uint64
	GetRevision() int64
	GetRaftTerm() uint64
}

func (st *store) note(h header) {
	st.cluster = h.GetClusterId()
	st.revision = max(st.revision, h.GetRevision())
}

// floor is the revision that a linearizable reply to a request sent now must not be below.
func (s *Session) floor() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.revision
}

// try bounds one request: long enough for an election of etcd's, short enough that a member which
// accepts and never answers costs one try. ctx's own end still counts, and so does the session's.
func (s *Session) try(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.tryFor())
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// tryFor is the bound of one request.
func (s *Session) tryFor() time.Duration { return min(s.bounds.TTL/4, 5*time.Second) }

// cleanup is the context of what tidies up. It outlives the caller's context, but has a bound of its own:
// what cannot be undone in that time goes with the lease.
func (s *Session) cleanup() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.tryFor())
}

// muteIfIdle stops the renewals of a session that has nothing on it, without ending it, and reports whether
// it did: an undecided key then lives no longer than the TTL.
func (s *Session) muteIfIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := len(s.claims) == 0
	s.muted = s.muted || idle
	return idle
}

// isMuted reports whether the session renews no more, and only waits for its end.
func (s *Session) isMuted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.muted
}

// spawn runs work as a goroutine of the session, and then done; on a closed session only done.
func (s *Session) spawn(done, work func()) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.wg.Go(func() { defer done(); work() })
	}
	s.mu.Unlock()
	if closed {
		done()
	}
}

// Close ends the session and revokes its lease, which deletes every key on it. It waits for the session's
// goroutines and returns what went wrong; then the lease is left to its TTL. ctx bounds the revoke
// together with a bound of its own; where ctx has ended already the revoke is still tried once. Only the
// first call does anything.
func (s *Session) Close(ctx context.Context) error {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.cancel(ErrClosed)
		s.wg.Wait()
		s.closeErr = s.revoke(ctx)
	})
	return s.closeErr
}

func (s *Session) revoke(ctx context.Context) error {
	pause := backoff{low: s.bounds.TTL / 100, high: s.bounds.TTL / 10}
	for {
		try, cancel := s.cleanup()
		_, err := s.cli.Revoke(try, s.lease)
		cancel()
		if err == nil || errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}
		if definite(err) || s.clock() > s.granted()+s.bounds.TTL || !pause.pause(ctx) {
			return fmt.Errorf("revoke lease %x, left to its ttl of %v: %w", int64(s.lease), s.bounds.TTL, err)
		}
	}
}

// granted is when the lease was last heard of (a lease older than its TTL has expired by itself).
func (s *Session) granted() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.proven, s.plain)
}
