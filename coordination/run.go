package coordination

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrRunLeaseLost is the cause of the context that [Run] gives its function when the lease is not held any more, or
	// cannot be shown to be, and is wrapped in what Run returns then. The text is that of the interface that this
	// package follows.
	ErrRunLeaseLost = errors.New("agentflow: run lease lost")
	// ErrHeld is returned by [Run] when somebody holds the key. The function was not called.
	ErrHeld = errors.New("coordination: held")

	errNotHeld  = errors.New("the locker says that it is not held")
	errNoAnswer = errors.New("it was not renewed in time")
)

const (
	// renewals is how many fit into a ttl.
	renewals = 3
	// spared is the part of a ttl, in its tenths, that is left to the function when its context ends.
	spared = 1
	// retries is how many times a renewal that failed is tried within the time between two.
	retries = 8
	// releaseMost bounds a release.
	releaseMost = 10 * time.Second
)

// Run acquires key, calls fn, and releases after fn has returned. Meanwhile it renews the lease every third of ttl.
//
// fn's context ends with ctx, and with a cause that wraps [ErrRunLeaseLost] when the locker says that the lease is not
// held, or when nine tenths of it are over and no renewal was answered. fn has to return then: it has a tenth of ttl
// until somebody else may be given the key. Run waits for it, however long it takes, and renews for as long as it can,
// also after ctx has ended. fn gets the lease as it was granted: its token is that of every renewal.
//
// The error is fn's, joined by ErrRunLeaseLost if the lease was lost before fn returned, and by what went wrong with the
// release; then the key is free after ttl. If the key was held, it is [ErrHeld], and fn was not called. fn may panic:
// the lease is released all the same.
func Run(ctx context.Context, locker Locker, key, owner string, ttl time.Duration, fn func(context.Context, Lease) error) (err error) {
	lease, held, err := locker.Acquire(ctx, key, owner, ttl)
	switch {
	case err != nil:
		return fmt.Errorf("acquire %q: %w", key, err)
	case !held:
		return fmt.Errorf("%w: %q", ErrHeld, key)
	}
	work, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	r := &renewing{locker: locker, ttl: ttl, lease: lease, lose: lose, stop: make(chan struct{}), done: make(chan struct{})}
	go r.loop(context.WithoutCancel(ctx))
	defer func() {
		lost := r.end()
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(ttl, releaseMost))
		defer cancel()
		if releaseErr := locker.Release(release, r.lease); releaseErr != nil {
			releaseErr = fmt.Errorf("release %q: %w", key, releaseErr)
			err = errors.Join(err, lost, releaseErr)
			return
		}
		err = errors.Join(err, lost)
	}()
	return fn(work, lease)
}

// renewing keeps one lease. Until done is closed only its loop touches lease and lost.
type renewing struct {
	locker Locker
	ttl    time.Duration
	lease  Lease // the latest
	lost   error // nil until lost
	lose   context.CancelCauseFunc
	stop   chan struct{}
	done   chan struct{}
}

// end stops the renewals and says why the lease was lost, if it was: also where that could not be noticed before fn
// returned, because this process was paused.
func (r *renewing) end() error {
	close(r.stop)
	<-r.done
	if r.lost == nil && r.lease.Expired() {
		r.over(errNoAnswer)
	}
	return r.lost
}

// answer is that of one renewal.
type answer struct {
	lease Lease
	held  bool
	err   error
}

// loop renews until it is stopped or the lease is lost. A lease that is lost stays lost: a later answer, if there were
// one, could not undo what a successor did. The deadline does not depend on a renewal that returns.
func (r *renewing) loop(ctx context.Context) {
	defer close(r.done)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	every := r.ttl / renewals
	next, deadline := time.NewTimer(every), time.NewTimer(r.left())
	defer next.Stop()
	defer deadline.Stop()
	var asked chan answer // nil: nothing is asked
	failed := errNoAnswer
	for {
		select {
		case <-r.stop:
			return
		case <-deadline.C:
		case <-next.C:
			asked = r.renew(ctx, min(every, r.left()))
		case got := <-asked:
			asked = nil
			switch {
			case got.err == nil && !got.held:
				r.over(errNotHeld)
				return
			case got.err == nil:
				r.lease = got.lease
				next.Reset(every)
			default:
				failed = fmt.Errorf("%w: %w", errNoAnswer, got.err)
				next.Reset(every / retries)
			}
		}
		// Timers stand still while the machine sleeps: the clocks decide, whatever it was that came.
		if r.left() <= 0 {
			r.over(failed)
			return
		}
		deadline.Reset(r.left())
	}
}

// left is how long fn may go on without a renewal.
func (r *renewing) left() time.Duration { return r.lease.Remaining() - r.ttl*spared/10 }

// renew asks in the background. A Locker that does not return when its context ends keeps that goroutine, and no more.
func (r *renewing) renew(ctx context.Context, within time.Duration) chan answer {
	got, lease := make(chan answer, 1), r.lease
	go func() {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		lease, held, err := r.locker.Renew(ctx, lease, r.ttl)
		got <- answer{lease, held, err}
	}()
	return got
}

// over ends fn's context.
func (r *renewing) over(why error) {
	r.lost = fmt.Errorf("%w: %w", ErrRunLeaseLost, why)
	r.lose(r.lost)
}
