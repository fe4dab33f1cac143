package cron

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
)

const (
	// askFor bounds one transaction or read.
	askFor = 3 * time.Second
	// againFirst and againMost are the pauses between attempts at what has to succeed.
	againFirst = 100 * time.Millisecond
	againMost  = 5 * time.Second
	// keepLeast is how long a claim stays at least.
	keepLeast = time.Hour
)

// attempt is one transaction about a job.
type attempt struct {
	act   plan.Act
	start *store.Start // of Run
	end   *store.End   // of Close
	say   *store.Verdict
	nonce string
	rev   int64
	won   bool
	err   error
}

// act begins a transaction. The answer is taken in by answered.
func (n *node) act(e *entry, a plan.Act) {
	t := n.prepare(e, a)
	e.busy = true
	n.claims++
	if a.Verb == plan.Run {
		n.asking++
		n.starts++
	}
	n.work.Go(func() {
		n.ask(t, e.name)
		n.post(func() { n.answered(e, t) })
	})
}

// prepare puts together what is asked for: all of it is known now, and nothing of it is read later.
func (n *node) prepare(e *entry, a plan.Act) *attempt {
	t := &attempt{act: a, nonce: n.nonce()}
	ground := store.Ground{
		Job: e.name, SpecRev: e.job.Rev, PauseRev: n.pauseRev, Keep: n.keep(e), Retain: retain(e),
	}
	if a.Want == nil || a.Verb == plan.Take {
		ground.Cursor, ground.CursorRev = &record.Cursor{Tick: a.ID.Tick, Host: n.Host}, e.state.CursorRev
	}
	if a.Want != nil {
		ground.Want, ground.WantRev = a.Want.ID, a.Want.Rev
	}
	fire := record.Fire{
		Nonce: t.nonce, Host: n.Host, Decision: record.DecideRun, Kind: a.Kind, Reason: a.Reason, Attempt: a.Attempt, SpecRev: e.job.Rev,
		At: n.Now().UnixMilli(),
	}
	switch a.Verb {
	case plan.Run:
		by := ""
		if a.Want != nil {
			by = a.Want.By
		}
		t.start = &store.Start{
			Ground: ground, ID: a.ID, Fire: fire, Host: n.Host, Lease: n.proof.Keys().Lease, Alone: a.Alone,
			Open: record.Open{
				Nonce: t.nonce, Host: n.Host, Lease: int64(n.proof.Keys().Lease), TTL: n.proof.Bounds().TTL.Milliseconds(), Kind: a.Kind,
				Attempt: a.Attempt, SpecRev: e.job.Rev, At: fire.At, By: by,
			},
		}
	case plan.Close:
		r := n.verdict(e, a)
		r.Host, r.Rev, r.SpecRev, r.ClaimedAt = a.Open.Host, a.Open.Rev, a.Open.SpecRev, record.StampOf(time.UnixMilli(a.Open.At))
		t.end = &store.End{Job: e.name, ID: a.ID, OpenRev: a.Open.Rev, Result: r, Retain: retain(e), Settled: a.Status == record.Lost}
		if a.Status == record.Lost && e.job.LostAgain > a.Attempt {
			t.end.Again = &record.Want{Kind: record.Retry, Attempt: a.Attempt + 1, Not: a.Open.Host, After: n.Now().UnixMilli(), By: a.Open.By}
			t.end.Next = store.Asked(a.ID)
		}
	default:
		t.say = n.say(e, a, ground, fire)
	}
	return t
}

// say makes a verdict.
func (n *node) say(e *entry, a plan.Act, ground store.Ground, fire record.Fire) *store.Verdict {
	v := &store.Verdict{Ground: ground, ID: a.ID, Fire: fire}
	switch a.Verb {
	case plan.Skip:
		v.Fire.Decision, v.Result = record.DecideSkip, n.verdict(e, a)
	case plan.Range, plan.Abandon:
		v.Fire.Decision, v.Result = record.DecideMiss, n.verdict(e, a)
	case plan.Queue, plan.Take:
		v.Fire.Decision = record.DecideQueue
		v.Ask = &record.Want{Kind: a.Kind, Attempt: 1}
	}
	if a.Open != nil {
		v.Behind, v.BehindRev = a.Open.ID, a.Open.Rev
	}
	if a.Verb != plan.Take {
		return v
	}
	v.Kill = &record.Kill{By: n.Host, Why: "tick " + strconv.FormatInt(a.ID.Tick, 10), Reason: record.ReasonReplaced, At: fire.At}
	if a.Want != nil {
		former := plan.Act{ID: a.Want.ID, Kind: a.Want.Kind, Attempt: a.Want.Attempt, Status: record.Skipped, Reason: record.ReasonReplaced}
		v.Superseded = n.verdict(e, former)
	}
	return v
}

// verdict is the record of what was not started, or lost.
func (n *node) verdict(e *entry, a plan.Act) *record.Result {
	now := record.StampOf(n.Now())
	by := ""
	switch {
	case a.Open != nil && a.Verb == plan.Close:
		by = a.Open.By
	case a.Want != nil && a.Verb == plan.Abandon:
		by = a.Want.By
	}
	return &record.Result{
		Job: e.name, Tick: a.ID.Tick, From: a.From, Ticks: a.Ticks, Kind: a.Kind, Attempt: a.Attempt, Status: a.Status, Reason: a.Reason,
		By: by, Host: n.Host, SpecRev: e.job.Rev, EndedAt: now, RunID: runID(e.name, a.ID),
	}
}

// ask makes the transaction. What is not known afterwards is read back, for as long as it takes: nothing else is decided about
// the job meanwhile, and nothing that came too late is started.
func (n *node) ask(t *attempt, job string) {
	ctx, cancel := context.WithTimeout(context.Background(), askFor)
	defer cancel()
	id := t.act.ID
	switch {
	case t.start != nil:
		t.rev, t.won, t.err = n.store.Claim(ctx, *t.start)
	case t.say != nil:
		t.rev, t.won, t.err = n.store.Decide(ctx, t.say)
	default:
		t.won, t.err = n.store.Finish(ctx, *t.end)
		return // if it is not known, the next look will tell
	}
	for pause := againFirst; errors.Is(t.err, store.ErrUndecided); pause = min(2*pause, againMost) {
		fire, rev, err := n.readBack(job, id)
		if err == nil {
			t.err, t.rev, t.won = nil, rev, rev != 0 && fire.Nonce == t.nonce
			return
		}
		select {
		case <-time.After(pause):
		case <-n.done:
			return
		}
	}
}

func (n *node) readBack(job string, id record.ID) (record.Fire, int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askFor)
	defer cancel()
	return n.store.Fired(ctx, job, id)
}

// answered takes in how a transaction ended.
func (n *node) answered(e *entry, t *attempt) {
	e.busy = false
	n.claims--
	if t.start != nil {
		n.asking--
	}
	switch {
	case t.err != nil:
		n.refused(e, t)
	case !t.won:
		e.lost(n.Now(), shyMost)
	default:
		e.losses = 0
		n.applied(e, t)
	}
	if t.start != nil && (t.err != nil || !t.won) {
		n.starts--
	}
	n.consider(e)
	n.roomier()
}

func (n *node) refused(e *entry, t *attempt) {
	e.shy = n.Now().Add(shyFor)
	level := slog.LevelWarn
	if errors.Is(t.err, rpctypes.ErrLeaseNotFound) || errors.Is(t.err, store.ErrUndecided) {
		level = slog.LevelDebug // of the session: the registration says so
	}
	if t.end != nil { // nothing is late over it: a full etcd, say, is asked less and less often, and told of once
		if e.lost(n.Now(), againMost); e.losses > 1 {
			level = slog.LevelDebug
		}
	}
	n.Logger.Log(context.Background(), level, "claim refused", slog.String("job", e.name), slog.String("id", t.act.ID.String()),
		slog.String("reason", t.err.Error()))
}

// applied takes in what was written, so that the next decision does not wait for the watch.
func (n *node) applied(e *entry, t *attempt) {
	a := t.act
	news := n.areas[record.State].rev < t.rev // else the watch was faster, and may know better
	if t.say != nil || t.start != nil {
		if g := ground(t); g.Cursor != nil && t.rev > e.cursors[a.ID.Host].rev {
			e.cursors[a.ID.Host] = at{*g.Cursor, t.rev}
		}
		if a.Want != nil {
			e.unwant(a.Want.ID)
		}
	}
	switch {
	case t.start != nil:
		if news && e.open(a.ID) == nil {
			e.state.Opens = append(e.state.Opens, plan.Open{Open: t.start.Open, ID: a.ID, Rev: t.rev, Alive: true})
		}
		n.launch(e, t)
	case t.end != nil:
		e.close(a.ID)
		n.ended(e, t.end.Result)
	default:
		if t.say.Ask != nil && news {
			e.state.Wants = append(e.state.Wants, plan.Want{Want: *t.say.Ask, ID: t.say.AskID, Rev: t.rev})
		}
		for _, r := range []*record.Result{t.say.Superseded, t.say.Result} {
			if r != nil {
				n.ended(e, r)
			}
		}
	}
}

func ground(t *attempt) *store.Ground {
	if t.start != nil {
		return &t.start.Ground
	}
	return &t.say.Ground
}

// keep is how long a claim stays: longer than a node may be behind, or catch up.
func (n *node) keep(e *entry) time.Duration {
	return max(keepLeast, 2*e.job.CatchUp.Window, 2*e.job.Deadline(time.Duration(1<<62)))
}

// retain is how long a result stays.
func retain(e *entry) time.Duration {
	if e.spec == nil {
		return keepLeast
	}
	_, _, ttl := e.spec.HistoryLimits()
	return ttl
}
