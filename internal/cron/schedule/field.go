package schedule

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/go-coord/coord/internal/cron/nearest"
)

// The fields of an expression, in their order.
const (
	second = iota
	minute
	hour
	dayOfMonth
	month
	dayOfWeek
	fieldCount
)

// kind is what a field may hold.
type kind struct {
	name     string
	min, max int
	// top is the highest number that may be written: Sunday is 0 and 7.
	top int
	// hashed is the highest that H picks by itself: a day that every month has.
	hashed int
	// names stand for min and up.
	names []string
	// also says what else is accepted, for errors.
	also string
}

var kinds = [fieldCount]kind{
	second:     {name: "second", max: 59, top: 59, hashed: 59},
	minute:     {name: "minute", max: 59, top: 59, hashed: 59},
	hour:       {name: "hour", max: 23, top: 23, hashed: 23},
	dayOfMonth: {name: "day-of-month", min: 1, max: 31, top: 31, hashed: 28, also: ", ?, L, LW, 15W"},
	month: {name: "month", min: 1, max: 12, top: 12, hashed: 12,
		names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	dayOfWeek: {name: "day-of-week", max: 6, top: 7, hashed: 6, also: ", ?, 5L, 5#3",
		names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
}

// size is how many values there are.
func (k *kind) size() int { return k.max - k.min + 1 }

// ofClock: it is a time of day, not a day.
func (k *kind) ofClock() bool { return k.min == 0 && k.max == k.top }

// accepts says what a single value may be.
func (k *kind) accepts() string {
	text := strconv.Itoa(k.min) + " to " + strconv.Itoa(k.top)
	if len(k.names) > 0 {
		text += " or " + k.names[0] + " to " + k.names[len(k.names)-1]
	}
	return text
}

// forms says what an element of the field's list may look like.
func (k *kind) forms() string {
	return k.accepts() + ", a range of these, * or H, with a /step or without" + k.also
}

func fieldNames(first int) string {
	var all []string
	for _, k := range kinds[first:] {
		all = append(all, k.name)
	}
	return strings.Join(all, " ")
}

// field is one field, read.
type field struct {
	text string
	bits uint64 // the values, by number
	// star: it begins with *, ? or H/n: cron's mark for "whichever".
	star bool
	// last, lastWeekday and nearest are L, LW and nW of the day of the month; nearest by day.
	last, lastWeekday bool
	nearest           uint64
	// lastOf and nth are nL and n#k of the day of the week: bits by weekday, nth by k.
	lastOf uint64
	nth    [6]uint64
	// open are the steps that have no end of their own, as in */35, and single the days that are named one by one. Lint
	// looks at them, nobody else does.
	open   []openStep
	single uint64
}

// openStep is the step of *, of H or of a single value, which goes on to the end of the field.
type openStep struct {
	text       string
	from, step int
}

// all reports whether the field excludes nothing.
func (f *field) all(k *kind) bool { return bits.OnesCount64(f.bits) == k.size() }

// element is one element of a field's list while it is read.
type element struct {
	kind *kind
	word
	job string
}

// parseField reads a list.
func parseField(which int, w word, job string) (field, error) {
	f := field{text: w.text}
	col := w.col
	for i, text := range strings.Split(w.text, ",") {
		e := element{&kinds[which], word{text, col}, job}
		if text == "" {
			return f, refuse("%s %s at column %d: an element of the list is empty: want %s", e.kind.name, quote(w.text), col, e.kind.forms())
		}
		star, err := e.read(which, &f)
		if err != nil {
			return f, err
		}
		if i == 0 {
			f.star = star
		}
		if text == "?" && f.text != "?" {
			return f, e.refuse(text, "? alone in its field", "*")
		}
		col += len(text) + 1
	}
	return f, nil
}

// read adds the element to the field, and says whether it counts as a star.
func (e *element) read(which int, f *field) (star bool, err error) {
	upper := strings.ToUpper(e.text)
	days := which == dayOfMonth || which == dayOfWeek
	base, step, stepped := strings.Cut(upper, "/")
	switch {
	case upper == "?" && days:
		e.add(f, e.kind.min, e.kind.max, 1)
		return true, nil
	case which == dayOfMonth && (strings.HasPrefix(upper, "L") || strings.HasSuffix(upper, "W")):
		return false, e.readLast(f, upper)
	case which == dayOfWeek && (strings.HasSuffix(upper, "L") || strings.Contains(upper, "#")):
		return false, e.readNth(f, upper)
	}

	// What is left are values, from which a step may go.
	n := 1
	if stepped {
		if n, err = e.readStep(step); err != nil {
			return false, err
		}
	}
	switch {
	case base == "*" && stepped:
		e.addOpen(f, e.kind.min, n)
		return true, nil
	case base == "*":
		e.add(f, e.kind.min, e.kind.max, 1)
		return true, nil
	case strings.HasPrefix(base, "H"):
		return e.readHash(f, base, n, stepped)
	case strings.Contains(base, "-"):
		return false, e.readRange(f, base, n)
	}
	v, err := e.value(base)
	if err != nil {
		return false, err
	}
	if stepped {
		e.addOpen(f, e.fold(v), n)
		return false, nil
	}
	f.single |= 1 << v
	e.add(f, v, v, 1)
	return false, nil
}

// addOpen sets the values from one on, in steps, to the end of the field.
func (e *element) addOpen(f *field, from, step int) {
	f.open = append(f.open, openStep{e.text, from, step})
	e.add(f, from, e.kind.max, step)
}

// add sets the values from lo to hi; a range that is the wrong way round goes on at the field's lowest.
func (e *element) add(f *field, lo, hi, step int) {
	if lo > hi {
		hi += e.kind.size()
	}
	for v := lo; v <= hi; v += step {
		f.bits |= 1 << e.fold(v)
	}
}

// fold brings a value that is one round too high back into the field: Sunday by 7, and the end of a range that wraps.
func (e *element) fold(v int) int {
	if v > e.kind.max {
		v -= e.kind.size()
	}
	return v
}

func (e *element) readRange(f *field, base string, step int) error {
	from, to, _ := strings.Cut(base, "-")
	lo, err := e.value(from)
	if err != nil {
		return err
	}
	hi, err := e.value(to)
	if err != nil {
		return err
	}
	e.add(f, lo, hi, step)
	return nil
}

// readStep reads what follows a slash.
func (e *element) readStep(text string) (int, error) {
	n, ok := number(text)
	if ok && n >= 1 && n <= e.kind.size() {
		return n, nil
	}
	want := "a step of 1 to " + strconv.Itoa(e.kind.size())
	switch {
	case ok && n > 0 && e.kind.ofClock():
		want += "; longer ones are @every " + text + e.kind.name[:1]
	case ok && n == 0:
		return 0, e.refuse(text, want, "1")
	}
	return 0, e.refuse(text, want, "")
}

// value reads a number or a name.
func (e *element) value(text string) (int, error) {
	k := e.kind
	n, ok := number(text)
	switch {
	case ok && n >= k.min && n <= k.top:
		return n, nil
	case ok && n == k.top+1 && k.ofClock():
		// Midnight, and the full minute.
		return 0, e.refuse(text, k.accepts(), "0")
	case ok:
		return 0, e.refuse(text, k.accepts(), strconv.Itoa(min(max(n, k.min), k.top)))
	}
	for i, name := range k.names {
		if text == name {
			return k.min + i, nil
		}
	}
	return 0, e.refuse(text, k.forms(), nearest.Name(text, k.names))
}

// refuse names the field, the value, its place and what is wanted instead. The value is the element or a part of it, in capitals; it is
// shown as it was typed.
func (e *element) refuse(value, want, near string) error {
	if i := strings.Index(strings.ToUpper(e.text), value); i >= 0 {
		value = e.text[i : i+len(value)]
	}
	in := ""
	if value != e.text {
		in = " in " + quote(e.text)
	}
	return refuse("%s %s%s at column %d: want %s%s", e.kind.name, quote(value), in, e.col, want, nearest.Hint(near))
}

// number reads a few digits, and nothing else.
func number(text string) (int, bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}
