package command

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/manifest"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// What a change does to a job.
const (
	jobCreated   = "created"
	jobUpdated   = "updated"
	jobUnchanged = "unchanged"
	jobRemoved   = "removed"
)

// jobChange is what a command does to one job.
type jobChange struct {
	was  store.Stored
	old  *job.Job // nil: there is none, or it cannot be read
	next *job.Job // nil: it is removed
	verb string
}

// changeTo is the change that makes of what stands what was written.
func (a *cronJobs) changeTo(was store.Stored, written *job.Job) jobChange {
	ch := jobChange{was: was, verb: jobCreated}
	if was.Rev != 0 {
		ch.verb = jobUpdated
		ch.old, _ = job.Parse(was.Name, was.Value)
	}
	ch.next = written.Over(ch.old, a.now(), a.by)
	if ch.old != nil && bytes.Equal(ch.old.Encode(), ch.next.Encode()) {
		ch.verb = jobUnchanged
	}
	return ch
}

// check refuses a job whose schedule has no tick to come, unless that is how it stands already.
func (ch jobChange) check(now time.Time) error {
	if ch.next == nil || !ch.next.ScheduleDiffers(ch.old) {
		return nil
	}
	plan, err := ch.next.Plan(ch.was.Name, nil)
	if err != nil {
		return err
	}
	return plan.Check(now)
}

// make does it. ok is false where the job is another one by now.
func (a *cronJobs) make(ctx context.Context, ch jobChange) (ok bool, err error) {
	if ch.verb == jobUnchanged {
		return true, nil
	}
	if ch.next == nil {
		err = a.ask(ctx, removeNeeds(ch.was.Name), func(ctx context.Context) error {
			ok, err = store.RemoveJob(ctx, a.client, ch.was)
			return err
		})
		return ok, err
	}
	err = a.ask(ctx, both(record.JobKey(ch.was.Name)), func(ctx context.Context) error {
		ok, err = store.WriteJob(ctx, a.client, ch.was, ch.next.Encode())
		return err
	})
	return ok, err
}

// removeNeeds are what removing a job takes. Of the cursors it is that of the job and those that begin with its name and an @: a range
// that is told as all of them.
func removeNeeds(name string) []cli.Need {
	all := append(both(record.JobKey(name)), both(record.Cursors)...)
	return append(all, both(record.Range(record.Wants, name))...)
}

// insistMost is how often a change is tried anew where somebody else was faster. A pause comes now and then, not ten times in a row.
const insistMost = 10

// insist does what decide makes of the job as it stands, again where it is another one by then.
func (a *cronJobs) insist(ctx context.Context, ch jobChange, decide func(store.Stored) (jobChange, error)) (jobChange, error) {
	for range insistMost {
		ok, err := a.make(ctx, ch)
		if ok || err != nil {
			return ch, err
		}
		was, err := a.look(ctx, ch.was.Name)
		if err != nil {
			return ch, err
		}
		if ch, err = decide(was); err != nil {
			return ch, err
		}
	}
	return ch, refuse(hold.ErrNo, "job %s changes all the time; nothing was written", ch.was.Name)
}

// diff is what changes, line by line, in JSON that is safe on a terminal.
func (ch jobChange) diff() string {
	from, to := "/dev/null", "/dev/null"
	if ch.was.Rev != 0 {
		from = "stored/" + ch.was.Name
	}
	if ch.next != nil {
		to = "given/" + ch.was.Name
	}
	old := jsonLines(ch.was.Value)
	if ch.old != nil {
		old = jsonLines(ch.old.Encode()) // however it was written
	}
	var next []string
	if ch.next != nil {
		next = jsonLines(ch.next.Encode())
	}
	return manifest.Diff(from, to, old, next)
}

// jsonLines is a job with a line for each field; what is no JSON is one line.
func jsonLines(value []byte) []string {
	if len(value) == 0 {
		return nil
	}
	if !json.Valid(value) {
		return []string{shown(string(value))}
	}
	var text bytes.Buffer
	_ = json.Indent(&text, bytes.TrimSpace(cli.JSONLine(json.RawMessage(value))), "", "  ") // it is valid
	return strings.Split(text.String(), "\n")
}
