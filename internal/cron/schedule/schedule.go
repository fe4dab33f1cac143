package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cron/nearest"
)

// ErrSpec is returned when an expression cannot be read, or can never be meant. The text says which field, which value and
// where, what is accepted and, if one is near, what may have been meant. It is one line, safe to print.
var ErrSpec = errors.New("bad schedule")

// ErrNever is returned when a schedule that can be read has no tick in the ten years that follow.
var ErrNever = errors.New("no tick within 10 years")

// Bounds on what is read: expressions come from etcd, where others can write.
const (
	maxSpecs  = 100
	maxLength = 1000
)

// Tick is a moment at which a job is due: whole seconds since 1970-01-01 00:00 UTC, never negative.
type Tick int64

// lastTick is the last second of the year 9999.
const lastTick Tick = 253402300799

// Time gives the moment, in UTC.
func (t Tick) Time() time.Time { return time.Unix(int64(t), 0).UTC() }

// DST says what becomes of wall times that the zone's clocks show never, or twice. The package comment has the table.
type DST string

// The modes. An empty one is DSTCron.
const (
	DSTCron    DST = "cron"
	DSTLiteral DST = "literal"
	DSTSkip    DST = "skip"
)

// Options say how the expressions of a job are read. The zero value reads five fields, in UTC.
type Options struct {
	// Seconds: there are six fields, and the first is the second. Default: five, and every tick is at second 0.
	Seconds bool
	// Zone is where the clock hangs that calendar expressions speak of. Default: UTC.
	Zone *Zone
	// DST is the mode. Default: DSTCron.
	DST DST
	// Name is the job's, for expressions with H, which is made from it.
	Name string
}

// rule is one expression, read. Both searches include the moment they are given.
type rule interface {
	next(t int64) (int64, bool)
	prev(t int64) (int64, bool)
	// explain says it in words, lint what may surprise whoever wrote it, seen from a moment.
	explain() string
	lint(from time.Time) []string
}

// Schedule is all expressions of one job. It does not change and may be used from many goroutines.
type Schedule struct {
	rules []rule
}

// Parse reads the expressions of a job: one at least, and their ticks are united. The error wraps ErrSpec.
func Parse(o Options, specs ...string) (*Schedule, error) {
	o.DST = cmp.Or(o.DST, DSTCron)
	o.Zone = cmp.Or(o.Zone, utc)
	modes := []string{string(DSTCron), string(DSTLiteral), string(DSTSkip)}
	switch {
	case !slices.Contains(modes, string(o.DST)):
		return nil, fmt.Errorf("%w: dst %s: want cron, literal or skip%s", ErrSpec, quote(string(o.DST)), nearest.Hint(nearest.Name(string(o.DST), modes)))
	case len(specs) == 0:
		return nil, fmt.Errorf("%w: no expression: want five fields, such as 30 2 * * *, or one of %s", ErrSpec, strings.Join(macroNames(), " "))
	case len(specs) > maxSpecs:
		return nil, fmt.Errorf("%w: %d expressions: want %d at most", ErrSpec, len(specs), maxSpecs)
	}

	s := &Schedule{}
	for i, spec := range specs {
		r, err := parse(spec, o)
		if r == (manual{}) && len(specs) > 1 {
			err = refuse("@manual beside other expressions: it says that there are no ticks")
		}
		if err != nil && len(specs) > 1 {
			err = fmt.Errorf("%w (expression %d of %d)", err, i+1, len(specs))
		}
		if err != nil {
			return nil, err
		}
		s.rules = append(s.rules, r)
	}
	return s, nil
}

// Manual reports whether the job has no ticks, because its schedule says @manual.
func (s *Schedule) Manual() bool { return s.rules[0] == manual{} }

// Next gives the first tick later than after. There is none if the schedule has had its last, or if none comes in ten years.
func (s *Schedule) Next(after time.Time) (Tick, bool) {
	// Whoever comes from before 1970 or from beyond 9999 meets the first tick, or none. A fraction of a second is cut
	// off, towards the past, so that one second more is later.
	from := max(after.Unix(), -1)
	if from >= int64(lastTick) {
		return 0, false
	}
	best, found := int64(0), false
	for _, r := range s.rules {
		if t, ok := r.next(from + 1); ok && t <= int64(lastTick) && (!found || t < best) {
			best, found = t, true
		}
	}
	return Tick(best), found
}

// Prev gives the last tick earlier than before, if there is one in the ten years that precede it.
func (s *Schedule) Prev(before time.Time) (Tick, bool) {
	to := max(min(before.Unix(), int64(lastTick)+1), 0)
	if before.Nanosecond() == 0 || to > int64(lastTick) {
		to--
	}
	if to < 0 {
		return 0, false
	}
	best, found := int64(0), false
	for _, r := range s.rules {
		if t, ok := r.prev(to); ok && t >= 0 && (!found || t > best) {
			best, found = t, true
		}
	}
	return Tick(best), found
}

// Between gives the ticks later than after and not later than until, in order, at most limit of them; more says that there
// are others. That is a window of catch-up: after is the last tick that was decided, until is now.
func (s *Schedule) Between(after, until time.Time, limit int) (ticks []Tick, more bool) {
	for t, ok := s.Next(after); ok && !t.Time().After(until); t, ok = s.Next(t.Time()) {
		if len(ticks) >= limit {
			return ticks, true
		}
		ticks = append(ticks, t)
	}
	return ticks, false
}

// Count is how many Between would give, without keeping them.
func (s *Schedule) Count(after, until time.Time, limit int) (n int, more bool) {
	for t, ok := s.Next(after); ok && !t.Time().After(until); t, ok = s.Next(t.Time()) {
		if n >= limit {
			return n, true
		}
		n++
	}
	return n, false
}

// Check returns an error that wraps ErrNever if there is no tick later than a moment: @at is over by then, or a time of day is one
// that the zone's clocks never show on such a day. It is nil for @manual, which promises none.
func (s *Schedule) Check(after time.Time) error {
	if _, ok := s.Next(after); ok || s.Manual() {
		return nil
	}
	return fmt.Errorf("%w of %s: %s", ErrNever, after.UTC().Format(time.RFC3339), s.Explain())
}

// Explain says the schedule in plain words, in one line.
func (s *Schedule) Explain() string {
	var all []string
	for _, r := range s.rules {
		all = append(all, r.explain())
	}
	return strings.Join(all, "; and ")
}

// Lint gives what may surprise whoever wrote the expressions, a line each. Nothing of it is wrong. What the clocks of the zone will do
// is said for the year after from.
func (s *Schedule) Lint(from time.Time) []string {
	var all []string
	for _, r := range s.rules {
		for _, line := range r.lint(from) {
			if !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	return all
}
