package locktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordination/internal/contract"
)

// flaw is what is wrong with a Locker.
type flaw string

const (
	none               flaw = "nothing"
	tokenRestarts      flaw = "the token begins anew after an end by time"
	tokenStays         flaw = "a lease of the same owner gets the same token again"
	tokenOfRenewal     flaw = "Renew gives a new token"
	staleRelease       flaw = "Release frees whatever lease there is"
	staleRenew         flaw = "Renew revives whatever lease there was"
	renewsTheSuccessor flaw = "Renew looks at the key and not at the token"
	releasesNothing    flaw = "Release does nothing"
	countsFromTheReply flaw = "ExpiresAt counts from the answer"
	promisesTooMuch    flaw = "ExpiresAt is past what was asked for"
	reentrant          flaw = "the owner is granted its own key again"
	falseOnError       flaw = "no answer is taken for a refusal"
	doneOnError        flaw = "no answer is taken for done"
	errorOnHeld        flaw = "a key that is held is an error"
	leaseWithFalse     flaw = "a refusal comes with a lease"
	takesAnything      flaw = "arguments are not looked at"
	foldsKeys          flaw = "keys are text"
	looksThenTakes     flaw = "Acquire looks first and takes then, in two steps"
	renewsNothing      flaw = "Renew tells the store nothing"
	cutsShort          flaw = "Renew by a shorter ttl takes back what was granted"
	endsEarly          flaw = "a lease ends before its time"
	neverEnds          flaw = "a lease does not end by itself"
	losesTheLease      flaw = "a lease is renewed only by the Locker that granted it"
	leaksOnLostReply   flaw = "an Acquire without an answer holds the key for ever"
	repeatsBlindly     flaw = "an Acquire whose answer was lost is sent again, and refused by itself"
	forgetsOwner       flaw = "Renew forgets the owner"
	wallClock          flaw = "ExpiresAt has lost its monotonic reading"
	staleReleaseFails  flaw = "a stale Release is an error"
	invalidOnError     flaw = "no answer is an invalid lease"
	leaksOnGivingUp    flaw = "an Acquire in a context that has ended holds the key for ever"
	heldAndError       flaw = "a lease comes with an error"
	losesTheSilent     flaw = "whoever was not answered has lost what it held"
	keepsTheEnd        flaw = "Renew gives the old ExpiresAt"
	sameTTLOnly        flaw = "Renew is for the first ttl again"
	endsInThePast      flaw = "ExpiresAt is before the request"
	stalls             flaw = "Renew takes longer than a short lease lasts"

	stallsForLong flaw = "Renew takes longer than a long lease lasts"

	// Sound, for all that.
	deaf        flaw = "a context is not looked at"
	adopts      flaw = "a call whose answer was lost is repeated, and knows its own"
	stallsFirst flaw = "the first Renew takes longer than a short lease lasts"
)

// store is what stands behind the Lockers of a test: locks in memory, and a way to them that can be slow, silent, or
// lose an answer.
type store struct {
	mu     sync.Mutex
	locks  map[string]*entry
	late   time.Duration
	lossy  bool // the next answer
	silent bool // nothing is done, and nobody answered

	stalled bool
}

type entry struct {
	last  uint64 // token
	token uint64 // 0: nobody's
	owner string
	until time.Time
	by    *locker
}

func newStore() *store { return &store{locks: map[string]*entry{}} }

// slow, silence and loseReply are what a Store can do.
func (s *store) slow(d time.Duration) (restore func()) {
	set := func(d time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late = d
	}
	set(d)
	return func() { set(0) }
}

func (s *store) silence() (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.silent = false
	}
}

func (s *store) isSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent
}

func (s *store) loseReply() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lossy = true
}

// trouble silences the store for a while, and loses answers, again and again.
func (s *store) trouble(ctx context.Context) {
	for ctx.Err() == nil {
		s.loseReply()
		restore := s.silence()
		wait(ctx, 100*time.Millisecond)
		restore()
		wait(ctx, time.Second)
	}
}

// wait waits, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

var errNoAnswer = errors.New("no answer")

// ask carries do out on a key, unless the store is silent, and answers unless that is lost.
func (s *store) ask(ctx context.Context, key string, do func(e *entry, now time.Time)) error {
	s.mu.Lock()
	late, lossy, silent := s.late, s.lossy, s.silent
	if silent {
		s.mu.Unlock()
		<-ctx.Done()
		return errNoAnswer
	}
	if ctx.Err() != nil {
		s.mu.Unlock()
		return errNoAnswer
	}
	s.lossy = false
	do(s.entry(key), time.Now())
	s.mu.Unlock()
	if late > 0 {
		time.Sleep(late) // the answer is under way
	}
	if lossy {
		return errNoAnswer
	}
	return nil
}

// entry finds or makes the entry of a key (mu held).
func (s *store) entry(key string) *entry {
	if s.locks[key] == nil {
		s.locks[key] = &entry{}
	}
	return s.locks[key]
}

// edit changes an entry past all that can be wrong on the way.
func (s *store) edit(key string, do func(e *entry)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(s.entry(key))
}

// locker is a Locker with a flaw.
type locker struct {
	*store
	flaw flaw
}

// try asks as often as this Locker does.
func (l *locker) try(ctx context.Context, key string, do func(e *entry, now time.Time)) error {
	if l.flaw == deaf && !l.isSilent() {
		ctx = context.WithoutCancel(ctx)
	}
	err := l.ask(ctx, l.name(key), do)
	if err != nil && (l.flaw == adopts || l.flaw == repeatsBlindly) {
		err = l.ask(ctx, l.name(key), do)
	}
	return err
}

// name is where a key stands.
func (l *locker) name(key string) string {
	if l.flaw == foldsKeys {
		return string([]rune(key)) // what is no UTF-8 is all the same to it
	}
	return key
}

func (l *locker) Acquire(ctx context.Context, key, owner string, ttl time.Duration) (coordination.Lease, bool, error) {
	if err := contract.Acquire(key, owner, ttl); err != nil && l.flaw != takesAnything {
		return coordination.Lease{}, false, err
	}
	lease := coordination.Lease{Key: key, Owner: owner, ExpiresAt: time.Now().Add(ttl)}
	held, taken := false, false
	if l.flaw == looksThenTakes {
		_ = l.ask(ctx, key, func(e *entry, now time.Time) { taken = e.token != 0 && now.Before(e.until) })
		time.Sleep(time.Millisecond) // others look meanwhile
	}
	err := l.try(ctx, key, func(e *entry, now time.Time) {
		again := l.flaw == adopts && lease.Token != 0 && e.token == lease.Token
		held = again || !taken && l.grant(e, &lease, now, ttl)
	})
	if err != nil {
		l.leak(ctx, key, held)
		return l.failed(err)
	}
	return l.answer(held, lease, ttl)
}

// leak leaves what nobody knows of to nobody, for ever.
func (l *locker) leak(ctx context.Context, key string, held bool) {
	if l.flaw == leaksOnLostReply && held || l.flaw == leaksOnGivingUp && ctx.Err() != nil {
		l.edit(key, func(e *entry) {
			e.last++
			e.token, e.until = e.last, time.Now().AddDate(1, 0, 0)
		})
	}
}

// grant takes an entry if that is free.
func (l *locker) grant(e *entry, lease *coordination.Lease, now time.Time, ttl time.Duration) bool {
	held := e.token != 0 && (now.Before(e.until) || l.flaw == neverEnds)
	if held && l.flaw != looksThenTakes && !(l.flaw == reentrant && e.owner == lease.Owner) {
		return false
	}
	switch {
	case l.flaw == tokenRestarts && e.token != 0:
		e.last = 0
	case l.flaw == tokenStays && e.owner == lease.Owner:
		e.last--
	}
	e.last++
	e.token, e.owner, e.by = e.last, lease.Owner, l
	if e.until = now.Add(ttl); l.flaw == endsEarly {
		e.until = now.Add(ttl / 2)
	}
	lease.Token = e.token
	return true
}

func (l *locker) Renew(ctx context.Context, lease coordination.Lease, ttl time.Duration) (coordination.Lease, bool, error) {
	if err := contract.Renew(lease, ttl); err != nil && l.flaw != takesAnything {
		return coordination.Lease{}, false, err
	}
	l.stall()
	next := lease
	next.ExpiresAt = time.Now().Add(ttl)
	held := false
	err := l.try(ctx, lease.Key, func(e *entry, now time.Time) {
		if held = l.owns(e, lease, now); held {
			l.extend(e, now.Add(ttl))
			next.Token = e.token
		}
	})
	switch {
	case err != nil && l.flaw == losesTheSilent:
		l.edit(lease.Key, func(e *entry) { e.token = 0 })
		fallthrough
	case err != nil:
		return l.failed(err)
	case l.flaw == forgetsOwner:
		next.Owner = ""
	case l.flaw == keepsTheEnd:
		next.ExpiresAt = lease.ExpiresAt
	case l.flaw == sameTTLOnly:
		next.ExpiresAt = time.Now().Add(min(ttl, long))
	}
	return l.answer(held, next, ttl)
}

// owns reports whether a renewal of lease is granted.
func (l *locker) owns(e *entry, lease coordination.Lease, now time.Time) bool {
	own, lasts := e.token != 0 && e.token == lease.Token, now.Before(e.until)
	switch l.flaw {
	case staleRenew:
		return own || e.last == lease.Token
	case renewsTheSuccessor:
		return e.token != 0 && lasts
	case losesTheLease:
		return own && lasts && e.by == l
	case neverEnds:
		return own
	}
	return own && lasts
}

// extend is what a renewal does to the store.
func (l *locker) extend(e *entry, until time.Time) {
	if l.flaw == tokenOfRenewal {
		e.last++
		e.token = e.last
	}
	if l.flaw != renewsNothing && (until.After(e.until) || l.flaw == cutsShort) {
		e.until = until
	}
}

// stall takes longer than a short lease lasts.
func (l *locker) stall() {
	l.mu.Lock()
	first := !l.stalled
	l.stalled = true
	l.mu.Unlock()
	switch {
	case l.flaw == stallsForLong:
		time.Sleep(2 * long) // what it is about
	case l.flaw == stalls, l.flaw == stallsFirst && first:
		time.Sleep(time.Second) // what it is about
	}
}

func (l *locker) Release(ctx context.Context, lease coordination.Lease) error {
	if err := lease.Validate(); err != nil && l.flaw != takesAnything {
		return err
	}
	own := false
	err := l.try(ctx, lease.Key, func(e *entry, _ time.Time) {
		own = e.token == lease.Token
		if (own || l.flaw == staleRelease) && l.flaw != releasesNothing {
			e.token = 0
		}
	})
	switch {
	case l.flaw == doneOnError:
		return nil
	case err != nil:
		_, _, err = l.failed(err)
		if err == nil {
			return errNoAnswer
		}
	case !own && l.flaw == staleReleaseFails:
		return errors.New("not held")
	}
	return err
}

// failed is what is made of no answer.
func (l *locker) failed(err error) (coordination.Lease, bool, error) {
	switch l.flaw {
	case falseOnError:
		return coordination.Lease{}, false, nil
	case invalidOnError:
		return coordination.Lease{}, false, coordination.ErrInvalidLease
	}
	return coordination.Lease{}, false, err
}

// answer is what the caller is told.
func (l *locker) answer(held bool, lease coordination.Lease, ttl time.Duration) (coordination.Lease, bool, error) {
	switch {
	case !held && l.flaw == errorOnHeld:
		return coordination.Lease{}, false, errors.New("held")
	case !held && l.flaw == leaseWithFalse:
		return coordination.Lease{Key: lease.Key}, false, nil
	case !held:
		return coordination.Lease{}, false, nil
	case l.flaw == heldAndError:
		return lease, true, errors.New("held")
	case l.flaw == countsFromTheReply:
		lease.ExpiresAt = time.Now().Add(ttl - ttl/10) // with a margin for clocks, for all that
	case l.flaw == promisesTooMuch:
		lease.ExpiresAt = lease.ExpiresAt.Add(ttl)
	case l.flaw == endsInThePast:
		lease.ExpiresAt = lease.ExpiresAt.Add(-2 * ttl)
	case l.flaw == wallClock:
		lease.ExpiresAt = lease.ExpiresAt.Round(0)
	}
	return lease, true, nil
}
