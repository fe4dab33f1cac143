package schedule_test

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// drawMeaning makes an expression of any form, and what it means.
func drawMeaning(t *rapid.T, seconds bool) *meaning {
	isSecond, secondText, secondStar := func(v int) bool { return v == 0 }, "", false
	if seconds {
		isSecond, secondText, secondStar = drawValues(t, "second", 0, 59, nil)
	}
	isMinute, minuteText, minuteStar := drawValues(t, "minute", 0, 59, nil)
	isHour, hourText, hourStar := drawValues(t, "hour", 0, 23, nil)
	isDay, dayText, dayStar := drawDayOfMonth(t)
	isMonth, monthText, _ := drawValues(t, "month", 1, 12, strings.Fields("JAN feb Mar APR MAY JUN JUL AUG SEP OCT NOV DEC"))
	isWeekday, weekdayText, weekdayStar := drawDayOfWeek(t)

	fields := []string{minuteText, hourText, dayText, monthText, weekdayText}
	if seconds {
		fields = append([]string{secondText}, fields...)
	}
	return &meaning{
		text:     strings.Join(fields, " "),
		seconds:  seconds,
		realTime: secondStar || minuteStar || hourStar,
		clock:    func(h, m, s int) bool { return isSecond(s) && isMinute(m) && isHour(h) },
		date: func(day time.Time) bool {
			if !isMonth(int(day.Month())) {
				return false
			}
			if dayStar || weekdayStar {
				return isDay(day) && isWeekday(day)
			}
			return isDay(day) || isWeekday(day)
		},
	}
}

// often draws true most of the time for what people write most of the time.
func often(t *rapid.T, label string) bool { return rapid.IntRange(0, 2).Draw(t, label) > 0 }

// drawValues makes a list of values, ranges and steps. What they mean is found by walking round the field, one by one.
func drawValues(t *rapid.T, name string, lo, hi int, names []string) (is func(int) bool, text string, star bool) {
	if (name == "month" || name == "hour") && often(t, name+" any") {
		return func(int) bool { return true }, "*", true
	}
	set := map[int]bool{}
	walk := func(from, to, step int) {
		for v, n := from, 0; ; n++ {
			if n%step == 0 {
				set[v] = true
			}
			if v == to {
				return
			}
			if v++; v > hi {
				v = lo
			}
		}
	}
	written := func(v int) string {
		if len(names) > 0 && rapid.Bool().Draw(t, name+" by name") {
			return names[v-lo]
		}
		return fmt.Sprint(v)
	}

	var list []string
	for i := range rapid.IntRange(1, 3).Draw(t, name+" elements") {
		a, b := rapid.IntRange(lo, hi).Draw(t, name+" a"), rapid.IntRange(lo, hi).Draw(t, name+" b")
		step := rapid.IntRange(1, hi-lo+1).Draw(t, name+" step")
		switch rapid.IntRange(0, 5).Draw(t, name+" form") {
		case 0:
			walk(lo, hi, step)
			list = append(list, fmt.Sprintf("*/%d", step))
			star = star || i == 0
		case 1:
			walk(a, b, 1)
			list = append(list, written(a)+"-"+written(b))
		case 2:
			walk(a, b, step)
			list = append(list, fmt.Sprintf("%s-%s/%d", written(a), written(b), step))
		case 3:
			walk(a, hi, step)
			list = append(list, fmt.Sprintf("%s/%d", written(a), step))
		default:
			walk(a, a, 1)
			list = append(list, written(a))
		}
	}
	return func(v int) bool { return set[v] }, strings.Join(list, ","), star
}

// drawDayOfMonth adds what only that field has.
func drawDayOfMonth(t *rapid.T) (is func(time.Time) bool, text string, star bool) {
	if often(t, "any day") {
		return func(time.Time) bool { return true }, rapid.SampledFrom([]string{"*", "?"}).Draw(t, "any day sign"), true
	}
	isValue, text, star := drawValues(t, "day", 1, 31, nil)
	n := rapid.IntRange(1, 31).Draw(t, "day n")
	also := func(time.Time) bool { return false }
	switch rapid.IntRange(0, 4).Draw(t, "day form") {
	case 0:
		text, also = text+",L", isLastDay
	case 1:
		text, also = text+",LW", func(d time.Time) bool {
			last := d
			for !isLastDay(last) {
				last = last.AddDate(0, 0, 1)
			}
			for isWeekend(last) {
				last = last.AddDate(0, 0, -1)
			}
			return d.Day() == last.Day()
		}
	case 2:
		text, also = fmt.Sprintf("%s,%dw", text, n), func(d time.Time) bool { return isNearest(d, n) }
	case 3:
		// By itself, and not with a list.
		return isLastDay, "l", false
	}
	return func(d time.Time) bool { return isValue(d.Day()) || also(d) }, text, star
}

func isLastDay(d time.Time) bool { return d.AddDate(0, 0, 1).Day() == 1 }

func isWeekend(d time.Time) bool { return d.Weekday() == time.Saturday || d.Weekday() == time.Sunday }

// isNearest: of the days from Monday to Friday in this month, none is nearer to the nth, if there is an nth.
func isNearest(d time.Time, n int) bool {
	exists, best, least := false, 0, 32
	for day := d.AddDate(0, 0, 1-d.Day()); day.Month() == d.Month(); day = day.AddDate(0, 0, 1) {
		exists = exists || day.Day() == n
		if away := max(day.Day()-n, n-day.Day()); !isWeekend(day) && away < least {
			best, least = day.Day(), away
		}
	}
	return exists && d.Day() == best
}

// drawDayOfWeek adds what only that field has: Sunday by 7, and weekdays that are counted.
func drawDayOfWeek(t *rapid.T) (is func(time.Time) bool, text string, star bool) {
	if often(t, "any weekday") {
		return func(time.Time) bool { return true }, rapid.SampledFrom([]string{"*", "?"}).Draw(t, "any weekday sign"), true
	}
	names := strings.Fields("SUN MON tue WED THU Fri SAT")
	isValue, text, star := drawValues(t, "weekday", 0, 6, names)
	v := rapid.IntRange(0, 6).Draw(t, "weekday v")
	also := func(time.Time) bool { return false }
	switch rapid.IntRange(0, 4).Draw(t, "weekday form") {
	case 0:
		text, also = text+",7", func(d time.Time) bool { return d.Weekday() == time.Sunday }
	case 1:
		// From a weekday to the Sunday that ends the week.
		text, also = fmt.Sprintf("%s,%d-7", text, v), func(d time.Time) bool { return int(d.Weekday()) >= v || d.Weekday() == time.Sunday }
	case 2:
		k := rapid.IntRange(1, 5).Draw(t, "weekday k")
		text, also = fmt.Sprintf("%s,%s#%d", text, names[v], k), func(d time.Time) bool {
			// The kth of its kind: k-1 weeks ago it was this month, and k weeks ago it was not.
			return int(d.Weekday()) == v && d.AddDate(0, 0, -7*(k-1)).Month() == d.Month() && d.AddDate(0, 0, -7*k).Month() != d.Month()
		}
	case 3:
		text, also = fmt.Sprintf("%s,%dL", text, v), func(d time.Time) bool {
			return int(d.Weekday()) == v && d.AddDate(0, 0, 7).Month() != d.Month()
		}
	}
	return func(d time.Time) bool { return isValue(int(d.Weekday())) || also(d) }, text, star
}
