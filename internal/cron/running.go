package cron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// Why a run was ended by its node.
var (
	errRunTTL   = errors.New("run_ttl")
	errKilled   = errors.New("killed")
	errReplaced = errors.New("replaced")
	errShutdown = errors.New("shutdown")
	errMarker   = fmt.Errorf("%w: the run marker was deleted", hold.ErrLost)
)

// running is a start of this node, from the claim until its result is written.
type running struct {
	id      record.ID
	run     string
	rev     int64
	act     plan.Act
	open    record.Open
	spec    *job.Job
	hold    *held
	ctx     context.Context // of the run
	end     context.CancelCauseFunc
	by      string // who killed it, for people
	started bool
}

func runID(name string, id record.ID) string { return name + "/" + id.String() }

// launch starts what was claimed, if it is still wanted.
func (n *node) launch(e *entry, t *attempt) {
	a := t.act
	r := &running{id: a.ID, run: runID(e.name, a.ID), rev: t.rev, act: a, open: t.start.Open, spec: e.spec}
	n.running[r.run] = r
	r.ctx, r.end = context.WithCancelCause(context.Background())
	log := n.Logger.With(slog.String("name", e.name), slog.String("id", a.ID.String()), slog.Int64("rev", t.rev))

	// (C1): not too late, and on a session that still stands.
	why := record.ReasonNone
	switch {
	case !a.By.IsZero() && !n.Now().Before(a.By):
		why = record.ReasonLateClaim
	case n.proof == nil || n.proof.Keys().Lease != t.start.Lease:
		why = record.ReasonSession
	case e.spec == nil:
		why = record.ReasonSpec
	}
	if why != record.ReasonNone {
		log.Warn("not started", slog.String("reason", string(why)))
		n.starts--
		n.finish(e, r, n.never(e, r, why))
		return
	}
	if r.act.Kind == record.Scheduled && n.Now().Sub(a.Due) > plan.LateAfter {
		r.act.Kind = record.Late // the answer took its time
	}
	r.hold = n.holdOf(e, r)
	if k, ok := n.kills[r.run]; ok {
		r.kill(k)
	}
	log.Info("claimed", slog.String("kind", string(r.act.Kind)), slog.Int64("late_ms", n.Now().Sub(a.Due).Milliseconds()))
	s := Start{Job: e.name, Spec: e.spec, ID: a.ID, Kind: r.act.Kind, Attempt: a.Attempt, Started: func(int) {
		n.post(func() { n.begun(r) })
	}}
	timeout := time.AfterFunc(e.spec.RunTime(), func() { r.end(errRunTTL) })
	n.work.Go(func() {
		how := n.Runner.Run(r.ctx, s, r.hold)
		timeout.Stop()
		n.post(func() { n.over(e, r, how) })
	})
	n.card()
}

// begun: there is a process, and room for the next one to be started.
func (n *node) begun(r *running) {
	if !r.started {
		r.started = true
		n.starts--
	}
}

// over: nothing of a run is left, or it is given up.
func (n *node) over(e *entry, r *running, how Ended) {
	n.begun(r)
	if how.Unclean {
		// What may live on keeps the job: it is not said to have ended. The guard's reports are in the log.
		n.Logger.Error("a run cannot be ended", slog.String("name", e.name), slog.String("id", r.id.String()))
		n.stuck[r.run] = true
		delete(n.running, r.run)
		return
	}
	n.finish(e, r, n.result(e, r, how))
}

// result says how a run ended.
func (n *node) result(e *entry, r *running, how Ended) *record.Result {
	res := n.never(e, r, record.ReasonNone)
	ended := n.Now()
	res.Pid, res.ExitCode, res.Signal, res.Output = how.Pid, how.Code, how.Signal, how.Output
	res.UserMS, res.SysMS, res.MaxRSS = how.User.Milliseconds(), how.Sys.Milliseconds(), how.MaxRSS
	if !how.Started.IsZero() {
		res.StartedAt = record.StampOf(how.Started)
		res.LateMS = max(0, how.Started.Sub(r.act.Due).Milliseconds())
		res.WallMS = ended.Sub(how.Started).Milliseconds()
		if res.Kind == record.Scheduled && how.Started.Sub(r.act.Due) > plan.LateAfter {
			res.Kind = record.Late
		}
	}
	res.Status, res.Reason, res.Detail = r.verdict(how)
	return res
}

// verdict tells what happened to a run, in the order of what weighs most.
func (r *running) verdict(how Ended) (record.Status, record.Reason, string) {
	cause := context.Cause(r.ctx)
	switch {
	case how.Lost != nil && r.hold.Cause() != nil:
		return record.Lost, record.ReasonSession, hold.EscapeCut(how.Lost.Error(), 200)
	case how.Lost != nil:
		return record.Lost, record.ReasonGuard, hold.EscapeCut(how.Lost.Error(), 200)
	case errors.Is(cause, errRunTTL):
		return record.Timeout, record.ReasonRunTTL, "run_ttl " + r.spec.RunTime().String()
	case errors.Is(cause, errKilled):
		return record.Killed, record.ReasonKill, r.by
	case errors.Is(cause, errReplaced):
		return record.Killed, record.ReasonReplaced, r.by
	case errors.Is(cause, errShutdown):
		return record.Killed, record.ReasonShutdown, ""
	case how.Err != nil:
		return record.Error, record.ReasonNotStarted, hold.EscapeCut(how.Err.Error(), 200)
	case how.Signal != "":
		return record.Failed, record.ReasonSignal, ""
	case !r.spec.Succeeds(how.Code):
		return record.Failed, record.ReasonExit, ""
	}
	return record.Success, record.ReasonNone, ""
}

// never is the result of what was claimed and not started.
func (n *node) never(e *entry, r *running, why record.Reason) *record.Result {
	return &record.Result{
		Job: e.name, Tick: r.id.Tick, Kind: r.act.Kind, Attempt: r.act.Attempt, Status: record.Missed, Reason: why, By: r.open.By, Host: n.Host, Rev: r.rev,
		SpecRev: r.open.SpecRev, ClaimedAt: record.StampOf(time.UnixMilli(r.open.At)), EndedAt: record.StampOf(n.Now()), RunID: r.run,
	}
}

// finish writes a result, for as long as that takes.
func (n *node) finish(e *entry, r *running, res *record.Result) {
	end := n.endOf(e, r, res)
	n.work.Go(func() {
		was, noSpace := n.write(end)
		n.post(func() {
			delete(n.running, r.run)
			e.close(r.id)
			if was {
				n.ended(e, res)
			} else if !noSpace {
				n.Logger.Warn("result not written", slog.String("name", e.name), slog.String("id", r.id.String()), slog.String("reason", "it was reported lost"))
			}
			n.card()
			n.changed(e)
			n.roomier()
		})
		if noSpace {
			n.publishLater(res, end.Retain)
		}
	})
}

func (n *node) endOf(e *entry, r *running, res *record.Result) store.End {
	end := store.End{Job: e.name, ID: r.id, OpenRev: r.rev, Result: res, Retain: retain(e)}
	end.Again, end.Next = n.again(e, r, res)
	return end
}

// again is the request for another attempt; nil: there is none.
func (n *node) again(e *entry, r *running, res *record.Result) (*record.Want, record.ID) {
	if e.spec == nil || n.stopping && res.Reason == record.ReasonShutdown {
		return nil, record.ID{}
	}
	w := &record.Want{Kind: record.Retry, Attempt: r.act.Attempt + 1, After: n.Now().UnixMilli(), By: r.open.By}
	switch res.Status {
	case record.Lost:
		if e.job.LostAgain <= r.act.Attempt {
			return nil, record.ID{}
		}
	case record.Failed, record.Timeout, record.Error:
		delay, yes := e.spec.Retries(r.act.Attempt, res.ExitCode)
		if !yes {
			return nil, record.ID{}
		}
		w.After = n.Now().Add(delay).UnixMilli()
	default:
		return nil, record.ID{}
	}
	if e.spec.Retry != nil && e.spec.Retry.OtherNode || res.Status == record.Lost {
		w.Not = n.Host
	}
	return w, store.Asked(r.id)
}

// write writes a result until that is definite, or nobody waits any more.
func (n *node) write(end store.End) (was, noSpace bool) {
	unsure := false
	for pause := againFirst; ; pause = min(2*pause, againMost) {
		ctx, cancel := context.WithTimeout(n.hard, askFor)
		was, err := n.store.Finish(ctx, end)
		cancel()
		switch {
		case err == nil:
			return was || unsure, false // an attempt of ours took the record away, whose reply was lost
		case errors.Is(err, rpctypes.ErrNoSpace):
			return false, true
		case errors.Is(err, store.ErrUndecided):
			unsure = true
		}
		n.Logger.Debug("result not written yet", slog.String("run", end.Result.RunID), slog.String("reason", err.Error()))
		select {
		case <-time.After(pause):
		case <-n.hard.Done():
			n.Logger.Error("result not written", slog.String("run", end.Result.RunID), slog.String("status", string(end.Result.Status)),
				slog.String("reason", err.Error()))
			return false, true
		}
	}
}

// publishLater writes a result once etcd has room for it.
func (n *node) publishLater(res *record.Result, retain time.Duration) {
	n.Logger.Warn("etcd is out of space: the result is kept until there is some", slog.String("run", res.RunID))
	for pause := againFirst; ; pause = min(2*pause, againMost) {
		select {
		case <-time.After(pause):
		case <-n.hard.Done():
			n.Logger.Error("result not written", slog.String("run", res.RunID), slog.String("status", string(res.Status)))
			return
		}
		ctx, cancel := context.WithTimeout(n.hard, askFor)
		err := n.store.Publish(ctx, res, retain)
		cancel()
		if err == nil {
			return
		}
	}
}

// ended: a result stands in etcd.
func (n *node) ended(e *entry, res *record.Result) {
	level := slog.LevelInfo
	if res.Status.Bad() {
		level = slog.LevelWarn
	}
	n.Logger.Log(context.Background(), level, string(res.Status), slog.String("name", e.name), slog.Int64("tick", res.Tick),
		slog.String("reason", string(res.Reason)), slog.Int64("rev", res.Rev), slog.Int64("late_ms", res.LateMS), slog.Int64("wall_ms", res.WallMS))
	if n.Metrics.Ended != nil {
		n.Metrics.Ended(res)
	}
	if e.wins++; e.wins%pruneEvery != 0 || e.spec == nil {
		return
	}
	ok, other, _ := e.spec.HistoryLimits()
	name := e.name
	n.work.Go(func() {
		ctx, cancel := context.WithTimeout(n.hard, askFor)
		defer cancel()
		if err := n.store.Prune(ctx, name, ok, other); err != nil {
			n.Logger.Debug("history not pruned", slog.String("job", name), slog.String("reason", err.Error()))
		}
	})
}

// pruneEvery is how many results of a job a node writes between two looks at how many there are.
const pruneEvery = 16

// endAll ends what runs.
func (n *node) endAll(why error) {
	for _, r := range n.running {
		r.end(why)
	}
}

// kill ends a run because somebody asked.
func (r *running) kill(k record.Kill) {
	r.by = "by " + hold.EscapeCut(k.By, 80)
	if k.Why != "" {
		r.by += ": " + hold.EscapeCut(k.Why, 100)
	}
	why := errKilled
	if k.Reason == record.ReasonReplaced {
		why = errReplaced
	}
	r.end(why)
}

func (r *running) lose(why error) {
	if r.hold != nil {
		r.hold.lose(why)
	}
}

// held is one start as a hold.Hold: it lasts while the node's session is proven and its marker stands.
type held struct {
	proof     *coord.Proof
	info      hold.Info
	testament []byte
	renewed   chan struct{}

	once  sync.Once
	lost  chan struct{}
	mu    sync.Mutex
	cause error
}

func (n *node) holdOf(e *entry, r *running) *held {
	keys := n.proof.Keys()
	never := n.never(e, r, record.ReasonDaemon)
	never.Status = record.Lost
	end := n.endOf(e, r, never)
	return &held{
		proof: n.proof, renewed: make(chan struct{}, 1), lost: make(chan struct{}),
		info: hold.Info{
			Kind: "cron", Name: e.name, Rev: uint64(r.rev), Lease: int64(keys.Lease), Slot: -1, TTL: n.proof.Bounds().TTL,
		},
		testament: store.Testament(end),
	}
}

func (h *held) Info() hold.Info { return h.info }

func (h *held) Deadlines() hold.Deadlines {
	term, kill := h.proof.Deadlines()
	return hold.Deadlines{Term: term, Kill: kill}
}

func (h *held) Renewed() <-chan struct{} { return h.renewed }
func (h *held) Lost() <-chan struct{}    { return h.lost }
func (h *held) Evicted() <-chan error    { return nil } // who kills a run ends its context
func (h *held) Testament() []byte        { return h.testament }

// Release gives nothing up yet: the marker goes with the result, once it is known how the run ended.
func (h *held) Release(context.Context, hold.End) error { return nil }

func (h *held) Cause() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cause
}

func (h *held) lose(why error) {
	h.once.Do(func() {
		h.mu.Lock()
		h.cause = why
		h.mu.Unlock()
		close(h.lost)
	})
}

func (h *held) renew() {
	select {
	case h.renewed <- struct{}{}:
	default:
	}
}

// nonce names a claim: no other one of any process has the same.
func (n *node) nonce() string {
	n.nonces++
	return n.seed + "-" + strconv.FormatUint(n.nonces, 36)
}
