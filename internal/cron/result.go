package cron

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

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
	n.results++
	write := func() {
		leave := sync.OnceFunc(func() { n.post(func() { n.writes-- }) })
		was, known := n.write(end, leave)
		leave()
		n.post(func() {
			delete(n.running, r.run)
			n.results--
			e.close(r.id)
			if was {
				n.ended(e, res)
			} else if known {
				n.Logger.Warn("result not written", slog.String("name", e.name), slog.String("id", r.id.String()), slog.String("reason", "it was reported lost"))
			}
			n.card()
			n.changed(e)
			n.roomier()
		})
	}
	n.unwritten = append(n.unwritten, unwritten{write, n.Mono() + writeWithin})
}

func (n *node) endOf(e *entry, r *running, res *record.Result) store.End {
	end := store.End{Job: e.name, ID: r.id, OpenRev: r.rev, Result: res, Retain: retain(e)}
	end.Again, end.Next = n.again(e, r, res)
	return end
}

// unwritten is a result that waits to be written.
type unwritten struct {
	write func()
	by    time.Duration // on the clock of Mono: then it waits no longer for starts
}

// flush begins to write results, as many as may be under way at a time. While something waits to be started they wait too, and are written
// together then: who is late with a start is late for good, and a result costs etcd and every node as much as a claim. But none waits for
// that longer than writeWithin, and no more of them than half of those for which there is room.
func (n *node) flush() {
	n.writeIn = 0
	if (n.starts > 0 || len(n.ready) > 0) && len(n.unwritten) > 0 && len(n.unwritten) < max(n.MaxRunning/2, 1) {
		if n.writeIn = max(0, n.unwritten[0].by-n.Mono()); n.writeIn > 0 {
			return
		}
	}
	for n.writes < writesMost && len(n.unwritten) > 0 {
		write := n.unwritten[0].write
		n.unwritten[0].write = nil
		n.unwritten = n.unwritten[1:]
		n.writes++
		n.work.Go(write)
	}
	if len(n.unwritten) == 0 {
		n.unwritten = nil // so that a burst does not keep its memory
	}
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

// write writes a result until that is known, or nobody waits any more: then the start stays, and a peer settles it. One that has to be
// tried again leaves its place to others.
func (n *node) write(end store.End, leave func()) (was, known bool) {
	run, unsure, full := slog.String("run", end.Result.RunID), false, false
	for pause := againFirst; ; pause = min(2*pause, againMost) {
		ctx, cancel := context.WithTimeout(n.hard, askFor)
		was, err := n.store.Finish(ctx, end)
		cancel()
		switch {
		case err == nil:
			return was || unsure, true // an attempt of ours took the record away, whose reply was lost
		case errors.Is(err, rpctypes.ErrNoSpace) && !full:
			full = true
			n.Logger.Warn("etcd is out of space: the result is kept until there is some", run)
		case errors.Is(err, store.ErrUndecided):
			unsure = true
		}
		leave()
		reason := slog.String("reason", err.Error())
		n.Logger.Debug("result not written yet", run, reason)
		select {
		case <-time.After(pause):
		case <-n.hard.Done():
			n.Logger.Error("result not written", run, slog.String("status", string(end.Result.Status)), reason)
			return false, false
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
