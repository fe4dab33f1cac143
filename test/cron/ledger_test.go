package cron

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
)

// ledger is what jobs wrote down themselves: a line for each start, by one write to a file that is appended to.
type ledger struct {
	*fleet
	path string
	jobs map[string]*job.Job
}

// entry is one start.
type entry struct {
	job, word string // start, or overlap: another process of the job lived
	tick, rev int64
	pid       int
}

func newLedger(f *fleet) *ledger {
	return &ledger{f, filepath.Join(filepath.Dir(f.mark), "ledger"), map[string]*job.Job{}}
}

// script makes the entry, and then does what is to be done. The lock is one of the kernel's: all that the run starts has it, and
// it is free when nothing of them is left.
func (l *ledger) script(then string) string {
	return fmt.Sprintf(`exec 9>>%[1]s.$CONCH_NAME
word=start; flock -n 9 || word=overlap
echo "$CONCH_NAME $word $CONCH_TICK $CONCH_REV $$" >>%[1]s
%[2]s`, l.path, then)
}

// add puts a job that is written down. Its history is longer than any test.
func (l *ledger) add(name, then, fields string) {
	l.Helper()
	spec := fmt.Sprintf(`{"script":%q,"history":{"ok":10000,"failed":10000},%s`, l.script(then), strings.TrimPrefix(fields, "{"))
	j, err := job.Parse(name, []byte(spec))
	l.must(err)
	l.jobs[name] = j
	l.fleet.add(name, spec)
}

func (l *ledger) entries() map[string][]entry {
	l.Helper()
	all := map[string][]entry{}
	file, err := os.Open(l.path)
	if os.IsNotExist(err) {
		return all
	}
	l.must(err)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var e entry
		if _, err := fmt.Sscan(lines.Text(), &e.job, &e.word, &e.tick, &e.rev, &e.pid); err != nil {
			l.Errorf("a line of the ledger: %q", lines.Text())
		}
		all[e.job] = append(all[e.job], e)
	}
	return all
}

// audit holds the results of a job against the ledger and the clock: each tick of every so many seconds, from the first that counts to
// the last that is decided, has one result, and the result tells the truth. It returns how many there are of each kind.
func (l *ledger) audit(name string, step int64) map[string]int {
	l.Helper()
	side := l.jobs[name].Overlaps() == "allow"
	// Between the last look at the clock and the fork is what a busy machine adds.
	most := (l.jobs[name].Deadline(time.Duration(step)*time.Second) + slack).Milliseconds()
	started := map[int64]entry{}
	var last int64
	for _, e := range l.entries()[name] {
		if before, twice := started[e.tick]; twice {
			l.Errorf("%s: tick %d was started twice: %+v and %+v", name, e.tick, before, e)
		}
		if e.word != "start" && !side {
			l.Errorf("%s: tick %d: %s: %+v", name, e.tick, e.word, e)
		}
		if e.rev <= last && !side {
			l.Errorf("%s: tick %d: token %d after %d", name, e.tick, e.rev, last)
		}
		started[e.tick], last = e, max(last, e.rev)
	}
	kinds, results := map[string]int{}, l.results(name)
	var next int64
	for _, r := range results {
		first, count := r.Tick, max(r.Ticks, 1)
		if r.Ticks > 0 {
			first = r.From
		}
		if next != 0 && first != next || (r.Tick-first)/step+1 != int64(count) {
			l.Errorf("%s: the record of %d to %d, %d ticks, follows what ended before %d", name, first, r.Tick, count, next)
		}
		next = r.Tick + step
		kinds[strings.TrimSpace(string(r.Status)+" "+string(r.Reason))] += count
		l.judge(r, started[r.Tick], first)
		if r.LateMS > most {
			l.Errorf("%s: started %d ms late, want at most %d", r.RunID, r.LateMS, most)
		}
		delete(started, r.Tick)
	}
	if len(started) > 0 {
		l.Errorf("%s: started, and no result tells of it: %v", name, started)
	}
	if end := l.cursor(name); len(results) == 0 || next-step != end {
		l.Errorf("%s: %d results, up to %d, want %d", name, len(results), next-step, end)
	}
	return kinds
}

// cursor is the last tick of a job that is decided.
func (l *ledger) cursor(job string) int64 {
	l.Helper()
	got, err := l.cli.Get(l.Context(), record.CursorKey(job, ""))
	l.must(err)
	if len(got.Kvs) == 0 {
		return 0
	}
	c, ok := record.Decode[record.Cursor](got.Kvs[0].Value)
	if !ok {
		l.Errorf("cursor of %s: %q", job, got.Kvs[0].Value)
	}
	return c.Tick
}

// judge holds one result against what was written down: e is zero where nothing was.
func (l *ledger) judge(r record.Result, e entry, first int64) {
	l.Helper()
	says := r.RunID + ": " + string(r.Status) + " " + string(r.Reason) + " " + r.Detail
	if why, known := reasons[r.Status]; !known || !slices.Contains(why, r.Reason) {
		l.Errorf("%s: that reason has no place there", says)
	}
	switch {
	case e.rev != 0 && (first != r.Tick || e.rev != r.Rev):
		l.Errorf("%s: rev %d, and it was started with %d", says, r.Rev, e.rev)
	case e.rev != 0 && !r.Status.Started():
		l.Errorf("%s, and it was started: %+v", says, e)
	case e.rev == 0 && r.Status == record.Success:
		l.Errorf("%s, and nothing was started", says)
	case r.Status == record.Success && r.Pid != e.pid:
		l.Errorf("%s: pid %d, and it was %d", says, r.Pid, e.pid)
	case r.Kind == record.Scheduled && r.LateMS > 1000:
		l.Errorf("%s: %d ms late, and not called late", says, r.LateMS)
	}
}

// reasons are those that a run of these tests may have, by status.
var reasons = map[record.Status][]record.Reason{
	record.Success: {record.ReasonNone},
	record.Lost:    {record.ReasonSession, record.ReasonDaemon, record.ReasonNode, record.ReasonGuard},
	record.Skipped: {record.ReasonOverlap, record.ReasonNoNode},
	record.Missed:  {record.ReasonDeadline, record.ReasonCapacity, record.ReasonLateClaim, record.ReasonUnconfirmed, record.ReasonSession},
	record.Killed:  {record.ReasonShutdown},
}

// tally is kinds in a line.
func tally(kinds map[string]int) string {
	var words []string
	for kind, n := range kinds {
		words = append(words, strconv.Itoa(n)+" "+kind)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// through waits until all ticks of a job up to one are decided.
func (l *ledger) through(job string, tick int64) {
	l.Helper()
	l.await(record.Range(record.Results, job), func(r record.Result) bool { return r.Tick >= tick })
}
