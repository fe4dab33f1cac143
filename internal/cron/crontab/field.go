package crontab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-coord/coord/internal/cron/nearest"
	"github.com/go-coord/coord/internal/lazy"
)

// kind is one of the five fields.
type kind struct {
	name  string
	min   int
	max   int
	names []string
}

var kinds = [5]kind{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day-of-month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day-of-week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// maxField is more bytes than a field needs: all minutes, one by one.
const maxField = 200

// element is what all crons take in a list: *, or a value, or a range, and after * and ranges a step. Whether a number is in bounds is
// judged by package schedule.
var element = lazy.Regexp(`^(\*|([A-Za-z]+|[0-9]+)(-([A-Za-z]+|[0-9]+))?)(/[0-9]+)?$`)

// randomRange is cronie's and OpenBSD's a~b, of which either end may be missing.
var randomRange = lazy.Regexp(`^([0-9]*)~([0-9]*)(/[0-9]+)?$`)

// judgeField refuses what crons do not agree on, or none of them knows.
func judgeField(which int, field string) error {
	k := &kinds[which]
	refuse := func(text, why, instead string) error {
		return fmt.Errorf("%s %s: %s: want %s", k.name, quote(text), why, instead)
	}
	if len(field) > maxField {
		return fmt.Errorf("%s %s has %d bytes: want %d at most", k.name, quote(field), len(field), maxField)
	}
	for text := range strings.SplitSeq(field, ",") {
		if m := randomRange().FindStringSubmatch(text); m != nil {
			instead := "a fixed value; the schedule of a job can have H"
			if m[1]+m[2] != "" {
				instead += "(" + k.or(m[1], k.min) + "-" + k.or(m[2], k.max) + ")"
			}
			return refuse(text, "a random value, another one each time that cron starts", instead)
		}
		m := element().FindStringSubmatch(text)
		if m == nil {
			return refuse(text, "no form that all crons know", "*, values, ranges, lists of these, and steps after * and ranges")
		}
		from, to, step := m[2], m[4], m[5]
		if from != "" && to == "" && step != "" {
			return refuse(text, "crons disagree on a step after a single value", from+", or "+from+"-"+strconv.Itoa(k.max)+step)
		}
		lo, ok := k.value(from)
		hi, both := k.value(to)
		switch {
		case from != "" && !ok:
			return refuse(text, "no form that all crons know", k.accepts(from))
		case to != "" && !both:
			return refuse(text, "no form that all crons know", k.accepts(to))
		case to != "" && lo > hi:
			return refuse(text, "crons disagree on a range that falls", k.split(lo, hi))
		}
	}
	return nil
}

// or gives a number as typed, or another one if nothing was.
func (k *kind) or(typed string, otherwise int) string {
	if typed == "" {
		return strconv.Itoa(otherwise)
	}
	return typed
}

// value gives the number that a value stands for.
func (k *kind) value(text string) (int, bool) {
	if i := slices.Index(k.names, strings.ToLower(text)); i >= 0 {
		return k.min + i, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// accepts says what a value may be, and which was meant.
func (k *kind) accepts(typed string) string {
	text := fmt.Sprintf("%d to %d", k.min, k.max)
	if k.names != nil {
		text += " or " + k.names[0] + " to " + k.names[len(k.names)-1]
	}
	return text + nearest.Hint(nearest.Name(typed, k.names))
}

// split is a range that falls, as one or two that rise. Sunday is 0 and 7.
func (k *kind) split(lo, hi int) string {
	rest := fmt.Sprintf("%d-%d", k.min, hi)
	switch {
	case k.max == 7 && hi == 0:
		return fmt.Sprintf("%d-7", lo)
	case k.max == 7 && lo == 7:
		return rest
	case k.max == 7:
		return fmt.Sprintf("%d-6,%s", lo, rest)
	}
	return fmt.Sprintf("%d-%d,%s", lo, k.max, rest)
}
