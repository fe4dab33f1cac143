package job

import "time"

// Over is j as it is written where old stands; nil: where nothing does. Who added it, when, its pause and when that ended stay as they
// are: they are no part of what is edited. Where the ticks are others than those of old, none before now counts. What j says of these
// itself is left out, but for a pause where there is no old one: so a job can be paused from the start.
func (j *Job) Over(old *Job, now time.Time, by string) *Job {
	next := *j
	now = now.UTC().Truncate(time.Millisecond)
	if old == nil {
		next.AddedBy, next.AddedAt, next.ResumedAt = by, &now, nil
	} else {
		next.AddedBy, next.AddedAt, next.Paused, next.ResumedAt = old.AddedBy, old.AddedAt, old.Paused, old.ResumedAt
	}
	if next.ScheduleDiffers(old) {
		next.ScheduleSince = &now
	} else {
		next.ScheduleSince = old.ScheduleSince
	}
	return &next
}
