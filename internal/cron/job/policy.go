package job

import "github.com/go-coord/coord/internal/cron/schedule"

// Overlap is what happens at a tick while a run of the same job has not ended.
type Overlap string

// The overlaps. Forbid skips the tick, and is the default; Allow runs it beside the other; QueueOne runs it when the other has ended,
// and keeps no more than one waiting; Replace ends the other first.
const (
	OverlapForbid   Overlap = "forbid"
	OverlapAllow    Overlap = "allow"
	OverlapQueueOne Overlap = "queue_one"
	OverlapReplace  Overlap = "replace"
)

// Preference is which of the nodes that may run a job should.
type Preference string

// The preferences. Spread is another one from tick to tick, and the default; Sticky is the same one while it lives; Any is whoever comes
// first.
const (
	PreferSpread Preference = "spread"
	PreferSticky Preference = "sticky"
	PreferAny    Preference = "any"
)

// Policy is which missed ticks are caught up with.
type Policy string

// The policies. CatchupNone is the default.
const (
	CatchupNone Policy = "none"
	CatchupLast Policy = "last"
	CatchupAll  Policy = "all"
)

// Values of RunOn: one node a tick, which is the default, or every node.
const (
	RunOnOne = "one"
	RunOnAll = "all"
)

// Values of OnLost, for a run whose node died with it: it is left at that, which is the default, or run once more, though nobody
// knows how far it came.
const (
	LostSkip  = "skip"
	LostRetry = "retry"
)

// dstModes are the values of DST.
var dstModes = []string{string(schedule.DSTCron), string(schedule.DSTLiteral), string(schedule.DSTSkip)}
