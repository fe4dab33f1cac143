package plan

import (
	"time"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
)

// JobOf is what a decision has to know of a spec at a mod revision. The error is that of job.Job.Plan.
func JobOf(name string, rev int64, spec *job.Job, zones *schedule.Zones) (Job, error) {
	ticks, err := spec.Plan(name, zones)
	if err != nil {
		return Job{}, err
	}
	c := spec.CatchUp()
	j := Job{
		Name: name, Rev: rev, Schedule: ticks, Shift: spec.Shift(name), Deadline: spec.Deadline,
		From: moment(spec.StartAt), To: moment(spec.EndAt), Since: moment(spec.ScheduleSince), Paused: pause(spec),
		Overlap: Overlap(spec.Overlaps()), Prefer: Prefer(spec.Preference()), OnAll: spec.OnAll(),
		CatchUp: CatchUp{Last: c.Policy == job.CatchupLast, All: c.Policy == job.CatchupAll, Window: time.Duration(c.Window), Max: c.Max},
	}
	if spec.RetriesLost() {
		j.LostAgain = 2
		if spec.Retry != nil {
			j.LostAgain = spec.Retry.Max + 1
		}
	}
	return j, nil
}

func moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// nobody stands for who paused a job and did not say so.
const nobody = "?"

// pause is the job's own: the one that is in force, or the end of the last one, until which all that was due is one record.
func pause(spec *job.Job) record.Stop {
	switch p, r := spec.Paused, spec.ResumedAt; {
	case p != nil:
		s := record.Stop{By: p.By, Why: p.Why, At: p.At.UnixMilli()}
		if s.By == "" {
			s.By = nobody
		}
		if p.Until != nil {
			s.Until = p.Until.UnixMilli()
		}
		return s
	case r != nil:
		return record.Stop{By: nobody, Resumed: r.UnixMilli()}
	}
	return record.Stop{}
}
