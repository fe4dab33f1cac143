package ticks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
)

// said is a result of a tick, of its first start.
func said(tick int64, status record.Status, reason record.Reason) record.Result {
	r := record.Result{Tick: tick, Attempt: 1, Kind: record.Scheduled, Status: status, Reason: reason, RunID: fmt.Sprintf("j/%d", tick)}
	if status.Started() {
		r.Rev, r.Pid = tick+1000, int(tick)
	}
	return r
}

func fine(tick int64) record.Result { return said(tick, record.Success, "") }

// did is the start that goes with it.
func did(tick int64) Start { return Start{Tick: tick, Rev: tick + 1000, Attempt: 1, Pid: int(tick)} }

func with[T any](v T, change func(*T)) T { change(&v); return v }

func dids(ticks ...int64) (all []Start) {
	for _, t := range ticks {
		all = append(all, did(t))
	}
	return all
}

func fines(ticks ...int64) (all []record.Result) {
	for _, t := range ticks {
		all = append(all, fine(t))
	}
	return all
}

func TestWhatIsWrongWithTicksIsFound(t *testing.T) {
	t.Parallel()
	job := Job{Name: "j", Step: 2, Late: 2 * time.Second}
	allow, retried := job, job
	allow.Allow, retried.Retried = true, true
	span := with(said(8, record.Missed, record.ReasonDeadline), func(r *record.Result) { r.From, r.Ticks = 4, 3 })
	again := with(fine(2), func(r *record.Result) { r.Attempt, r.RunID, r.Kind, r.Rev = 2, "j/2.1", record.Retry, 1003 })
	failed := with(fine(2), func(r *record.Result) { r.Status, r.Reason = record.Failed, record.ReasonExit })
	for name, row := range map[string]struct {
		job     Job
		starts  []Start
		results []record.Result
		cursor  int64
		want    string // "": nothing
	}{
		"all is well":                   {job, dids(2, 4), fines(2, 4), 4, ""},
		"a range":                       {job, dids(2, 10), []record.Result{fine(2), span, fine(10)}, 10, ""},
		"lost before it could say so":   {job, nil, []record.Result{said(2, record.Lost, record.ReasonNode)}, 2, ""},
		"lost afterwards":               {job, dids(2), []record.Result{said(2, record.Lost, record.ReasonDaemon)}, 2, ""},
		"started twice":                 {job, append(dids(2), with(did(2), func(s *Start) { s.Rev++ })), fines(2), 2, "tick 2 was started twice"},
		"two alive":                     {job, []Start{with(did(2), func(s *Start) { s.Overlap = true })}, fines(2), 2, "another one is alive"},
		"two alive, as is allowed":      {allow, []Start{with(did(2), func(s *Start) { s.Overlap = true })}, fines(2), 2, ""},
		"a token falls":                 {job, dids(4, 2), fines(2, 4), 4, "tick 2: token 1002 after 1004"},
		"a late start, as is allowed":   {allow, dids(4, 2), fines(2, 4), 4, ""},
		"a tick without a verdict":      {job, dids(2, 6), fines(2, 6), 6, "the record of 6 to 6, 1 ticks, follows what ended before 4"},
		"a range that miscounts":        {job, dids(2), []record.Result{fine(2), with(span, func(r *record.Result) { r.Ticks = 2 })}, 8, "the record of 4 to 8, 2 ticks"},
		"silent":                        {job, dids(2, 4), fines(2), 2, "started, and no result tells of it"},
		"a start in a range":            {job, dids(2, 6), []record.Result{fine(2), span}, 8, "started, and no result tells of it"},
		"a start at the end of a range": {job, dids(2, 8), []record.Result{fine(2), span}, 8, "rev 0, and it was started with 1008"},
		"skipped, and started": {job, dids(2), []record.Result{with(said(2, record.Skipped, record.ReasonOverlap), func(r *record.Result) { r.Rev = 1002 })}, 2,
			"and it was started"},
		"success of nothing":         {job, nil, fines(2), 2, "and nothing was started"},
		"another token":              {job, dids(2), []record.Result{with(fine(2), func(r *record.Result) { r.Rev = 7 })}, 2, "rev 7, and it was started with 1002"},
		"another process":            {job, dids(2), []record.Result{with(fine(2), func(r *record.Result) { r.Pid = 7 })}, 2, "pid 7, and it was 2"},
		"no reason":                  {job, nil, []record.Result{said(2, record.Missed, "")}, 2, "that reason has no place there"},
		"a reason of something else": {job, dids(2), []record.Result{said(2, record.Killed, record.ReasonKill)}, 2, "that reason has no place there"},
		"not called late":            {job, dids(2), []record.Result{with(fine(2), func(r *record.Result) { r.LateMS = 1001 })}, 2, "1001 ms late, and not called late"},
		"called late":                {job, dids(2), []record.Result{with(fine(2), func(r *record.Result) { r.LateMS, r.Kind = 1001, record.Late })}, 2, ""},
		"too late":                   {job, dids(2), []record.Result{with(fine(2), func(r *record.Result) { r.LateMS, r.Kind = 2001, record.Late })}, 2, "want at most 2000"},
		"the cursor is elsewhere":    {job, dids(2), fines(2), 4, "1 results, up to 2, want 4"},
		"nothing at all":             {job, nil, nil, 0, "0 results"},
		"a name that is none":        {job, nil, []record.Result{with(said(2, record.Missed, record.ReasonDeadline), func(r *record.Result) { r.RunID = "j" })}, 2, "j"},
		"failed":                     {job, dids(2), []record.Result{failed}, 2, "that reason has no place there"},
		"failed, and started again":  {retried, append(dids(2), Start{Tick: 2, Rev: 1003, Attempt: 2, Pid: 2}), []record.Result{failed, again}, 2, ""},
		"started again twice": {retried, append(dids(2), Start{Tick: 2, Rev: 1003, Attempt: 2, Pid: 2}, Start{Tick: 2, Rev: 1004, Attempt: 2, Pid: 3}),
			[]record.Result{failed, again}, 2, "tick 2 was started twice"},
		"started again, and silent": {retried, append(dids(2), Start{Tick: 2, Rev: 1003, Attempt: 2, Pid: 2}), []record.Result{failed}, 2, "no result tells of it"},
	} {
		_, wrong := Audit(row.job, row.starts, row.results, row.cursor)
		if all := strings.Join(wrong, "\n"); (all == "") != (row.want == "") || !strings.Contains(all, row.want) {
			t.Errorf("%s: found %q, want %q", name, wrong, row.want)
		}
	}
}

func TestTicksAreCounted(t *testing.T) {
	t.Parallel()
	kinds, wrong := Audit(Job{Name: "j", Step: 2}, dids(2), []record.Result{fine(2), with(said(8, record.Missed, record.ReasonDeadline), func(r *record.Result) { r.From, r.Ticks = 4, 3 })}, 8)
	if got := Tally(kinds); got != "1 success, 3 missed start_deadline" || len(wrong) > 0 {
		t.Errorf("%s, %v", got, wrong)
	}
}
