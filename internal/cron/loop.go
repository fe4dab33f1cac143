package cron

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
)

// shyFor is how long a node that lost a race waits for the news before it looks again; twice as long each time that none comes, up
// to shyMost.
const (
	shyFor  = 250 * time.Millisecond
	shyMost = 15 * time.Second
)

// lost has the node look at a job again later, after most at the latest: it lost a race about it, or cannot settle it now.
func (e *entry) lost(now time.Time, most time.Duration) {
	e.shy, e.losses = now.Add(min(shyFor<<min(e.losses, 8), most)), e.losses+1
}

// idleFor is how long nothing is decided about a job for which the moment to decide has come, and no decision.
const idleFor = 100 * time.Millisecond

// loop does one thing after the other until ctx has ended and nothing runs any more, or a follower failed.
func (n *node) loop(ctx context.Context, failed <-chan error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	stop := ctx.Done()
	var late, last <-chan time.Time // the drain timeout, and the end of patience with etcd
	for !n.stopping || len(n.running) > 0 || n.claims > 0 {
		select {
		case do := <-n.calls:
			n.hear(do)
		case <-timer.C:
		case err := <-failed:
			if n.stopping || ctx.Err() != nil {
				continue
			}
			return err
		case <-stop:
			stop = nil
			late = n.drain()
		case <-n.Hurry:
			n.Hurry, late, last = nil, nil, time.After(resultsFor)
			n.endAll(errShutdown)
		case <-late:
			late, last = nil, time.After(resultsFor)
			n.endAll(errShutdown)
		case <-last:
			n.giveUp()
		}
		if n.stopping && last == nil && n.claims == 0 && n.results > 0 && len(n.running) == n.results {
			late, last = nil, time.After(resultsFor) // nothing runs: only etcd is waited for
		}
		n.look()
		timer.Reset(n.sleep())
	}
	return nil
}

// hear takes in what is posted, and what else is by now: what there is to be done about all of it is looked at once.
func (n *node) hear(do func()) {
	for range hearMost {
		do()
		select {
		case do = <-n.calls:
		default:
			return
		}
	}
	do()
}

// drain ends claiming. What runs may go on for a while.
func (n *node) drain() <-chan time.Time {
	n.stopping = true
	n.card()
	if len(n.running) > 0 {
		n.Logger.Info("draining", slog.Int("running", len(n.running)), slog.Duration("at_most", max(0, n.DrainTimeout)))
	}
	return time.After(max(0, n.DrainTimeout))
}

// sleep is how long nothing is to be done by itself.
func (n *node) sleep() time.Duration {
	most := n.ScanEvery
	if n.writeIn > 0 {
		most = min(most, n.writeIn)
	}
	if len(n.agenda) == 0 {
		return most
	}
	return min(most, max(0, n.agenda[0].at.Sub(n.Now())))
}

// look does what is due.
func (n *node) look() {
	if n.Metrics.Scanned != nil {
		n.Metrics.Scanned()
	}
	for _, e := range n.stirred {
		e.stirred = false
		n.consider(e)
	}
	clear(n.stirred)
	n.stirred = n.stirred[:0]
	for {
		e, ok := n.agenda.due(n.Now())
		if !ok {
			break
		}
		n.consider(e)
	}
	for n.claims < claimsMost && !n.crowded() && len(n.ready) > 0 {
		e := n.ready[0]
		n.ready[0] = nil
		n.ready = n.ready[1:]
		e.ready = false
		n.consider(e)
	}
	if len(n.ready) == 0 {
		n.ready = nil // so that a burst does not keep its memory
	}
	n.flush()
	if busy := len(n.ready) > 0 || n.busy && n.starts > 0; busy != n.busy {
		n.busy = busy
		if n.Busy != nil {
			n.Busy(busy)
		}
	}
}

// crowded reports whether enough is claimed for now, and has no process yet.
func (n *node) crowded() bool {
	switch {
	case n.starts >= startsMost:
		n.crowd = true
	case n.starts <= startsAgain:
		n.crowd = false
	}
	return n.crowd
}

// consider looks at a job, and does what is to be done about it now.
func (n *node) consider(e *entry) {
	if e.busy || e.ready || !n.listed() {
		return
	}
	now := n.Now()
	if now.Before(e.shy) && e.shy.Sub(now) <= shyMost { // a clock that was set back makes nobody wait
		n.agenda.set(e, e.shy)
		return
	}
	a := n.next(e, now)
	switch {
	case now.Before(a.At) || a.Verb == plan.Wait && a.At.IsZero():
		n.agenda.set(e, a.At)
	case a.Verb == plan.Wait:
		n.agenda.set(e, now.Add(idleFor)) // nothing to wait for, and nothing to do: it must not spin
	case n.claims >= claimsMost || a.Verb == plan.Run && n.crowded():
		e.ready = true
		n.ready = append(n.ready, e)
		n.agenda.set(e, time.Time{})
	default:
		n.agenda.set(e, time.Time{})
		n.act(e, a)
	}
}

// next asks for the next act. Where only room was missing, the job is looked at again when there is some.
func (n *node) next(e *entry, now time.Time) plan.Act {
	e.follow(n.Host)
	fit, full := n.fit(e)
	delete(n.lazy, e)
	if full {
		n.lazy[e] = struct{}{}
	}
	for i := range e.state.Opens {
		n.judge(e, &e.state.Opens[i])
		if o := e.state.Opens[i]; n.unconfirmed(e, &o) {
			return plan.Act{
				Verb: plan.Close, At: now, ID: o.ID, Open: &o, Kind: o.Kind, Attempt: o.Attempt,
				Status: record.Missed, Reason: record.ReasonUnconfirmed,
			}
		}
	}
	j := e.job
	if j.OnAll && !n.selected(e) {
		j.Schedule = manual() // none of this host's business
	}
	return plan.Next(&j, &e.state, &plan.Node{
		Host: n.Host, Mono: n.Mono(), Since: n.since, Fit: fit, Slack: n.MaxSkew, Pause: n.pause,
		ReadOnly: n.ReadOnly || n.stopping || n.proof == nil || n.unfit != "",
		Others:   func() bool { return n.others(e) },
		Absent:   func() record.Reason { return n.absent(e) },
	}, now)
}

// roomier looks again at what waited for room, for as long as there is some.
func (n *node) roomier() {
	for e := range n.lazy {
		if n.full() {
			return
		}
		delete(n.lazy, e)
		n.consider(e)
	}
}

// everything looks at every job: the node itself has changed.
func (n *node) everything() {
	for _, e := range n.jobs {
		n.consider(e)
	}
}
