package schedule

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

func (e every) explain() string {
	return fmt.Sprintf("every %s, counted from 1970-01-01 00:00 UTC", e.duration())
}

// duration is the step as people write it: 15m, not 15m0s.
func (e every) duration() string {
	text := (time.Duration(e) * time.Second).String()
	if e%60 == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if e%3600 == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (r *calendarRule) explain() string {
	parts := []string{r.calendar.clockWords()}
	if days := r.days.words(); days != "" {
		parts = append(parts, days)
	}
	if !full(r.month, 12) {
		parts = append(parts, "in "+join(monthNames(r.month), "and"))
	}
	if len(parts) == 1 && r.timesADay() <= fewTimes {
		parts = append(parts, "every day")
	}
	return strings.Join(parts, ", ") + " (" + r.options.Zone.name + ")"
}

// fewTimes is up to how many times of day are named one by one.
const fewTimes = 6

// clockWords says the times of a day.
func (c *calendar) clockWords() string {
	if c.timesADay() <= fewTimes {
		return "at " + join(c.times(), "and")
	}

	// From the smallest unit to the largest: "every second of minutes 0 and 30 of hours 9 to 17".
	seconds, minutes, hours := values(c.second), values(c.minute), values(c.hour)
	var parts []string
	switch {
	case len(seconds) == 60:
		parts = append(parts, "every second")
	case c.second != 1:
		parts = append(parts, "at "+numbered("second", seconds))
	}
	switch step := evenly(minutes, 60); {
	case len(minutes) == 60 && len(seconds) < 60:
		parts = append(parts, "every minute")
	case len(minutes) == 60:
	case step > 1 && c.second == 1:
		parts = append(parts, fmt.Sprintf("every %d minutes", step))
	case len(parts) == 0:
		parts = append(parts, "at "+numbered("minute", minutes))
	default:
		parts = append(parts, numbered("minute", minutes))
	}
	switch {
	case len(hours) < 24:
		parts = append(parts, numbered("hour", hours))
	case !strings.HasPrefix(parts[len(parts)-1], "every"):
		parts = append(parts, "every hour")
	}
	return strings.Join(parts, " of ")
}

// timesADay is how many times of a day match.
func (c *calendar) timesADay() int {
	return bits.OnesCount64(c.second) * bits.OnesCount64(c.minute) * bits.OnesCount64(c.hour)
}

// times gives the matching times of a day, in order.
func (c *calendar) times() (all []string) {
	for _, h := range values(c.hour) {
		for _, m := range values(c.minute) {
			for _, s := range values(c.second) {
				text := fmt.Sprintf("%02d:%02d", h, m)
				if c.second != 1 {
					text += fmt.Sprintf(":%02d", s)
				}
				all = append(all, text)
			}
		}
	}
	return all
}

// words says which days match; nothing where all do.
func (d *days) words() string {
	dom, dow := d.domWords(), d.dowWords()
	switch {
	case full(d.dom, 31) && full(d.dow, 7):
		return ""
	case full(d.dom, 31) && d.both:
		return "on " + dow
	case full(d.dow, 7) && d.both:
		return "on " + dom
	case d.both:
		return "on " + dom + ", if that is " + dow
	}
	return "on " + dom + ", and also on " + dow
}

func (d *days) domWords() string {
	var all []string
	if set := values(d.dom); full(d.dom, 31) {
		all = append(all, "any day")
	} else if len(set) > 0 {
		all = append(all, "the "+join(runs(set, ordinal), "and"))
	}
	for _, n := range values(d.nearest) {
		all = append(all, "the Monday to Friday nearest the "+ordinal(n))
	}
	if d.lastWeekday {
		all = append(all, "the last Monday to Friday")
	}
	if d.last {
		all = append(all, "the last day")
	}
	return join(all, "and") + " of the month"
}

func (d *days) dowWords() string {
	var all []string
	if full(d.dow, 7) {
		all = append(all, "any weekday")
	} else {
		all = runs(values(d.dow), weekday)
	}
	counted := []string{1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}
	for k := 1; k <= 5; k++ {
		for _, v := range values(d.nth[k]) {
			all = append(all, "the "+counted[k]+" "+weekday(v)+" of the month")
		}
	}
	for _, v := range values(d.lastOf) {
		all = append(all, "the last "+weekday(v)+" of the month")
	}
	return join(all, "and")
}

func monthNames(set uint64) []string {
	return runs(values(set), func(m int) string { return time.Month(m).String() })
}

func weekday(v int) string { return time.Weekday(v).String() }

// full reports whether a set holds all of n values.
func full(set uint64, n int) bool { return bits.OnesCount64(set) == n }

// values gives a set's members in order.
func values(set uint64) (all []int) {
	for ; set != 0; set &= set - 1 {
		all = append(all, bits.TrailingZeros64(set))
	}
	return all
}

// evenly gives the distance from value to value, starting with 0, if it is the same all round; else 0.
func evenly(set []int, size int) int {
	step := size / max(len(set), 2)
	for i, v := range set {
		if v != i*step {
			return 0
		}
	}
	if step*len(set) != size {
		return 0
	}
	return step
}

// runs names values, three or more in a row by the first and the last.
func runs(set []int, name func(int) string) (all []string) {
	for i := 0; i < len(set); {
		j := i
		for j+1 < len(set) && set[j+1] == set[j]+1 {
			j++
		}
		if j < i+2 {
			j = i
			all = append(all, name(set[i]))
		} else {
			all = append(all, name(set[i])+" to "+name(set[j]))
		}
		i = j + 1
	}
	return all
}

// numbered is "minute 5" or "minutes 5, 10 and 20 to 30".
func numbered(noun string, set []int) string {
	if len(set) > 1 {
		noun += "s"
	}
	return noun + " " + join(runs(set, func(v int) string { return fmt.Sprint(v) }), "and")
}

// ordinal is 1st, 2nd, 3rd, 4th.
func ordinal(n int) string {
	suffix := "th"
	if n/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

// join makes "a, b and c".
func join(all []string, last string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " " + last + " " + all[len(all)-1]
}
