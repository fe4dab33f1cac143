package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
)

// Roster is what runs of jobs, and what is paused, as far as somebody has put it there. It is not safe for concurrent use.
type Roster struct {
	open   map[string]Run // open records, by Run.Name
	alive  map[string]Run // run markers
	pauses map[string]record.Stop
}

// NewRoster makes one of nothing yet.
func NewRoster() *Roster {
	return &Roster{open: map[string]Run{}, alive: map[string]Run{}, pauses: map[string]record.Stop{}}
}

// RosterRanges are what a Roster is made of, of one job or of all where job is "": prefixes, where they end in a slash or an @, and
// keys. Neither claims nor results are among them: there are many.
func RosterRanges(job string) []string {
	if job == "" {
		return []string{record.Runs, record.Opens, record.Jobs, record.Pause}
	}
	return []string{record.Range(record.Runs, job), record.Opens + job + "/", record.Opens + job + "@", record.JobKey(job), record.Pause}
}

// Put takes in a key with its value and create revision.
func (r *Roster) Put(key string, value []byte, rev int64) {
	switch {
	case key == record.Pause:
		stop, _ := record.Decode[record.Stop](value)
		stop.By = cmp.Or(stop.By, "?") // there is a pause, whoever wrote it
		r.pauses[""] = stop
	case strings.HasPrefix(key, record.Runs):
		if job, id, err := record.ParseKey(record.Runs, key); err == nil {
			run := runOf(job, id, value, rev)
			r.alive[run.Name()] = run
		}
	case strings.HasPrefix(key, record.Opens):
		if job, id, err := record.ParseOpen(key); err == nil {
			run := runOf(job, id, value, rev)
			r.open[run.Name()] = run
		}
	case strings.HasPrefix(key, record.Jobs):
		r.job(key, value)
	}
}

// Delete takes out a key.
func (r *Roster) Delete(key string) {
	switch {
	case key == record.Pause:
		delete(r.pauses, "")
	case strings.HasPrefix(key, record.Runs):
		delete(r.alive, strings.TrimPrefix(key, record.Runs))
	case strings.HasPrefix(key, record.Opens):
		if job, id, err := record.ParseOpen(key); err == nil {
			run := Run{Job: job, ID: id}
			delete(r.open, run.Name())
		}
	case strings.HasPrefix(key, record.Jobs):
		delete(r.pauses, strings.TrimPrefix(key, record.Jobs))
	}
}

// job takes in a job. Of its spec only the pause is looked at: a spec may be large, and most have none.
func (r *Roster) job(key string, value []byte) {
	name, err := record.ParseName(record.Jobs, key)
	if err != nil {
		return
	}
	delete(r.pauses, name)
	if !bytes.Contains(value, []byte(`"paused"`)) {
		return
	}
	var spec struct {
		Paused *struct {
			By, Why   string
			At, Until *time.Time
		}
	}
	if json.Unmarshal(value, &spec) != nil || spec.Paused == nil {
		return
	}
	stop := record.Stop{By: cmp.Or(spec.Paused.By, "?"), Why: spec.Paused.Why}
	if at := spec.Paused.At; at != nil {
		stop.At = at.UnixMilli()
	}
	if until := spec.Paused.Until; until != nil {
		stop.Until = until.UnixMilli()
	}
	r.pauses[name] = stop
}

// Runs are the starts whose end is not known, in order. What has an open record and no run marker is Settling; a marker alone, which
// no daemon of ours leaves, is Running.
func (r *Roster) Runs() []Run {
	all := make([]Run, 0, len(r.open))
	for name, run := range r.open {
		run.State = Settling
		if _, lives := r.alive[name]; lives {
			run.State = Running
		}
		all = append(all, run)
	}
	for name, run := range r.alive {
		if _, known := r.open[name]; !known {
			run.State = Running
			all = append(all, run)
		}
	}
	slices.SortFunc(all, Run.Compare)
	return all
}

// Pauses are those in force, by job; that of all jobs is first.
func (r *Roster) Pauses(now time.Time) (all []Pause) {
	for _, job := range slices.Sorted(maps.Keys(r.pauses)) {
		if p := (Pause{Job: job, Stop: r.pauses[job]}); p.In(now) {
			all = append(all, p)
		}
	}
	return all
}
