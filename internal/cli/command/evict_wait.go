package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
	"github.com/go-coord/coord/internal/view/live"
)

const (
	// reactWithin is how long a holder may show no reaction before that is worth a warning: longer than most commands
	// take to end.
	reactWithin = 10 * time.Second
	// leaseSlack is what etcd may take to notice that a lease has run out.
	leaseSlack = time.Second
)

// eviction is one run of "conch evict". What happens to the name is told by a follower that began before the holder was
// asked, so no change is missed in between. All of it happens in run, but for stale.
type eviction struct {
	*evictFlags
	env    cli.Env
	client *clientv3.Client
	name   view.Name
	log    *slog.Logger

	seat  view.Seat        // whose hold is to end
	after *view.Succession // who comes next
	asked time.Time
	now   view.Handover // how far it has got

	// Channels that fire when something has taken so long that it means something; nil where nothing is waited for.
	settled  <-chan time.Time // the record that is open would have been waited out by now
	record   int64            // mod revision of that record
	begun    <-chan time.Time // who is first has outlived its lease, so somebody renews it
	first    string           // its key
	progress string           // key of who was last said to settle

	turns chan view.Standing // what the follower tells
	ended chan struct{}      // closed when the follower has ended
	why   error              // then: why
	stale atomic.Bool        // etcd does not answer
}

// run asks and waits.
func (e *eviction) run(ctx context.Context) error {
	// The follower would take its own time to find out that nobody answers.
	err := e.Reach(ctx, e.client, func(ctx context.Context) error {
		_, err := live.Look(ctx, e.client, e.name)
		return err
	})
	if err != nil {
		return lacking(e.client, e.Settings, evictNeeds(e.name, e.force), err)
	}

	ctx, cancel := context.WithCancel(ctx)
	e.turns, e.ended = make(chan view.Standing), make(chan struct{})
	go func() {
		defer close(e.ended)
		e.why = e.follow(ctx)
	}()
	defer func() { cancel(); <-e.ended }()

	select {
	case is := <-e.turns:
		err = e.begin(ctx, is)
	case <-e.ended:
		err = lacking(e.client, e.Settings, evictNeeds(e.name, e.force), cli.Classify(e.why))
	}
	if err == nil {
		err = e.await(ctx)
	}
	if err != nil {
		return err
	}
	return cli.Print(e.env.Stdout, e.result())
}

// follow hands over each standing of the name, from now on.
func (e *eviction) follow(ctx context.Context) error {
	o := live.FollowOptions{
		Closely: true,
		Stale: func(why error) {
			e.stale.Store(true)
			e.log.Warn("etcd does not answer: what becomes of the hold is not known", "name", e.name.Name, "reason", reasonOf(why))
		},
		Fresh: func() {
			e.stale.Store(false)
			e.log.Warn("etcd answers again", "name", e.name.Name)
		},
	}
	return live.Follow(ctx, e.client, e.name, o, func(_ []view.Seat, is view.Standing) error {
		select {
		case e.turns <- is:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

func reasonOf(err error) string {
	if err == nil {
		return "no answer"
	}
	return err.Error()
}

// begin asks whom the flags mean to leave, as the name stands.
func (e *eviction) begin(ctx context.Context, is view.Standing) (err error) {
	if e.seat, err = e.choose(is); err != nil {
		return err
	}
	e.after = view.NewSuccession(e.seat, is.Rev)
	e.now = e.after.Take(is)
	if err = e.request(ctx, e.seat); err != nil {
		if ctx.Err() != nil {
			e.log.Warn("nobody waits any more: whether the request has arrived is not known", "name", e.name.Name)
		}
		return err
	}
	e.asked = time.Now()
	said := "asked to leave"
	if e.force {
		said = "hold deleted"
	}
	e.log.Info(said, "name", e.name.Name, "holder", e.seat.Holder.String(), "rev", e.seat.Token)
	return nil
}

// await returns when the hold is over and somebody else holds, or nobody.
func (e *eviction) await(ctx context.Context) error {
	react := time.NewTimer(reactWithin)
	defer react.Stop()
	var patience <-chan time.Time
	if e.waits {
		patience = time.After(e.wait)
	}
	for !e.now.Over() {
		select {
		case is := <-e.turns:
			e.now = e.after.Take(is)
			e.look(ctx)
		case <-e.settled:
			return nil
		case <-e.begun:
			e.after.Believe(*e.now.Coming)
			e.now.Next, e.now.Coming = e.now.Coming, nil
		case <-react.C:
			e.warn(ctx)
		case <-patience:
			return e.runOut()
		case <-e.ended: // it goes on whatever etcd does, so a signal came
			e.log.Warn("nobody waits any more: "+e.stays(), "name", e.name.Name)
			return e.why
		}
	}
	return nil
}

// look sees what has to be waited for now, and says it.
func (e *eviction) look(ctx context.Context) {
	open, coming := e.now.Open, e.now.Coming
	switch {
	case e.now.Hold != nil || open == nil:
	case coming != nil && coming.Key != e.progress:
		e.progress = coming.Key
		e.log.Info("settling", "name", e.name.Name, "holder", coming.Holder.String(), "at_most", open.TTL, "reason", unsaid)
	case coming == nil && e.progress == "":
		e.progress = e.seat.Key
		e.log.Info("settling", "name", e.name.Name, "at_most", open.TTL, "reason", unsaid)
	}

	switch {
	case !e.now.Settled() || open == nil:
		e.settled, e.record = nil, 0
	case open.Mod != e.record:
		e.settled, e.record = time.After(cmp.Or(open.TTL, coord.DefaultTTL)), open.Mod
	}

	switch {
	case coming == nil || !coming.State.Holds():
		e.begun, e.first = nil, ""
	case coming.Key != e.first:
		granted, _, err := e.lease(ctx, coming.Lease)
		if err != nil {
			granted = coord.DefaultTTL
		}
		e.begun, e.first = time.After(granted+leaseSlack), coming.Key
	}
}

const unsaid = "the last hold did not say that its child is gone"

// lease asks what a lease was granted for and has left.
func (e *eviction) lease(ctx context.Context, id int64) (granted, left time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	got, err := e.client.TimeToLive(ctx, clientv3.LeaseID(id))
	if err != nil {
		return 0, 0, err
	}
	if got.TTL <= 0 {
		return 0, 0, errors.New("the lease has run out")
	}
	return time.Duration(got.GrantedTTL) * time.Second, time.Duration(got.TTL) * time.Second, nil
}

// warn says that the holder shows no reaction, and what can be done.
func (e *eviction) warn(ctx context.Context) {
	if e.now.Hold == nil {
		return
	}
	reason := "its command or its on-lose takes long, or it is a version that does not listen"
	granted, left, err := e.lease(ctx, e.seat.Lease)
	switch {
	case e.now.Hold.State == view.Fenced:
		reason = fmt.Sprintf("its on-lose failed: nobody is at work, and its lease runs out in %v", left)
	case err != nil:
		reason = "its lease cannot be looked at: " + cli.OneLine(err)
	case granted-left > granted/10+2*time.Second: // a hold is renewed every tenth of it, and etcd tells whole seconds
		reason = fmt.Sprintf("it does not renew its lease: it is stopped, or cut off from etcd, and loses the hold in %v", left)
	}
	e.log.Warn("still held", "name", e.name.Name, "holder", e.seat.Holder.String(), "rev", e.seat.Token,
		"dur", time.Since(e.asked).Round(time.Millisecond), "reason", reason, "force", forceText(e.name, e.seat))
}

// stays says what is left of a request that nobody waits for.
func (e *eviction) stays() string {
	if e.force {
		return "the hold stays deleted"
	}
	return "the request stays"
}

// runOut says what is still so when the wait has run out.
func (e *eviction) runOut() error {
	name, who, stays := e.name.Name, tokenText(e.seat), e.stays()
	if e.stale.Load() {
		return fmt.Errorf("%w: it does not say what became of %s, at %s; %s", hold.ErrUnreachable, who, name, stays)
	}
	so := fmt.Sprintf("%s is still held by %s", name, who)
	switch {
	case e.now.Hold != nil:
	case e.now.Coming != nil && e.now.Open != nil:
		so = fmt.Sprintf("%s, has lost %s, and %s, waits for the end of an earlier hold", who, name, tokenText(*e.now.Coming))
	case e.now.Coming != nil:
		so = fmt.Sprintf("%s, has left %s, and %s, has not begun", who, name, tokenText(*e.now.Coming))
	default:
		so = fmt.Sprintf("%s, has lost %s, and has not said that its child is gone", who, name)
	}
	return fmt.Errorf("%w: after %v %s; %s", hold.ErrNotGone, e.wait, so, stays)
}
