// Package ticks holds what cron says of the ticks of a job against what the job wrote down of its starts: each tick has one verdict,
// at most one start, and the verdict tells the truth.
//
// It asks nobody: who wants a job judged hands it the starts, the results and the last tick that is decided, of one host where each
// host has its own. How the starts were written down is the caller's affair, and so is how it was found out that two were alive at
// once.
package ticks

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
)

// Job is what is to be known of a job.
type Job struct {
	Name    string
	Step    int64         // seconds from tick to tick
	Allow   bool          // overlap: two may be alive at once, and their starts need not be in the order of their claims
	Retried bool          // runs may fail, and be started again
	Late    time.Duration // how late a start may be
}

// Start is one that the job wrote down.
type Start struct {
	Tick, Rev int64
	Attempt   int // 1: the first
	Pid       int
	Overlap   bool // another one was alive
}

// run tells starts apart.
type run struct {
	tick    int64
	attempt int
}

// audit is one under way.
type audit struct {
	Job
	started map[run]Start // that no result has told of yet
	kinds   map[string]int
	wrong   []string
}

func (a *audit) errorf(format string, args ...any) {
	a.wrong = append(a.wrong, a.Name+": "+fmt.Sprintf(format, args...))
}

// Audit judges a job by its starts in the order in which they were written down, its results, and the cursor, the last tick that is
// decided. It returns how many ticks ended in which way, and all that is wrong.
func Audit(job Job, starts []Start, results []record.Result, cursor int64) (kinds map[string]int, wrong []string) {
	a := &audit{Job: job, started: map[run]Start{}, kinds: map[string]int{}}
	a.starts(starts)
	results = slices.Clone(results)
	slices.SortStableFunc(results, func(x, y record.Result) int {
		return cmp.Or(cmp.Compare(x.Tick, y.Tick), cmp.Compare(x.Attempt, y.Attempt))
	})
	var next int64
	for _, r := range results {
		id, err := r.ID()
		if err != nil {
			a.errorf("%v", err)
		}
		first, count := r.Tick, max(r.Ticks, 1)
		if r.Ticks > 0 {
			first = r.From
		}
		if id.N == 0 {
			if next != 0 && first != next || (r.Tick-first)/a.Step+1 != int64(count) {
				a.errorf("the record of %d to %d, %d ticks, follows what ended before %d", first, r.Tick, count, next)
			}
			next = r.Tick + a.Step
		}
		a.kinds[strings.TrimSpace(string(r.Status)+" "+string(r.Reason))] += count
		a.judge(r, first)
		delete(a.started, run{r.Tick, r.Attempt})
	}
	for _, s := range a.started {
		a.errorf("started, and no result tells of it: %+v", s)
	}
	if len(results) == 0 || next-a.Step != cursor {
		a.errorf("%d results, up to %d, want %d", len(results), next-a.Step, cursor)
	}
	return a.kinds, a.wrong
}

// starts judges those alone: none twice, none beside another, tokens that rise.
func (a *audit) starts(starts []Start) {
	var last int64
	for _, s := range starts {
		name := run{s.Tick, s.Attempt}
		if before, twice := a.started[name]; twice {
			a.errorf("tick %d was started twice: %+v and %+v", s.Tick, before, s)
		}
		if s.Overlap && !a.Allow {
			a.errorf("tick %d: another one is alive: %+v", s.Tick, s)
		}
		if s.Rev <= last && !a.Allow {
			a.errorf("tick %d: token %d after %d", s.Tick, s.Rev, last)
		}
		a.started[name], last = s, max(last, s.Rev)
	}
}

// judge holds one result against what was written down: the start is zero where nothing was.
func (a *audit) judge(r record.Result, first int64) {
	s := a.started[run{r.Tick, r.Attempt}]
	says := strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", r.RunID, r.Status, r.Reason, r.Detail))
	if why, known := a.reasons()[r.Status]; !known || !slices.Contains(why, r.Reason) {
		a.errorf("%s: that reason has no place there", says)
	}
	switch {
	case s.Rev != 0 && (first != r.Tick || s.Rev != r.Rev):
		a.errorf("%s: rev %d, and it was started with %d", says, r.Rev, s.Rev)
	case s.Rev != 0 && !r.Status.Started():
		a.errorf("%s, and it was started: %+v", says, s)
	case s.Rev == 0 && (r.Status == record.Success || r.Status == record.Failed):
		a.errorf("%s, and nothing was started", says)
	case (r.Status == record.Success || r.Status == record.Failed) && r.Pid != s.Pid:
		a.errorf("%s: pid %d, and it was %d", says, r.Pid, s.Pid)
	case r.Kind == record.Scheduled && r.LateMS > 1000:
		a.errorf("%s: %d ms late, and not called late", says, r.LateMS)
	}
	if r.LateMS > a.Late.Milliseconds() {
		a.errorf("%s: %d ms late, want at most %d", says, r.LateMS, a.Late.Milliseconds())
	}
}

// reasons are those that a tick may have, by status, where nobody pauses, kills or changes the job.
func (a *audit) reasons() map[record.Status][]record.Reason {
	why := map[record.Status][]record.Reason{
		record.Success: {record.ReasonNone},
		record.Lost:    {record.ReasonSession, record.ReasonDaemon, record.ReasonNode, record.ReasonGuard},
		record.Skipped: {record.ReasonOverlap, record.ReasonNoNode},
		record.Missed:  {record.ReasonDeadline, record.ReasonCapacity, record.ReasonLateClaim, record.ReasonUnconfirmed, record.ReasonSession},
		record.Killed:  {record.ReasonShutdown},
	}
	if a.Retried {
		why[record.Failed] = []record.Reason{record.ReasonExit}
	}
	return why
}

// Tally is kinds in a line.
func Tally(kinds map[string]int) string {
	var words []string
	for kind, n := range kinds {
		words = append(words, strconv.Itoa(n)+" "+kind)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}
