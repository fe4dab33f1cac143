package schedule

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

func (e every) lint(time.Time) []string {
	if e%day != 0 {
		return nil
	}
	return []string{fmt.Sprintf("@every %s is at 00:00 UTC, in every time zone: a time of day in the zone of the job is @daily or 30 2 * * *", e.duration())}
}

func (r *calendarRule) lint(from time.Time) []string {
	// It was read before, without an error.
	fields, _ := parseFields(r.spec, r.options)
	var all []string
	for which := range fields {
		for _, step := range fields[which].open {
			all = append(all, lintStep(which, step)...)
		}
	}
	all = append(all, r.lintSixty(&fields)...)
	all = append(all, r.lintDays(&fields)...)
	return append(all, r.lintChanges(from)...)
}

// lintStep looks at a step that goes on to the end of its field: it starts anew there.
func lintStep(which int, s openStep) []string {
	k := &kinds[which]
	var set []int
	for v := s.from; v <= k.max; v += s.step {
		set = append(set, v)
	}
	round := s.from + k.size() - set[len(set)-1]
	if s.step == 1 || round == s.step && which != dayOfMonth {
		return nil
	}
	names := runs(set, func(v int) string { return fmt.Sprint(v) })
	line := fmt.Sprintf("%s %q is not every %d %ss: it is %s", k.name, s.text, s.step, noun(which), join(names, "and"))
	switch which {
	case dayOfMonth:
		return []string{line + ", and starts anew each month"}
	case dayOfWeek, month:
		return []string{line + fmt.Sprintf(", and then %d again", s.from)}
	}
	return []string{fmt.Sprintf("%s, and then %d again after %d; @every %d%s is", line, s.from, round, s.step, k.name[:1])}
}

// noun is what a step of a field counts.
func noun(which int) string {
	if which == dayOfMonth || which == dayOfWeek {
		return "day"
	}
	return kinds[which].name
}

// lintSixty looks for a star in the place of a 0: the whole minute, or the whole hour, of a time that was meant once.
func (r *calendarRule) lintSixty(f *[fieldCount]field) []string {
	for _, pair := range [][2]int{{second, minute}, {minute, hour}} {
		small, large := pair[0], pair[1]
		if f[small].all(&kinds[small]) && !consecutive(f[large].bits) {
			return []string{fmt.Sprintf("%s %q with %s %q runs 60 times in each of these %ss: 0 in the place of the star is once",
				kinds[small].name, f[small].text, kinds[large].name, f[large].text, kinds[large].name)}
		}
	}
	return nil
}

// consecutive reports whether a set is two or more values in a row: "every minute from 9 to 17" is meant.
func consecutive(set uint64) bool {
	run := set >> bits.TrailingZeros64(set)
	return run > 1 && run&(run+1) == 0
}

// lintDays looks at days that some months lack, and at how the two fields for days go together.
func (r *calendarRule) lintDays(f *[fieldCount]field) []string {
	var all []string
	for _, n := range values((f[dayOfMonth].single | f[dayOfMonth].nearest) >> 29 << 29) {
		var without []string
		for _, m := range values(r.month) {
			// In a leap year.
			if length := time.Date(2000, time.Month(m)+1, 0, 0, 0, 0, 0, time.UTC).Day(); n > length || n == 29 && m == int(time.February) {
				without = append(without, time.Month(m).String())
			}
		}
		if n == 29 && len(without) > 0 {
			all = append(all, "day-of-month 29: February has it in leap years only; L is the last day of each month")
		} else if len(without) > 0 {
			all = append(all, fmt.Sprintf("day-of-month %d: none in %s; L is the last day of each month", n, join(without, "and")))
		}
	}

	dom, dow := &f[dayOfMonth], &f[dayOfWeek]
	for _, d := range []*field{dom, dow} {
		if strings.Contains(d.text, ",") && strings.Contains(d.text, "*") {
			all = append(all, fmt.Sprintf("%q: only a star that comes first counts as one, for the choice between day-of-month and day-of-week", d.text))
		}
	}
	switch {
	case !r.days.both:
		all = append(all, fmt.Sprintf("day-of-month %q and day-of-week %q: as in cron, a day that matches one of them is enough", dom.text, dow.text))
	case !dom.all(&kinds[dayOfMonth]) && !dow.all(&kinds[dayOfWeek]):
		all = append(all, fmt.Sprintf("day-of-month %q and day-of-week %q: as in cron, a day has to match both, since one begins with a star", dom.text, dow.text))
	}
	return all
}

// lintChanges says what the clocks of the zone do to the schedule, in the year after from.
func (r *calendarRule) lintChanges(from time.Time) []string {
	s := r.search()
	if s.shown() && full(r.hour, 24) {
		// Every hour has its ticks, whatever it is called.
		return nil
	}
	var all []string
	for _, c := range r.options.Zone.Changes(from, from.AddDate(1, 0, 0)) {
		lo, hi := int64(c.At)+int64(c.Before), int64(c.At)+int64(c.After)
		forward := lo < hi
		wall, ok := r.calendar.next(min(lo, hi), new(int))
		if !ok || wall >= max(lo, hi) {
			continue
		}
		at := time.Unix(wall, 0).UTC().Format("2006-01-02 15:04:05")
		if forward {
			all = append(all, fmt.Sprintf("%s does not exist in %s: %s", at, r.options.Zone.name, s.missing(c)))
		} else {
			all = append(all, fmt.Sprintf("%s comes twice in %s: %s", at, r.options.Zone.name, s.doubled()))
		}
	}
	return all
}

// missing says what becomes of wall times in a gap.
func (s *search) missing(c Change) string {
	switch {
	case s.shown() && s.dst != DSTLiteral:
		return "no tick then, since expressions with a star in the hour or minute follow real time"
	case s.dst == DSTCron:
		return "the tick is at " + c.At.Time().In(s.zone.loc).Format("15:04:05 -0700") + " instead (dst cron)"
	}
	return fmt.Sprintf("no tick then (dst %s)", s.dst)
}

// doubled says what becomes of wall times that are shown twice.
func (s *search) doubled() string {
	switch {
	case s.shown() && s.dst != DSTLiteral:
		return "a tick each time, since expressions with a star in the hour or minute follow real time"
	case s.dst == DSTLiteral:
		return "a tick each time (dst literal)"
	}
	return fmt.Sprintf("a tick the first time only (dst %s)", s.dst)
}
