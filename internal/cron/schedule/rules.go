package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cron/nearest"
)

// calendarRule is an expression of fields, in a zone. What was written is kept instead of what was read of it: Lint is rarely asked.
type calendarRule struct {
	calendar
	spec    string
	options Options
}

func newCalendarRule(spec string, o Options) (rule, error) {
	fields, err := parseFields(spec, o)
	if err != nil {
		return nil, err
	}
	c, err := newCalendar(fields)
	if err != nil {
		return nil, err
	}
	return &calendarRule{*c, spec, o}, nil
}

func (r *calendarRule) search() *search {
	return &search{calendar: &r.calendar, zone: r.options.Zone, dst: r.options.DST}
}

func (r *calendarRule) next(t int64) (int64, bool) { return r.search().next(t) }
func (r *calendarRule) prev(t int64) (int64, bool) { return r.search().prev(t) }

// manual has no ticks.
type manual struct{}

func (manual) next(int64) (int64, bool) { return 0, false }
func (manual) prev(int64) (int64, bool) { return 0, false }
func (manual) explain() string          { return "never by itself, only when asked to run" }
func (manual) lint(time.Time) []string  { return nil }

// every has its ticks at the multiples of a number of seconds since 1970: the same ones on all nodes, and after each restart.
type every int64

// maxDays is the longest step of @every, a bit less than ten years.
const maxDays = 10 * 365

func parseEvery(args []word) (rule, error) {
	const want = "@every needs a duration of whole seconds, such as 90s, 15m or 24h"
	if len(args) != 1 {
		return nil, refuse("%s; there are %d words", want, len(args))
	}
	d, err := time.ParseDuration(args[0].text)
	switch {
	case err != nil:
		near := ""
		if days, ok := number(strings.TrimSuffix(args[0].text, "d")); ok && days <= maxDays {
			near = fmt.Sprintf("%dh", 24*days)
		}
		return nil, refuse("%s at column %d: %s%s", quote(args[0].text), args[0].col, want, nearest.Hint(near))
	case d%time.Second != 0 || d < time.Second || d > maxDays*24*time.Hour:
		return nil, refuse("%s at column %d: %s, from 1s to %dh", quote(args[0].text), args[0].col, want, 24*maxDays)
	}
	return every(d / time.Second), nil
}

func (e every) next(t int64) (int64, bool) {
	return e.down(t + int64(e) - 1), true
}

func (e every) prev(t int64) (int64, bool) { return e.down(t), true }

// down is the last multiple that is not greater. There is no negative time here.
func (e every) down(t int64) int64 { return t - t%int64(e) }

// at has the ticks of one wall time or moment: one, and two under DSTLiteral where the clock shows it twice.
type at struct {
	ticks []int64
	zone  *Zone
}

// The forms of @at. Without an offset it is a wall time, in the zone of the job.
var (
	momentForms = []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04Z07:00"}
	wallForms   = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}
)

func parseAt(args []word, o Options) (rule, error) {
	var texts []string
	for _, w := range args {
		texts = append(texts, w.text)
	}
	text := strings.Join(texts, " ")
	moment, isMoment := parseTime(momentForms, text)
	wall, isWall := parseTime(wallForms, text)
	if !isMoment && !isWall {
		return nil, refuse("@at %s: want a time of whole seconds from 1970 to 9999, such as 2027-03-14T02:30:00Z, or 2027-03-14T02:30 in the zone of the job", quote(text))
	}
	if isMoment {
		return at{[]int64{moment}, o.Zone}, nil
	}

	// As a calendar with this one wall time in it, at a fixed time.
	s := &search{zone: o.Zone, dst: o.DST}
	ticks := s.at(wall)
	if len(ticks) == 0 {
		return nil, refuse("@at %s: no clock in %s ever shows that, and dst is %s: want another time, or dst cron", quote(text), o.Zone.name, o.DST)
	}
	return at{ticks, o.Zone}, nil
}

// parseTime reads whole seconds in one of some forms. A time without an offset is taken as if it were UTC: as wall times are counted.
func parseTime(forms []string, text string) (int64, bool) {
	for _, form := range forms {
		t, err := time.ParseInLocation(form, text, time.UTC)
		if err == nil && t.Nanosecond() == 0 && t.Unix() >= 0 && t.Unix() <= int64(lastTick) {
			return t.Unix(), true
		}
	}
	return 0, false
}

// at gives the ticks of one wall time.
func (s *search) at(wall int64) (ticks []int64) {
	if s.dst != DSTLiteral {
		if tick, shows := s.first(wall); shows == wall || s.dst == DSTCron {
			ticks = append(ticks, tick)
		}
		return ticks
	}
	for t := wall - maxOffset; t <= wall+maxOffset; {
		here := s.segment(t)
		if tick := wall - here.offset; tick >= t && tick < here.end {
			ticks = append(ticks, tick)
		}
		t = here.end
	}
	return ticks
}

func (a at) next(t int64) (int64, bool) {
	i, _ := slices.BinarySearch(a.ticks, t)
	if i == len(a.ticks) {
		return 0, false
	}
	return a.ticks[i], true
}

func (a at) prev(t int64) (int64, bool) {
	i, _ := slices.BinarySearch(a.ticks, t+1)
	if i == 0 {
		return 0, false
	}
	return a.ticks[i-1], true
}

func (a at) explain() string {
	var all []string
	for _, t := range a.ticks {
		all = append(all, time.Unix(t, 0).In(a.zone.loc).Format("2006-01-02 15:04:05 -0700"))
	}
	return fmt.Sprintf("at %s, and never again", join(all, "and"))
}

func (a at) lint(time.Time) []string { return nil }
