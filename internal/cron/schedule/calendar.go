package schedule

import (
	"math/bits"
	"time"
)

const (
	day = 24 * 60 * 60
	// years is how many calendar years after a day are searched for the next one. More than that is never needed:
	// an expression that leaves more of them empty is not accepted.
	years = 10
)

// calendar is the set of wall times that an expression matches. Wall times are counted like ticks, in seconds since 1970-01-01
// 00:00, but on the wall: no zone is known here.
type calendar struct {
	second, minute, hour, month uint64
	days                        days
	// realTime: the second, the minute or the hour begins with a star.
	realTime bool
}

// days are the fields that choose days.
type days struct {
	dom               uint64 // by day, 1 to 31
	last, lastWeekday bool
	nearest           uint64 // by day
	dow               uint64 // by weekday, Sunday is 0
	lastOf            uint64 // by weekday
	nth               [6]uint64
	// both: a day has to match both fields, since one of them begins with a star. Otherwise one is enough.
	both bool
}

// newCalendar takes what the fields say. It fails if no day matches for more than ten years, ever or at times.
func newCalendar(f [fieldCount]field) (*calendar, error) {
	c := &calendar{
		second: f[second].bits, minute: f[minute].bits, hour: f[hour].bits, month: f[month].bits,
		days: days{
			dom: f[dayOfMonth].bits, last: f[dayOfMonth].last, lastWeekday: f[dayOfMonth].lastWeekday, nearest: f[dayOfMonth].nearest,
			dow: f[dayOfWeek].bits, lastOf: f[dayOfWeek].lastOf, nth: f[dayOfWeek].nth,
			both: f[dayOfMonth].star || f[dayOfWeek].star,
		},
		realTime: f[second].star || f[minute].star || f[hour].star,
	}
	if c.everyYear() {
		return c, nil
	}

	// Not each kind of year has a matching day. The calendar repeats itself after 400 years.
	for year := 2000; year < 2400; year++ {
		from := time.Date(year, time.December, 31, 0, 0, 0, 0, time.UTC).Unix()
		if _, ok := c.next(from, new(int)); !ok {
			hint := ""
			if !f[dayOfMonth].star && f[dayOfMonth].bits>>30 != 0 {
				hint = "; did you mean L, the last day of the month?"
			}
			return nil, refuse("day-of-month %s, month %s and day-of-week %s: want a day that comes at least once in 10 years%s",
				quote(f[dayOfMonth].text), quote(f[month].text), quote(f[dayOfWeek].text), hint)
		}
	}
	return c, nil
}

// everyYear reports whether every year has a matching day: 28 years in a row, in which each date falls on each weekday.
func (c *calendar) everyYear() bool {
	for year := 2000; year < 2028; year++ {
		found := false
		for m := time.January; m <= time.December && !found; m++ {
			found = c.in(year, m) != 0
		}
		if !found {
			return false
		}
	}
	return true
}

// in gives the days of a month that match, by day.
func (c *calendar) in(year int, m time.Month) uint64 {
	if c.month>>m&1 == 0 {
		return 0
	}
	first := time.Date(year, m, 1, 0, 0, 0, 0, time.UTC)
	count := int(time.Date(year, m+1, 1, 0, 0, 0, 0, time.UTC).Unix()-first.Unix()) / day
	dom, dow := c.days.ofMonth(first.Weekday(), count), c.days.ofWeek(first.Weekday(), count)
	if c.days.both {
		return dom & dow
	}
	return dom | dow
}

// whole is a month of count days.
func whole(count int) uint64 { return 1<<(count+1) - 2 }

// ofMonth gives the days that the day-of-month field names, in a month that begins with a weekday.
func (d *days) ofMonth(first time.Weekday, count int) uint64 {
	set := d.dom & whole(count)
	if d.last {
		set |= 1 << count
	}
	if d.lastWeekday {
		set |= 1 << nearestWeekday(first, count, count)
	}
	for rest := d.nearest & whole(count); rest != 0; rest &= rest - 1 {
		set |= 1 << nearestWeekday(first, bits.TrailingZeros64(rest), count)
	}
	return set
}

// nearestWeekday gives the day from Monday to Friday that is nearest to a day, in the same month.
func nearestWeekday(first time.Weekday, day, count int) int {
	switch (int(first) + day - 1) % 7 {
	case int(time.Saturday):
		if day == 1 {
			return 3
		}
		return day - 1
	case int(time.Sunday):
		if day == count {
			return day - 2
		}
		return day + 1
	}
	return day
}

// ofWeek gives the days that the day-of-week field names, in a month that begins with a weekday.
func (d *days) ofWeek(first time.Weekday, count int) uint64 {
	set := weekdays(d.dow, first)
	set |= weekdays(d.lastOf, first) &^ whole(count-7)
	for k := 1; k <= 5; k++ {
		set |= weekdays(d.nth[k], first) & (whole(7) << (7 * (k - 1)))
	}
	return set & whole(count)
}

// weekdays gives the days of a month, by day, that fall on one of a set of weekdays.
func weekdays(set uint64, first time.Weekday) uint64 {
	week := (set>>first | set<<(7-first)) & (1<<7 - 1)
	return (week | week<<7 | week<<14 | week<<21 | week<<28) << 1
}

// next gives the first matching wall time at or after one, in its year or the ten that follow. Each month that is looked at is a step.
func (c *calendar) next(wall int64, steps *int) (int64, bool) {
	date, clock := split(wall)
	year, m, d := date.Date()

	// The rest of this day, then the first time of a later one.
	matching := c.in(year, m)
	if matching>>d&1 != 0 {
		if t, ok := c.clockFrom(clock); ok {
			return date.Unix() + t, true
		}
	}
	matching &^= whole(d)
	for last := year + years; year <= last; {
		*steps++
		if matching != 0 {
			date = time.Date(year, m, bits.TrailingZeros64(matching), 0, 0, 0, 0, time.UTC)
			first, _ := c.clockFrom(0)
			return date.Unix() + first, true
		}
		if m++; m > time.December {
			year, m = year+1, time.January
		}
		matching = c.in(year, m)
	}
	return 0, false
}

// prev gives the last matching wall time at or before one, in its year or the ten that precede it.
func (c *calendar) prev(wall int64, steps *int) (int64, bool) {
	date, clock := split(wall)
	year, m, d := date.Date()

	// What has passed of this day, then the last time of an earlier one.
	matching := c.in(year, m)
	if matching>>d&1 != 0 {
		if t, ok := c.clockUntil(clock); ok {
			return date.Unix() + t, true
		}
	}
	matching &= whole(d - 1)
	for first := year - years; year >= first; {
		*steps++
		if matching != 0 {
			date = time.Date(year, m, bits.Len64(matching)-1, 0, 0, 0, 0, time.UTC)
			last, _ := c.clockUntil(day - 1)
			return date.Unix() + last, true
		}
		if m--; m < time.January {
			year, m = year-1, time.December
		}
		matching = c.in(year, m)
	}
	return 0, false
}

// split parts a wall time into its day and the seconds since that began.
func split(wall int64) (date time.Time, clock int) {
	clock = int((wall%day + day) % day)
	return time.Unix(wall-int64(clock), 0).UTC(), clock
}
