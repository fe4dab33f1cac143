package cron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
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
	case !n.runs[r.run] && n.areas[record.Runs].rev >= t.rev: // its marker is gone already: a peer may take it for lost
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
	n.roomier()
}

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

// nonce names a claim: no other one of any process has the same.
func (n *node) nonce() string {
	n.nonces++
	return n.seed + "-" + strconv.FormatUint(n.nonces, 36)
}
