package view

import (
	"cmp"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

// States of jobs and of their starts. One whose run marker has gone is Settling, until somebody has said how it ended.
const (
	Running State = "running"
	Paused  State = "paused" // of a job, or of all of them
	Resumed State = "resumed"
	Over    State = "over" // of a start that was seen: how it ended, its result says
)

// Run is a start of a job whose end is not known.
type Run struct {
	State   State
	Job     string
	ID      record.ID
	Host    string // hostile until escaped, as Kind and By
	Kind    record.Kind
	Attempt int
	By      string
	Rev     int64         // of its claim, its fencing token
	Lease   int64         // of the daemon that runs it; 0: the record cannot be read
	Since   time.Time     // when it was claimed, by that daemon's clock; zero: not known
	Left    time.Duration // Unknown until somebody has asked
}

// Tick is when it was due.
func (r *Run) Tick() time.Time { return time.Unix(r.ID.Tick, 0).UTC() }

// Name is its job and its id, as results and commands have it.
func (r *Run) Name() string { return r.Job + "/" + r.ID.String() }

// Line is the run as a program reads it.
func (r *Run) Line() Line {
	return Line{
		Kind: hold.KindCron, Name: r.Job, State: r.State, Host: r.Host, Rev: uint64(r.Rev), Lease: lease(r.Lease), TTLLeft: left(r.Left), Position: -1,
		Since: moment(r.Since),
		Run:   &RunLine{ID: r.ID.String(), Tick: moment(r.Tick()), Kind: string(r.Kind), Attempt: r.Attempt, By: r.By},
	}
}

// Compare orders runs by job, and then by id.
func (r Run) Compare(o Run) int { return cmp.Or(cmp.Compare(r.Job, o.Job), r.ID.Compare(o.ID)) }

// runOf is what an open record, or a run marker, says of a start. A record that cannot be read stands for a start all the same.
func runOf(job string, id record.ID, value []byte, rev int64) Run {
	o, _ := record.Decode[record.Open](value)
	r := Run{Job: job, ID: id, Host: o.Host, Kind: o.Kind, Attempt: o.Attempt, By: o.By, Rev: rev, Lease: o.Lease, Left: Unknown}
	if o.At > 0 {
		r.Since = time.UnixMilli(o.At).UTC()
	}
	return r
}

// Pause keeps the starts of a job away, or of all jobs.
type Pause struct {
	Job  string // "": all
	Stop record.Stop
}

// In reports whether it is in force.
func (p *Pause) In(now time.Time) bool { return p.Stop.In(now.UnixMilli()) }

// Line is the pause as a program reads it.
func (p *Pause) Line() Line {
	return Line{
		Kind: hold.KindCron, Name: p.Job, State: Paused, TTLLeft: left(Unknown), Position: -1,
		Pause: &StopLine{By: p.Stop.By, Why: p.Stop.Why, At: milli(p.Stop.At), Until: milli(p.Stop.Until)},
	}
}

// milli is a moment in unix milliseconds as JSON has it; nothing for none, and for what no calendar has.
func milli(ms int64) string {
	if at := time.UnixMilli(ms).UTC(); ms > 0 && at.Year() < 10000 {
		return moment(at)
	}
	return ""
}
