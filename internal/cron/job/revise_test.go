package job_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/go-coord/coord/internal/cron/job"
)

func TestWhatStaysWhenAJobIsWrittenOverAnother(t *testing.T) {
	t.Parallel()
	early := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	now := time.Date(2027, 3, 14, 2, 30, 0, 1_999_999, time.FixedZone("", 3600))
	stamp := time.Date(2027, 3, 14, 1, 30, 0, 1_000_000, time.UTC)
	old := &job.Job{
		Schedule: job.Strings{"@daily"}, Script: "a", AddedBy: "first", AddedAt: &early, ScheduleSince: &early, ResumedAt: &early,
		Paused: &job.Paused{Why: "disk"}, Labels: map[string]string{"a": "b"},
	}
	written := func(schedule string) *job.Job {
		return &job.Job{
			Schedule: job.Strings{schedule}, Script: "b", AddedBy: "liar", AddedAt: &now, ScheduleSince: &now, ResumedAt: &now, Paused: &job.Paused{Why: "mine"},
		}
	}
	for _, tt := range []struct {
		name     string
		old      *job.Job
		schedule string
		want     job.Job
	}{
		{"nothing", nil, "@daily", job.Job{AddedBy: "second", AddedAt: &stamp, ScheduleSince: &stamp, Paused: &job.Paused{Why: "mine"}}},
		{"the same schedule", old, "@daily", job.Job{AddedBy: "first", AddedAt: &early, ScheduleSince: &early, ResumedAt: &early, Paused: old.Paused}},
		{"another schedule", old, "@hourly", job.Job{AddedBy: "first", AddedAt: &early, ScheduleSince: &stamp, ResumedAt: &early, Paused: old.Paused}},
	} {
		tt.want.Schedule, tt.want.Script = job.Strings{tt.schedule}, "b"
		given := written(tt.schedule)
		if diff := cmp.Diff(&tt.want, given.Over(tt.old, now, "second")); diff != "" {
			t.Errorf("over %s: -want +got:\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(written(tt.schedule), given); diff != "" {
			t.Errorf("over %s: what was given was changed:\n%s", tt.name, diff)
		}
	}
}
