package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/supervise"
)

const (
	// leaveWithin is how long the way out of the queue may take once nobody waits for it any more. A key that
	// could not be deleted by then goes with its lease, which nobody renews.
	leaveWithin = 700 * time.Millisecond
	// partSession bounds the end of a session that nobody waits for.
	partSession = 2 * time.Second
	// askWithin bounds the question who holds what could not be had.
	askWithin = time.Second
	// requeueFirst and requeueMost are the pauses before a lost session is replaced.
	requeueFirst = 50 * time.Millisecond
	requeueMost  = 2 * time.Second
)

// errWaited is the cause of a wait that ran out.
var errWaited = errors.New("the wait ran out")

// candidacy acquires what there is to hold: it is the hold.Acquirer of "conch elect" and "conch sema". Each attempt has
// a session of its own, so that a session or a key that was lost in the queue costs the place in the queue and no more.
type candidacy struct {
	contest  contest
	kind     string // hold.KindElect or hold.KindSema
	settings cli.Settings
	session  coord.SessionOptions
	client   *clientv3.Client
	name     string
	identity string
	nonblock bool
	standby  bool      // it waits for more than to be let in: a look alone never takes anything
	until    time.Time // end of --wait; zero: none
	log      *slog.Logger
	progress *progress

	reached bool // a session was opened once

	// close may come while an Acquire that nobody waits for any more still runs.
	leaving sync.WaitGroup       // attempts, with their way out of the queue
	silent  atomic.Bool          // the way out was given up: etcd does not answer
	won     atomic.Pointer[held] // nil until won
}

// Acquire returns the hold, or why there is none; then nothing of ours is left in the queue.
func (c *candidacy) Acquire(ctx context.Context, placed func(testament []byte)) (hold.Hold, error) {
	if !c.until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, c.until, errWaited)
		defer cancel()
	}
	defer c.progress.stop()
	pause := requeueFirst
	for {
		began := time.Now()
		h, err := c.attempt(ctx, placed)
		if err == nil {
			return h, nil
		}
		// Who waits goes on waiting: an etcd that was there once and is away now is no reason to leave. One that
		// does not accept our password any more is: it was read at the start, and the next start reads it anew.
		away := c.reached && errors.Is(err, hold.ErrUnreachable) && !errors.Is(err, cli.ErrLogin)
		if ctx.Err() != nil || !lostPlace(err) && !away {
			return nil, c.explain(ctx, err)
		}

		// Lost while waiting. Whoever loses sessions in quick succession slows down.
		if time.Since(began) > requeueMost {
			pause = requeueFirst
		}
		c.log.Warn("queueing again", "name", c.name, "reason", err.Error())
		select {
		case <-time.After(pause):
			pause = min(2*pause, requeueMost)
		case <-ctx.Done():
			return nil, c.explain(ctx, context.Cause(ctx))
		}
	}
}

// lostPlace reports whether err ended this attempt only: a new session can queue again.
func lostPlace(err error) bool {
	return errors.Is(err, coord.ErrSessionLost) || errors.Is(err, coord.ErrTermLost) || errors.Is(err, coord.ErrUndecided)
}

// attempt is one session and one attempt on it.
func (c *candidacy) attempt(ctx context.Context, placed func(testament []byte)) (hold.Hold, error) {
	s, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	a, err := c.contest.begin(s, func(keys coord.TermKeys) { placed(encodeKeys(keys)) })
	if err != nil {
		part(s)
		return nil, err
	}
	c.reached = !c.nonblock
	term, err := c.pursue(ctx, s, a)
	if err != nil {
		return nil, err
	}
	h := &held{attempt: a, session: s, term: term, crowded: c.crowded, parted: make(chan struct{}), info: hold.Info{
		Kind: c.kind, Name: c.name, Rev: term.Token(), Lease: int64(s.Lease()), Slot: term.Slot(), TTL: s.TTL(),
	}}
	h.evictions = listen(c.client, h.info)
	c.won.Store(h)
	return h, nil
}

// crowded reports whether anybody waits, as far as one member knows: it asks no other, and decides nothing.
func (c *candidacy) crowded(ctx context.Context) bool {
	prefix, holders := c.contest.queue()
	got, err := c.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly(), clientv3.WithSerializable())
	return err == nil && got.Count > int64(holders)
}

// open grants a lease, which is also the proof that etcd can be reached. A wait bounds it only so far as to
// leave a moment for the question.
func (c *candidacy) open(ctx context.Context) (s *coord.Session, err error) {
	how := c.settings
	if !c.until.IsZero() {
		how.DialTimeout = min(how.DialTimeout, max(time.Until(c.until), askWithin))
	}
	err = how.Reach(withoutDeadline(ctx, errWaited), c.client, func(ctx context.Context) (err error) {
		if how.User != "" || len(how.TLS.Cert) > 0 {
			// Not only at the end, when the record of the hold cannot be written.
			if err := cli.Permitted(ctx, c.client, c.contest.needs()...); err != nil {
				return err
			}
		}
		s, err = coord.NewSession(ctx, c.client, c.session)
		return err
	})
	return s, err
}

// part ends a session, for a moment only: what cannot be revoked by then runs out by itself.
func part(s *coord.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), partSession)
	defer cancel()
	_ = s.Close(ctx)
}

// result is how an attempt ended.
type result struct {
	term *coord.Term
	err  error
}

// pursue makes the attempt, and its way out where nothing was won. Once ctx has ended it waits for that
// no longer than leaveWithin; a term that is won later still is given up at once.
func (c *candidacy) pursue(ctx context.Context, s *coord.Session, a attempt) (*coord.Term, error) {
	ended := make(chan result)
	gone := make(chan struct{})
	c.leaving.Go(func() {
		var r result
		r.term, r.err = c.compete(ctx, a)
		if r.err != nil {
			part(s) // what remains goes with the lease
		}
		select {
		case ended <- r:
		case <-gone:
			abandon(a, s, r.term)
		}
	})
	select {
	case r := <-ended:
		return r.term, r.err
	case <-ctx.Done():
	}
	late := time.NewTimer(leaveWithin)
	defer late.Stop()
	select {
	case r := <-ended:
		return r.term, r.err
	case <-late.C:
		close(gone)
		c.silent.Store(true)
		return nil, context.Cause(ctx)
	}
}

// abandon gives up what was won when nobody wanted it any more; nil: nothing was.
func abandon(a attempt, s *coord.Session, t *coord.Term) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), partSession)
	defer cancel()
	_ = a.release(ctx, t, coord.EndReleased)
	_ = s.Close(ctx)
}

// compete makes the attempt: with a look at most, where nobody wants to wait or the time for it is over already.
func (c *candidacy) compete(ctx context.Context, a attempt) (*coord.Term, error) {
	if c.standby || !c.nonblock && (c.until.IsZero() || time.Now().Before(c.until)) {
		return a.wait(ctx, c.identity)
	}
	look := withoutDeadline(ctx, errWaited)
	if !c.nonblock {
		// The wait is over. A look takes a round trip; to settle what a former hold left would take longer, and is
		// given up while there is time to leave the queue.
		var cancel context.CancelFunc
		look, cancel = context.WithTimeoutCause(look, leaveWithin/2, errWaited)
		defer cancel()
	}
	return a.try(look, c.identity)
}

// explain turns what ended an acquisition into an error with an exit code, for people.
func (c *candidacy) explain(ctx context.Context, err error) error {
	err = cli.Classify(c.contest.refusal(err))
	var why refused
	switch {
	case errors.Is(err, hold.ErrPermission):
		return lacking(c.client, c.settings, c.contest.needs(), err)
	case errors.Is(err, hold.ErrUnreachable), errors.As(err, &why):
		return err // also where the wait ran out meanwhile: it was not for want of the hold
	case errors.Is(context.Cause(ctx), errWaited):
		waited := c.until.Sub(c.progress.began).Round(time.Millisecond)
		return fmt.Errorf("%w: %s is not ours after %v%s%s", hold.ErrNotAcquired, c.name, waited, c.holders(), c.progress.unsettled())
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == hold.ErrNotAcquired:
		return fmt.Errorf("%w: %s is taken%s", hold.ErrNotAcquired, c.name, c.holders())
	}
	return err
}

// holders says who holds, as far as etcd tells in time.
func (c *candidacy) holders() string {
	if c.silent.Load() {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	return c.contest.holders(ctx, c.client)
}

// close ends what Acquire began. Only where the hold was given up, or never was, is the lease revoked: else something
// of the child may live, and the lease has to run out by itself.
func (c *candidacy) close(out supervise.Outcome) {
	if out.Status.Outcome == hold.ResultHookFailed {
		c.fence()
	}
	won := c.won.Load()
	if won != nil {
		won.evictions.stop()
	}
	released := out.Released || out.Status.Rev == 0
	if c.silent.Load() {
		_ = c.client.Close()
		return
	}
	done := make(chan struct{}) // closed late where etcd does not answer: the process has ended by then
	go func() {
		defer close(done)
		switch {
		case won == nil || !released:
		case out.Status.Rev == 0: // nobody heard of it in time
			abandon(won.attempt, won.session, won.term)
		default:
			<-won.parted // the keys are gone; a lease without keys runs out
		}
		c.leaving.Wait()
	}()
	select {
	case <-done:
	case <-time.After(askWithin):
	}
	_ = c.client.Close()
}

// withoutDeadline is ctx, but for an end whose cause is the wait that ran out.
func withoutDeadline(ctx context.Context, but error) context.Context {
	free, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, but) {
			cancel(cause)
		}
	})
	return free
}
