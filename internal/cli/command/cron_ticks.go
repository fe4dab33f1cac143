package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/cron/store"
)

// ticks are the ticks of a job, or of an expression, in a time zone.
type ticks struct {
	plan       *schedule.Schedule
	zone       *schedule.Zone
	start, end *time.Time // nil: no bound
}

// ticksOf are those of a job.
func ticksOf(zones *schedule.Zones, name string, j *job.Job) (t ticks, err error) {
	if t.plan, err = j.Plan(name, zones); err != nil {
		return t, err
	}
	t.zone, err = zones.Load(j.TZ)
	t.start, t.end = j.StartAt, j.EndAt
	return t, err
}

// next is the first tick later than a moment that counts.
func (t ticks) next(after time.Time) (schedule.Tick, bool) {
	if t.start != nil && t.start.After(after) {
		after = t.start.Add(-1)
	}
	tick, ok := t.plan.Next(after)
	if !ok || t.end != nil && tick.Time().After(*t.end) {
		return 0, false
	}
	return tick, true
}

// local is a tick as the clocks of the zone show it.
func (t ticks) local(tick schedule.Tick) time.Time { return tick.Time().In(t.zone.Location()) }

const localFormat = "2006-01-02 15:04:05 -0700 MST"

// localText is that for people. Some zones have no abbreviation of their own, but the offset once more.
func (t ticks) localText(tick schedule.Tick) string {
	text := t.local(tick).Format(localFormat)
	if at := strings.LastIndexByte(text, ' '); strings.ContainsAny(text[at+1:at+2], "+-") {
		return text[:at]
	}
	return text
}

// clocks says what the clocks of the zone do on the day of a tick; nothing on most days.
func (t ticks) clocks(tick schedule.Tick) string {
	y, m, d := t.local(tick).Date()
	loc := t.zone.Location()
	var all []string
	for _, c := range t.zone.Changes(time.Date(y, m, d, 0, 0, 0, 0, loc), time.Date(y, m, d+1, 0, 0, 0, 0, loc)) {
		way, by := "forward", c.After-c.Before
		if by < 0 {
			way, by = "back", -by
		}
		size := job.Duration(time.Duration(by) * time.Second)
		all = append(all, fmt.Sprintf("clocks %s %s, to %s", way, size, t.local(c.At).Format("15:04")))
	}
	return strings.Join(all, "; ")
}

// away is how far a moment is from another, for people: in 3h12m, or 5m ago.
func away(from, to time.Time) string {
	d := to.Sub(from)
	past := d < 0
	if past {
		d = -d
	}
	switch {
	case d >= 48*time.Hour:
		d = d.Truncate(time.Hour)
	case d >= time.Hour:
		d = d.Truncate(time.Minute)
	default:
		d = d.Truncate(time.Second)
	}
	text := job.Duration(d).String()
	if days := d / (24 * time.Hour); days >= 2 {
		text = fmt.Sprintf("%dd%dh", days, d/time.Hour%24)
	}
	if past {
		return text + " ago"
	}
	return "in " + text
}

// schedules is the schedule of a job in one line, as it was typed, safe on a terminal.
func schedules(j *job.Job) string { return shown(strings.Join(j.Schedule, "; ")) }

// pausedText says until when a job is paused; nothing where it is not.
func pausedText(j *job.Job, now time.Time) string {
	switch {
	case !j.PausedAt(now):
		return ""
	case j.Paused.Until != nil:
		return "until " + j.Paused.Until.UTC().Format(time.RFC3339)
	}
	return "yes"
}

// known is a job in etcd with all that follows from it; err says why it cannot be read.
type known struct {
	store.Stored
	job   *job.Job
	ticks ticks
	err   error
}

func knownOf(zones *schedule.Zones, s store.Stored) known {
	k := known{Stored: s}
	if k.job, k.err = parsed(s); k.err == nil {
		k.ticks, k.err = ticksOf(zones, s.Name, k.job)
	}
	return k
}
