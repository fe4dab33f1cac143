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
	// askWithin bounds the question who holds what could not be had.
	askWithin = time.Second
	// requeueFirst and requeueMost are the pauses before a lost session is replaced.
	requeueFirst = 50 * time.Millisecond
	requeueMost  = 2 * time.Second
)

// errWaited is the cause of a wait that ran out.
var errWaited = errors.New("the wait ran out")

// office acquires an office: it is the hold.Acquirer of "conch elect". Each attempt has a session of its
// own, so that a session or a key that was lost in the queue costs the place in the queue and no more.
type office struct {
	settings  cli.Settings
	client    *clientv3.Client
	name      string
	identity  string
	options   coord.ElectionOptions
	nonblock  bool
	until     time.Time     // end of --wait; zero: none
	vacantFor time.Duration // --campaign-after; 0: campaign at once
	log       *slog.Logger
	progress  *progress

	reached bool // a session was opened once

	// close may come while an Acquire that nobody waits for any more still runs.
	leaving sync.WaitGroup                 // campaigns, with their way out of the queue
	silent  atomic.Bool                    // the way out was given up: etcd does not answer
	won     atomic.Pointer[coord.Election] // nil until won
}

// Acquire returns the hold, or why there is none; then nothing of ours is left in the queue.
func (o *office) Acquire(ctx context.Context, placed func(testament []byte)) (hold.Hold, error) {
	o.options.Placed = func(keys coord.TermKeys) { placed(encodeKeys(keys)) }
	if !o.until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, o.until, errWaited)
		defer cancel()
	}
	defer o.progress.stop()
	pause := requeueFirst
	for {
		began := time.Now()
		h, err := o.attempt(ctx)
		if err == nil {
			return h, nil
		}
		// Who waits goes on waiting: an etcd that was there once and is away now is no reason to leave. One that
		// does not accept our password any more is: it was read at the start, and the next start reads it anew.
		away := o.reached && errors.Is(err, hold.ErrUnreachable) && !errors.Is(err, cli.ErrLogin)
		if ctx.Err() != nil || !lostPlace(err) && !away {
			return nil, o.explain(ctx, err)
		}

		// Lost while waiting. Whoever loses sessions in quick succession slows down.
		if time.Since(began) > requeueMost {
			pause = requeueFirst
		}
		o.log.Warn("queueing again", "name", o.name, "reason", err.Error())
		select {
		case <-time.After(pause):
			pause = min(2*pause, requeueMost)
		case <-ctx.Done():
			return nil, o.explain(ctx, context.Cause(ctx))
		}
	}
}

// lostPlace reports whether err ended this attempt only: a new session can queue again.
func lostPlace(err error) bool {
	return errors.Is(err, coord.ErrSessionLost) || errors.Is(err, coord.ErrTermLost) || errors.Is(err, coord.ErrUndecided)
}

// attempt is one session and one campaign on it.
func (o *office) attempt(ctx context.Context) (hold.Hold, error) {
	el, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	o.reached = !o.nonblock
	term, err := o.campaign(ctx, el)
	if err != nil {
		return nil, err
	}
	o.won.Store(el)
	return &held{el: el, term: term, info: hold.Info{
		Kind: hold.KindElect, Name: o.name, Rev: term.Token(), Lease: int64(el.Session().Lease()),
		Slot: -1, TTL: el.Session().TTL(),
	}}, nil
}

// open grants a lease, which is also the proof that etcd can be reached. A wait bounds it only so far as to
// leave a moment for the question.
func (o *office) open(ctx context.Context) (*coord.Election, error) {
	s := o.settings
	if !o.until.IsZero() {
		s.DialTimeout = min(s.DialTimeout, max(time.Until(o.until), askWithin))
	}
	var el *coord.Election
	err := s.Reach(withoutDeadline(ctx, errWaited), o.client, func(ctx context.Context) (err error) {
		if s.User != "" || len(s.TLS.Cert) > 0 {
			// Not only at the end, when the record of the hold cannot be written.
			if err := cli.Permitted(ctx, o.client, o.needs()...); err != nil {
				return err
			}
		}
		el, err = coord.NewElection(ctx, o.client, o.options)
		return err
	})
	return el, err
}

// needs are what may not be refused us.
func (o *office) needs() []cli.Need { return leadNeeds(o.name, o.options.Settle.Open != "") }

// result is how a campaign ended.
type result struct {
	term *coord.Term
	err  error
}

// campaign runs the campaign, and its way out where it was not won. Once ctx has ended it waits for that
// no longer than leaveWithin; a term that is won later still is given up at once.
func (o *office) campaign(ctx context.Context, el *coord.Election) (*coord.Term, error) {
	ended := make(chan result)
	gone := make(chan struct{})
	o.leaving.Go(func() {
		var r result
		r.term, r.err = o.elect(ctx, el)
		if r.err != nil {
			_ = el.Close() // what remains goes with the lease
		}
		select {
		case ended <- r:
		case <-gone:
			_ = el.Close()
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
		o.silent.Store(true)
		return nil, context.Cause(ctx)
	}
}

// elect campaigns: with a look at most, where nobody wants to wait or the time for it is over already.
func (o *office) elect(ctx context.Context, el *coord.Election) (*coord.Term, error) {
	if o.vacantFor > 0 {
		return o.standIn(ctx, el)
	}
	if !o.nonblock && (o.until.IsZero() || time.Now().Before(o.until)) {
		return el.CampaignTerm(ctx, o.identity)
	}
	look := withoutDeadline(ctx, errWaited)
	if !o.nonblock {
		// The wait is over. A look takes a round trip; to settle what a former hold left would take longer, and is
		// given up while there is time to leave the queue.
		var cancel context.CancelFunc
		look, cancel = context.WithTimeoutCause(look, leaveWithin/2, errWaited)
		defer cancel()
	}
	return o.try(look, el)
}

// try takes the office if it is free, and never queues for it.
func (o *office) try(ctx context.Context, el *coord.Election) (*coord.Term, error) {
	won, err := el.TryCampaign(ctx, o.identity)
	switch {
	case err != nil:
		return nil, err
	case !won:
		return nil, hold.ErrNotAcquired
	}
	if term := el.Term(); term != nil {
		return term, nil
	}
	return nil, fmt.Errorf("%w: between winning and starting", coord.ErrSessionLost)
}

// explain turns what ended an acquisition into an error with an exit code, for people.
func (o *office) explain(ctx context.Context, err error) error {
	err = cli.Classify(err)
	switch {
	case errors.Is(err, hold.ErrPermission):
		return lacking(o.client, o.settings, o.needs(), err)
	case errors.Is(err, hold.ErrUnreachable):
		return err // also where the wait ran out meanwhile: it was not for want of the office
	case errors.Is(context.Cause(ctx), errWaited):
		waited := o.until.Sub(o.progress.began).Round(time.Millisecond)
		return fmt.Errorf("%w: %s is not ours after %v%s%s", hold.ErrNotAcquired, o.name, waited, o.holder(), o.progress.unsettled())
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, hold.ErrNotAcquired):
		return fmt.Errorf("%w: %s is taken%s", hold.ErrNotAcquired, o.name, o.holder())
	}
	return err
}

// holder says who holds the office, as far as etcd tells in time.
func (o *office) holder() string {
	if o.silent.Load() {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	queue, err := coord.ListCandidates(ctx, o.client, o.options.Key)
	if err != nil || len(queue) == 0 {
		return ""
	}
	return ": " + standingText(queue[0], nil)
}

// close ends what Acquire began. Only where the hold was given up, or never was, is the lease revoked: else something
// of the child may live, and the lease has to run out by itself.
func (o *office) close(out supervise.Outcome) {
	if out.Status.Outcome == hold.ResultHookFailed {
		o.fence()
	}
	released := out.Released || out.Status.Rev == 0
	if o.silent.Load() {
		_ = o.client.Close()
		return
	}
	done := make(chan struct{}) // closed late where etcd does not answer: the process has ended by then
	go func() {
		defer close(done)
		if won := o.won.Load(); won != nil && released {
			_ = won.Close() // the key is gone; a lease without keys runs out
		}
		o.leaving.Wait()
	}()
	select {
	case <-done:
	case <-time.After(askWithin):
	}
	_ = o.client.Close()
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
