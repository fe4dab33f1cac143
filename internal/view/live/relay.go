package live

import (
	"cmp"
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
)

// FollowOptions configure [Follow] and [FollowAll].
type FollowOptions struct {
	// StaleAfter is how long there may be no proof that nothing was missed. Default 6 s, at least 1 s. While all is well a
	// proof costs a small read each half of it.
	StaleAfter time.Duration
	// Closely has a Follow call Change for each look, with no changes where there is nothing else to tell: when who holds an
	// office comes to have a record of its own, or who waited in front has gone.
	Closely bool
	// Stale is called when that time has passed: what was told may be out of date. why is what went wrong last; nil where
	// that is not known. Fresh is called when that is over, and all was told that there was to tell. Neither is called at
	// the same time as anything else. Both may be nil.
	Stale func(why error)
	Fresh func()
}

const defaultStaleAfter = 6 * time.Second

// pupil learns of keys from a relay, in one goroutine. An error ends the following.
type pupil interface {
	// list: these are all keys, at a revision.
	list(ctx context.Context, all []*mvccpb.KeyValue, rev int64) error
	// events: that is what a revision did.
	events(ctx context.Context, events []*clientv3.Event, rev int64) error
	// prove: that is all, up to a revision.
	prove(ctx context.Context, rev int64) error
	// hints are watches whose news is a reason to ask for a proof, and no more. A nil one has none.
	hints() [2]clientv3.WatchChan
	// unhint: one of them has ended.
	unhint()
}

// relay hands what coord.Follow says to a pupil, and keeps count of how old it is.
type relay struct {
	FollowOptions
	news  chan func(context.Context) error // what the pupil has to do next
	ask   chan struct{}                    // full when a proof was asked for
	at    time.Time                        // when it was proven that nothing was missing
	why   error                            // what went wrong since
	stale bool                             // Stale was called last
}

func newRelay(o FollowOptions) *relay {
	o.StaleAfter = cmp.Or(o.StaleAfter, defaultStaleAfter)
	return &relay{FollowOptions: o, news: make(chan func(context.Context) error), ask: make(chan struct{}, 1), at: time.Now()}
}

// within is how long one answer may take.
func (r *relay) within() time.Duration { return r.StaleAfter / 4 }

// span is where keys are followed: a prefix, or up to a key behind it.
type span struct{ from, end string }

// run has p learn of the keys within a span until ctx ends, or it has had enough.
func (r *relay) run(ctx context.Context, client *clientv3.Client, within span, p pupil) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		o := coord.FollowOptions{Prefix: within.from, End: within.end, StaleAfter: r.StaleAfter, Ask: r.ask}
		ended <- coord.Follow(ctx, client, o, lecture{ctx, r, p})
	}()
	err := r.attend(ctx, ended, p)
	cancel()
	if err == nil {
		err = <-ended // that is why it came to an end
	} else {
		<-ended
	}
	return err
}

// attend does what there is to do until ctx ends, or the following, or somebody has had enough: then it is an error.
func (r *relay) attend(ctx context.Context, ended chan error, p pupil) error {
	look := time.NewTicker(r.within())
	defer look.Stop()
	for {
		var err error
		hints := p.hints()
		select {
		case do := <-r.news:
			err = do(ctx)
		case _, open := <-hints[0]:
			r.hinted(p, open)
		case _, open := <-hints[1]:
			r.hinted(p, open)
		case <-look.C:
			r.check()
		case why := <-ended:
			ended <- why
			return nil
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// hinted asks for a proof. A watch that has ended is of no use any more.
func (r *relay) hinted(p pupil, open bool) {
	if !open {
		p.unhint()
		return
	}
	select {
	case r.ask <- struct{}{}:
	default:
	}
}

// trouble takes in what went wrong.
func (r *relay) trouble(err error) {
	r.why = err
	r.check()
}

// check calls Stale if it is time to.
func (r *relay) check() {
	if r.stale || time.Since(r.at) < r.StaleAfter {
		return
	}
	r.stale = true
	if r.Stale != nil {
		r.Stale(r.why)
	}
}

// proven takes in that nothing was missing at a moment, and all was told.
func (r *relay) proven(at time.Time) {
	r.at, r.why = at, nil
	if !r.stale || time.Since(at) >= r.StaleAfter {
		return
	}
	r.stale = false
	if r.Fresh != nil {
		r.Fresh()
	}
}

// lecture is the coord.FollowHandler of a relay.
type lecture struct {
	ctx context.Context
	*relay
	pupil pupil
}

func (l lecture) do(what func(context.Context) error) {
	select {
	case l.news <- what:
	case <-l.ctx.Done():
	}
}

func (l lecture) List(all []*mvccpb.KeyValue, rev int64) {
	l.do(func(ctx context.Context) error { return l.pupil.list(ctx, all, rev) })
}

func (l lecture) Events(events []*clientv3.Event, rev int64) {
	l.do(func(ctx context.Context) error { return l.pupil.events(ctx, events, rev) })
}

func (l lecture) Fresh(at time.Time, rev int64) {
	l.do(func(ctx context.Context) error {
		if err := l.pupil.prove(ctx, rev); err != nil {
			return err
		}
		l.proven(at)
		return nil
	})
}

func (l lecture) Trouble(err error) {
	l.do(func(context.Context) error { l.trouble(err); return nil })
}
