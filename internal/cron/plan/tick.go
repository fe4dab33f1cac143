package plan

import (
	"time"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
)

// after is the first tick later than a moment that the job's bounds leave.
func (d *decision) after(at int64) (int64, bool) {
	if from := d.job.From; !from.IsZero() && from.Unix() > at {
		at = from.Add(-1).Unix()
	}
	t, ok := d.job.Schedule.Next(time.Unix(at, 0))
	if to := d.job.To; !ok || !to.IsZero() && t.Time().After(to) {
		return 0, false
	}
	return int64(t), true
}

// due is when a tick is to be started.
func (d *decision) due(tick int64) time.Time { return time.Unix(tick, 0).Add(d.job.Shift) }

// deadline is how late a tick may be started.
func (d *decision) deadline(tick int64) time.Duration {
	after, ok := d.job.Schedule.Next(time.Unix(tick, 0))
	if !ok {
		return d.job.Deadline(time.Duration(1<<63 - 1))
	}
	return d.job.Deadline(time.Duration(int64(after)-tick) * time.Second)
}

// floor is the tick up to which nothing is left to decide.
func (d *decision) floor() int64 {
	at := d.state.Cursor.Tick
	if since := d.job.Since; !since.IsZero() {
		at = max(at, since.Unix())
	}
	if d.job.OnAll && d.state.CursorRev == 0 {
		at = max(at, d.node.Since.Unix())
	}
	return at
}

// tick is what to do about the first tick that is not decided.
func (d *decision) tick() Act {
	if in, until := d.paused(); in {
		if until.IsZero() {
			return Act{}
		}
		return Act{At: until}
	}
	floor := d.floor()
	if resumed := d.resumed() / 1000; resumed > floor {
		if t, ok := d.after(floor); ok && t <= resumed {
			return d.span(t, resumed, record.Skipped, record.ReasonPaused)
		}
		floor = resumed
	}
	t, ok := d.after(floor)
	switch {
	case !ok:
		return Act{}
	case d.now.Before(d.due(t)):
		return Act{At: d.due(t)}
	}
	deadline := d.deadline(t)
	if !d.now.Before(d.due(t).Add(deadline)) {
		return d.backlog(t)
	}
	return d.onTime(t, deadline)
}

// onTime is about a tick that is due, and not over.
func (d *decision) onTime(t int64, deadline time.Duration) Act {
	end := d.due(t).Add(deadline)
	if !d.node.Fit {
		return Act{At: end}
	}
	a := Act{
		Verb: Run, At: d.due(t).Add(d.delay(t, deadline)), ID: record.ID{Tick: t, Host: d.host()}, Kind: record.Scheduled, Attempt: 1,
		Alone: d.job.Overlap != Allow, By: end, Due: d.due(t),
	}
	if later(a.At, d.now).Sub(a.Due) > LateAfter {
		a.Kind = record.Late
	}
	open := d.open()
	if open == nil {
		return a
	}
	switch d.job.Overlap {
	case Allow:
		return a
	case QueueOne:
		if d.waiting(record.Queued) == nil {
			a.Verb, a.Kind = Queue, record.Queued
			return a
		}
	case Replaces:
		a.Verb, a.Kind, a.Want, a.Open = Take, record.Replace, d.waiting(record.Replace), open
		return a
	}
	a.Verb, a.Open, a.Status, a.Reason = Skip, open, record.Skipped, record.ReasonOverlap
	return a
}

// waiting is the request of a kind that waits for the end of a run; nil: there is none.
func (d *decision) waiting(kind record.Kind) *Want {
	for i := range d.state.Wants {
		if w := d.state.Wants[i]; w.Kind == kind && w.ID.Host == d.host() {
			return &w
		}
	}
	return nil
}

// backlog is about ticks that nobody started in time, the first of which is t.
func (d *decision) backlog(t int64) Act {
	last := d.lastMissed(t)
	first := d.firstWanted(t, last)
	if t < first {
		// What is not caught up with: up to the tick before the first that is, or all of it.
		until := last
		if first <= last {
			until = first - 1
		}
		return d.missed(t, until)
	}
	open := d.open()
	end := time.Unix(t, 0).Add(d.job.CatchUp.Window)
	if !d.node.Fit || d.job.Overlap != Allow && open != nil {
		return Act{At: end}
	}
	return Act{
		Verb: Run, At: d.due(t), ID: record.ID{Tick: t, Host: d.host()},
		Kind: record.CatchUp, Attempt: 1, Alone: d.job.Overlap != Allow, By: end, Due: d.due(t),
	}
}

// lastMissed is the last tick from t on whose time is over.
func (d *decision) lastMissed(t int64) int64 {
	last, ok := d.job.Schedule.Prev(d.now.Add(-d.job.Shift).Add(time.Nanosecond))
	for ok && int64(last) > t {
		if d.within(last) && !d.now.Before(d.due(int64(last)).Add(d.deadline(int64(last)))) {
			return int64(last)
		}
		last, ok = d.job.Schedule.Prev(last.Time())
	}
	return t
}

func (d *decision) within(t schedule.Tick) bool {
	return d.job.To.IsZero() || !t.Time().After(d.job.To)
}

// firstWanted is the first of the missed ticks t to last that is caught up with; later than last: none is.
func (d *decision) firstWanted(t, last int64) int64 {
	c := d.job.CatchUp
	oldest := d.now.Add(-c.Window)
	switch {
	case c.Last && !time.Unix(last, 0).Before(oldest):
		return last
	case !c.All:
		return last + 1
	}
	if c.Max > 0 {
		// The newest Max of them.
		at, ok := schedule.Tick(last), true
		for n := 1; n < c.Max && ok && int64(at) > t; n++ {
			at, ok = d.job.Schedule.Prev(at.Time())
		}
		if ok {
			t = max(t, int64(at))
		}
	}
	for t <= last && time.Unix(t, 0).Before(oldest) {
		at, ok := d.after(max(t, oldest.Unix()-1))
		if !ok {
			return last + 1
		}
		t = at
	}
	return t
}

// missed records what was not started.
func (d *decision) missed(from, until int64) Act {
	status, why := record.Missed, d.node.Absent()
	if why == record.ReasonNoNode {
		status = record.Skipped
	}
	return d.span(from, until, status, why)
}

// span is one record for all ticks from one to another moment, which need not be a tick.
func (d *decision) span(from, until int64, status record.Status, why record.Reason) Act {
	n, more := d.job.Schedule.Count(time.Unix(from-1, 0), time.Unix(until, 0), record.MaxTicks)
	if more {
		n = record.MaxTicks
	}
	last := from
	if t, ok := d.job.Schedule.Prev(time.Unix(until+1, 0)); ok {
		last = max(from, int64(t))
	}
	first := from
	if n == 1 {
		from, n = 0, 0 // it is no range
	}
	end := d.due(last)
	if status != record.Skipped || why != record.ReasonPaused {
		end = end.Add(d.deadline(last))
	}
	return Act{
		Verb: Range, At: end.Add(d.moment(first, missedOver)), ID: record.ID{Tick: last, Host: d.host()}, From: from, Ticks: n,
		Kind: record.Scheduled, Attempt: 1, Status: status, Reason: why, Due: d.due(last),
	}
}
