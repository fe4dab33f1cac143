package plan

import (
	"time"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
)

// Job is what a decision has to know of a job's spec. Each node makes it from the same spec, so that it is the same everywhere.
type Job struct {
	Name     string
	Rev      int64 // mod revision of the spec
	Schedule *schedule.Schedule
	Shift    time.Duration                              // jitter: how long after its tick it is due
	Deadline func(interval time.Duration) time.Duration // how late it may start; interval is that to the tick after
	From, To time.Time                                  // ticks outside are none; zero: no bound
	Since    time.Time                                  // ticks until then are none: the last edit of the schedule
	Paused   record.Stop                                // By is empty where it never was
	Overlap  Overlap
	Prefer   Prefer
	OnAll    bool // each host claims for itself
	CatchUp  CatchUp
	// LostAgain is how many attempts there may be of a start that was lost; 0: it is not started again.
	LostAgain int
}

// Overlap is what becomes of a start while another one of the job has not ended.
type Overlap string

// Overlap policies.
const (
	Forbid   Overlap = "forbid"    // a tick is skipped
	Allow    Overlap = "allow"     // they run side by side
	QueueOne Overlap = "queue_one" // one waits; further ones are skipped
	Replaces Overlap = "replace"   // the one that runs is ended
)

// Prefer says which node goes first.
type Prefer string

// Preferences.
const (
	Spread Prefer = "spread" // another one each time
	Sticky Prefer = "sticky" // the last one, while it can
	Any    Prefer = "any"    // the fastest
)

// CatchUp says what becomes of ticks that nobody started in time.
type CatchUp struct {
	Last   bool          // the latest one is started
	All    bool          // all are started, in order
	Window time.Duration // of those that are not older
	Max    int           // of those, at most this many; 0: no bound
}

// State is what is known of a job in etcd.
type State struct {
	Cursor    record.Cursor
	CursorRev int64 // mod revision; 0: there is no cursor
	Opens     []Open
	Wants     []Want
}

// Open is a start whose end is not proven.
type Open struct {
	record.Open
	ID  record.ID
	Rev int64 // create revision
	// Alive: its run marker stands, or this node knows otherwise that it is not to be settled.
	Alive bool
	// Gone is when this node first knew that its marker does not stand, on the clock of Node.Mono.
	Gone time.Duration
}

// Want is a request for a start.
type Want struct {
	record.Want
	ID  record.ID
	Rev int64 // mod revision
}

// Node is what the deciding node knows of itself and of its peers.
type Node struct {
	Host  string
	Mono  time.Duration // a clock that nobody sets, for what has to be waited for
	Since time.Time     // when it registered: of a job that runs on all hosts nothing before counts here
	// Fit: it may claim, and the job is one that it may run. ReadOnly: it writes nothing at all.
	Fit, ReadOnly bool
	// Slack is how far clocks may be apart: who is not fit waits that much longer before it says that nobody started a tick.
	Slack time.Duration
	// Others tells whether another node could run the job, Absent what to say of a tick that nobody started. They are
	// asked only where that matters.
	Others func() bool
	Absent func() record.Reason
	Pause  record.Stop // of the cluster
}
