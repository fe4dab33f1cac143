package cron

import (
	"slices"
	"time"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
)

// entry is all that a node knows of one job.
type entry struct {
	name    string
	spec    *job.Job // nil: it was removed, or cannot be read
	job     plan.Job
	state   plan.State // its cursor is that of this host where the job runs on all
	cursors map[string]at

	at      time.Time // when to look at it
	place   int       // in the agenda; -1: it is not there
	busy    bool      // a transaction about it is under way
	ready   bool      // it waits for its turn
	stirred bool      // something was learned of it since the last look
	shy     time.Time // it lost a race: what it knows is old, and news is on its way
	losses  int       // races lost since something was last learned of it: it may be about nothing
	wins    int       // results written since the last look at its history
	broken  string    // why its spec cannot be read
	// seen is when this node first saw its schedule, changed when it saw it change; zero: not yet.
	seen, changed time.Time
}

// at is a cursor and its mod revision.
type at struct {
	record.Cursor
	rev int64
}

// manual is the schedule of what has no ticks of its own (any more).
func manual() *schedule.Schedule {
	s, _ := schedule.Parse(schedule.Options{}, "@manual") // a word of the language
	return s
}

// read takes in a spec, at a moment. Whoever wrote it should have said since when its schedule counts; where nobody did, that is
// the moment at which this node sees that it is another one.
func (e *entry) read(raw []byte, rev int64, zones *schedule.Zones, now time.Time) error {
	spec, err := job.ParseIn(zones, e.name, raw)
	var known plan.Job
	if err == nil {
		known, err = plan.JobOf(e.name, rev, spec, zones)
	}
	if err != nil {
		e.removed()
		e.job.Rev, e.broken = rev, err.Error()
		return err
	}
	if e.seen.IsZero() {
		e.seen = now
	}
	if e.spec != nil && e.spec.ScheduleDiffers(spec) {
		e.seen, e.changed = now, now
	}
	e.spec, e.broken, e.job = spec, "", known
	return nil
}

// removed leaves what is to be closed yet, and no ticks.
func (e *entry) removed() {
	e.spec, e.broken = nil, ""
	e.job = plan.Job{Name: e.name, Schedule: manual(), Deadline: func(time.Duration) time.Duration { return 0 }, Overlap: plan.Allow}
}

// empty reports whether nothing is left to know.
func (e *entry) empty() bool {
	return e.job.Rev == 0 && len(e.cursors)+len(e.state.Opens)+len(e.state.Wants) == 0 && !e.busy
}

// follow takes the cursor that counts for this host.
func (e *entry) follow(host string) {
	which := ""
	if e.job.OnAll {
		which = host
	}
	c, ok := e.cursors[which]
	if e.spec != nil && e.spec.ScheduleSince == nil {
		e.job.Since = e.changed
		if !ok {
			e.job.Since = e.seen
		}
	}
	e.state.Cursor, e.state.CursorRev = c.Cursor, c.rev
}

func (e *entry) open(id record.ID) *plan.Open {
	for i := range e.state.Opens {
		if e.state.Opens[i].ID == id {
			return &e.state.Opens[i]
		}
	}
	return nil
}

// close forgets a start that has ended.
func (e *entry) close(id record.ID) {
	e.state.Opens = slices.DeleteFunc(e.state.Opens, func(o plan.Open) bool { return o.ID == id })
}

// unwant forgets a request.
func (e *entry) unwant(id record.ID) {
	e.state.Wants = slices.DeleteFunc(e.state.Wants, func(w plan.Want) bool { return w.ID == id })
}
