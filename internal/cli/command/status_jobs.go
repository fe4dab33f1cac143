package command

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// rosterRanges are what it takes to tell what runs.
func (f *statusFlags) rosterRanges() (all []string) {
	switch {
	case f.watch:
		return []string{record.Root}
	case len(f.names) == 0:
		return view.RosterRanges("")
	}
	for _, name := range f.names {
		all = append(all, view.RosterRanges(name)...)
	}
	return all
}

// take takes in those of a roster that are asked for. A pause of the cluster concerns each job.
func (o *overview) take(f *statusFlags, r *view.Roster, now time.Time) {
	for _, run := range r.Runs() {
		if f.means(run.Job) {
			o.runs = append(o.runs, run)
		}
	}
	for _, p := range r.Pauses(now) {
		if p.Job == "" || f.means(p.Job) {
			o.pauses = append(o.pauses, p)
		}
	}
}

// runRow is the row of a run.
func runRow(r view.Run, now time.Time) []string {
	return []string{
		hold.KindCron, r.Job, "-", string(r.State), dash(shown(r.Host)), age(r.Since, now), span(r.Line().TTLLeft), "-", "-",
		strconv.FormatInt(r.Rev, 10), runText(r),
	}
}

// runText says which start it is.
func runText(r view.Run) string {
	text := stamp(r.Tick()) + ", " + dash(shown(string(r.Kind))) + ", attempt " + strconv.Itoa(r.Attempt)
	if id := r.ID.String(); id != strconv.FormatInt(r.ID.Tick, 10) {
		text += ", id " + id
	}
	return text
}

// pausesMost is how many paused jobs are named below a table.
const pausesMost = 20

// pauseLines say what is paused.
func pauseLines(all []view.Pause) (lines []string) {
	for _, p := range all[:min(len(all), pausesMost)] {
		lines = append(lines, hold.KindCron+" "+pauseText(p))
	}
	if more := len(all) - pausesMost; more > 0 {
		lines = append(lines, fmt.Sprintf("%s: %d more jobs are paused", hold.KindCron, more))
	}
	return lines
}

// pauseText says what is paused, by whom and until when.
func pauseText(p view.Pause) string {
	l := p.Line().Pause
	text := dash(p.Job) + ": paused"
	if p.Job == "" {
		text = "all jobs: nothing is claimed: paused"
	}
	text += " by " + shown(l.By)
	if l.At != "" {
		text += " since " + l.At
	}
	if l.Until != "" {
		text += " until " + l.Until
	}
	if l.Why != "" {
		text += ": " + shown(l.Why)
	}
	return text
}

// jobsTold is what was printed of jobs, by what it is of. What is followed by itself is compared by itself.
type jobsTold struct {
	runs   map[string]view.Run
	pauses map[string]view.Pause
}

// jobChanges are the changes from what was told before, in order.
func (f *statusFlags) jobChanges(was *jobsTold, r *view.Roster, now time.Time) (lines []view.Line, texts []string) {
	var is overview
	is.take(f, r, now)
	next := jobsTold{map[string]view.Run{}, map[string]view.Pause{}}
	say := func(l view.Line, text string) { lines, texts = append(lines, l), append(texts, text) }
	for _, run := range is.runs {
		next.runs[run.Name()] = run
	}
	for _, p := range is.pauses {
		next.pauses[p.Job] = p
	}
	for _, name := range slices.Sorted(maps.Keys(was.runs)) {
		if _, there := next.runs[name]; !there {
			run := was.runs[name]
			run.State = view.Over
			say(run.Line(), runChange(run))
		}
	}
	for _, run := range is.runs {
		if was.runs[run.Name()] != run {
			say(run.Line(), runChange(run))
		}
	}
	for _, job := range slices.Sorted(maps.Keys(was.pauses)) {
		if _, there := next.pauses[job]; !there {
			p := was.pauses[job]
			l := p.Line()
			l.State = view.Resumed
			say(l, hold.KindCron+" "+resumedText(job))
		}
	}
	for _, p := range is.pauses {
		if was.pauses[p.Job] != p {
			say(p.Line(), hold.KindCron+" "+pauseText(p))
		}
	}
	*was = next
	return lines, texts
}

func resumedText(job string) string {
	if job == "" {
		return "all jobs: not paused any more"
	}
	return job + ": not paused any more"
}

// runChange says what has become of a start.
func runChange(r view.Run) string {
	text := hold.KindCron + " " + r.Job + "  " + string(r.State) + " on " + dash(shown(r.Host)) + ": " + runText(r)
	return strings.TrimSpace(text)
}

// jobs prints what has changed of jobs.
func (p *statusPrinter) jobs(of string, r *view.Roster) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.jobsTold[of] == nil {
		p.jobsTold[of] = &jobsTold{}
	}
	lines, texts := p.f.jobChanges(p.jobsTold[of], r, now)
	for i, l := range lines {
		l.At = now.UTC().Format(time.RFC3339)
		out := []byte(l.At + "  " + texts[i] + "\n")
		if p.json {
			out = cli.JSONLine(l)
		}
		if err := printLine(p.to, out); err != nil {
			return err
		}
	}
	return nil
}
