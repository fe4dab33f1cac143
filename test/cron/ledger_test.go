package cron

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/test/ticks"
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
	job := ticks.Job{
		Name: name, Step: step, Allow: l.jobs[name].Overlaps() == "allow",
		// Between the last look at the clock and the fork is what a busy machine adds.
		Late: l.jobs[name].Deadline(time.Duration(step)*time.Second) + slack,
	}
	var starts []ticks.Start
	for _, e := range l.entries()[name] {
		starts = append(starts, ticks.Start{Tick: e.tick, Rev: e.rev, Attempt: 1, Pid: e.pid, Overlap: e.word != "start"})
	}
	kinds, wrong := ticks.Audit(job, starts, l.results(name), l.cursor(name))
	for _, w := range wrong {
		l.Error(w)
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

// through waits until all ticks of a job up to one are decided.
func (l *ledger) through(job string, tick int64) {
	l.Helper()
	l.await(record.Range(record.Results, job), func(r record.Result) bool { return r.Tick >= tick })
}
