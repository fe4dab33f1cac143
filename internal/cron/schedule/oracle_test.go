package schedule_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/go-coord/coord/internal/cron/schedule"
)

// The oracle is a second program with the same answers. It knows what an expression means by the text of the documents, looks at every
// minute (or second, or day) of a stretch of time, and asks for each of them what the clock in the zone shows. It has no sets of bits, no
// arithmetic with offsets, no segments and no mark: where both agree, both are right, or both wrong in the same way from different thoughts.

// oracleFactor makes the oracle tests take longer: go test -run Oracle ./internal/cron/schedule -oracle.factor 100.
var oracleFactor = flag.Int("oracle.factor", 1, "how many times as many expressions the oracle checks")

// The forty years that are looked at: half of them known, half of them rules.
var (
	firstYear = time.Date(2005, 1, 1, 0, 0, 0, 0, time.UTC)
	lastYear  = time.Date(2045, 1, 1, 0, 0, 0, 0, time.UTC)
)

// meaning is an expression and what it means.
type meaning struct {
	text     string
	seconds  bool
	realTime bool
	clock    func(h, m, s int) bool
	date     func(day time.Time) bool
}

// matches says whether a wall time, given as if it were UTC, is meant.
func (e *meaning) matches(wall time.Time) bool {
	return e.clock(wall.Clock()) && e.date(wall)
}

// glance is a look at the clock: the moment, and what it shows, as if that were UTC.
type glance struct{ t, wall time.Time }

// watchClock looks at the clock of a zone from one moment until another, in steps.
func watchClock(loc *time.Location, from, until time.Time, step time.Duration) []glance {
	var all []glance
	for t := from; t.Before(until); t = t.Add(step) {
		local := t.In(loc)
		year, month, day := local.Date()
		h, m, s := local.Clock()
		all = append(all, glance{t, time.Date(year, month, day, h, m, s, 0, time.UTC)})
	}
	return all
}

// slowTicks gives the ticks from a moment on. The clock was watched for a while before that, to know what it has shown already.
func (e *meaning) slowTicks(clock []glance, step time.Duration, dst schedule.DST, from time.Time) []schedule.Tick {
	var ticks []schedule.Tick
	shown := map[int64]bool{}
	var last time.Time
	for _, look := range clock {
		due := e.matches(look.wall)
		if !e.realTime && dst != schedule.DSTLiteral {
			// At fixed times: not what was shown before, but what is never shown.
			due = due && !shown[look.wall.Unix()]
			shown[look.wall.Unix()] = true
			for missing := last.Add(step); !last.IsZero() && missing.Before(look.wall); missing = missing.Add(step) {
				if !shown[missing.Unix()] && e.matches(missing) && dst == schedule.DSTCron {
					due = true
				}
				shown[missing.Unix()] = true
			}
		}
		last = look.wall
		if due && !look.t.Before(from) {
			ticks = append(ticks, schedule.Tick(look.t.Unix()))
		}
	}
	return ticks
}

// zoneNames gives one name for each zone that differs from the others in the forty years.
func zoneNames(t testing.TB, z *schedule.Zones) []string {
	t.Helper()
	var names []string
	seen := map[string]bool{}
	for _, name := range z.Names() {
		one, err := z.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		_, offset := firstYear.In(one.Location()).Zone()
		key := fmt.Sprint(offset, one.Changes(firstYear, lastYear))
		if !seen[key] {
			seen[key] = true
			names = append(names, name)
		}
	}
	return names
}

// compare holds a stretch of a schedule against what the oracle says, by all ways of asking, and also from some moments that are no ticks.
func compare(t interface{ Fatalf(string, ...any) }, s *schedule.Schedule, from, until time.Time, want []schedule.Tick, moments ...time.Time) {
	for _, at := range moments {
		i, found := slices.BinarySearch(want, schedule.Tick(at.Unix()))
		if i > 0 {
			if tick, ok := s.Prev(at); !ok || tick != want[i-1] {
				t.Fatalf("before %s there is %s, want %s", at, tick.Time(), want[i-1].Time())
			}
		}
		if found {
			i++
		}
		if i < len(want) {
			if tick, ok := s.Next(at); !ok || tick != want[i] {
				t.Fatalf("after %s comes %s, want %s", at, tick.Time(), want[i].Time())
			}
		}
	}
	got, more := s.Between(from.Add(-time.Second), until.Add(-time.Second), len(want)+1)
	if more || !slices.Equal(got, want) {
		t.Fatalf("from %s until %s:\ngot  %s\nwant %s", from, until, utcTimes(got), utcTimes(want))
	}
	if n, more := s.Count(from.Add(-time.Second), until.Add(-time.Second), len(want)); more || n != len(want) {
		t.Fatalf("Count gives %d and %v, want %d", n, more, len(want))
	}
	for at, i := until, len(want)-1; ; i-- {
		tick, ok := s.Prev(at)
		if i < 0 {
			if ok && !tick.Time().Before(from) {
				t.Fatalf("before %s there is %s, want none after %s", at, tick.Time(), from)
			}
			return
		}
		if !ok || tick != want[i] {
			t.Fatalf("before %s there is %s, want %s", at, tick.Time(), want[i].Time())
		}
		at = tick.Time()
	}
}

// spread gives moments all over a stretch of time.
func spread(from, until time.Time) (all []time.Time) {
	const n = 41
	for i := range time.Duration(n) {
		all = append(all, from.Add(until.Sub(from)/n*i).Truncate(time.Second))
	}
	return all
}

func utcTimes(ticks []schedule.Tick) string {
	var all []string
	for _, t := range ticks {
		all = append(all, t.Time().Format("2006-01-02T15:04:05"))
	}
	return strings.Join(all, " ")
}

// TestOracleAtEveryChangeOfEveryZone checks the hours around each change of the clocks that there is, under each mode, with
// expressions at the wall times that are missing, doubled, and next to them.
func TestOracleAtEveryChangeOfEveryZone(t *testing.T) {
	t.Parallel()
	z := zones(t)
	changes, step := 0, 1
	if testing.Short() { // the race detector has nothing to find here
		step = 8
	}
	for i, name := range zoneNames(t, z) {
		if i%step > 0 {
			continue
		}
		one, _ := z.Load(name)
		for _, c := range one.Changes(firstYear, lastYear) {
			changes++
			checkChange(t, one, c)
		}
	}
	// The database of 2025 has more than this: fewer would mean that nothing was looked at.
	if changes < 5000/step {
		t.Errorf("only %d changes of clocks in 40 years", changes)
	}
}

func checkChange(t *testing.T, zone *schedule.Zone, c schedule.Change) {
	t.Helper()
	size := time.Duration(max(c.After-c.Before, c.Before-c.After)) * time.Second
	lo := c.At.Time().Add(time.Duration(min(c.Before, c.After)) * time.Second)
	from, until := c.At.Time().Add(-size-time.Hour), c.At.Time().Add(size+time.Hour)
	clock := watchClock(zone.Location(), from.Add(-size-time.Minute), until, time.Minute)
	for i, wall := range []time.Time{lo.Add(-time.Minute), lo, lo.Add(size / 2).Truncate(time.Minute), lo.Add(size - time.Minute), lo.Add(size)} {
		h, m, _ := wall.Clock()
		fixed := meaning{text: fmt.Sprintf("%d %d * * *", m, h),
			clock: func(hour, minute, _ int) bool { return hour == h && minute == m }}
		twice := meaning{text: fmt.Sprintf("%d,%d %d * * *", m, (m+7)%60, h),
			clock: func(hour, minute, _ int) bool { return hour == h && (minute == m || minute == (m+7)%60) }}
		star := meaning{text: fmt.Sprintf("*/7 %d * * *", h), realTime: true,
			clock: func(hour, minute, _ int) bool { return hour == h && minute%7 == 0 }}
		hourly := meaning{text: fmt.Sprintf("%d * * * *", m), realTime: true,
			clock: func(_, minute, _ int) bool { return minute == m }}
		// All of them here and there, one of them everywhere: these are many.
		all := []*meaning{&fixed, &twice, &star, &hourly}
		if *oracleFactor == 1 && int(c.At/86400)%7 != i {
			all = all[:1]
		}
		for _, e := range all {
			e.date = func(time.Time) bool { return true }
			for _, dst := range []schedule.DST{schedule.DSTCron, schedule.DSTSkip, schedule.DSTLiteral} {
				s := parse(t, schedule.Options{Zone: zone, DST: dst}, e.text)
				want := e.slowTicks(clock, time.Minute, dst, from)
				compare(failure{t, fmt.Sprintf("%s %q dst %s", zone.Name(), e.text, dst)}, s, from, until, want, c.At.Time().Add(size/2))
			}
		}
	}
}

// failure says first what it is about.
type failure struct {
	t     interface{ Fatalf(string, ...any) }
	about string
}

func (f failure) Fatalf(format string, args ...any) { f.t.Fatalf(f.about+": "+format, args...) }

// drawZone gives a zone, a mode and a moment in the forty years: half of the times one at which the clocks change.
func drawZone(t *rapid.T, z *schedule.Zones, names []string) (*schedule.Zone, schedule.DST, time.Time) {
	zone, err := z.Load(rapid.SampledFrom(names).Draw(t, "zone"))
	if err != nil {
		t.Fatal(err)
	}
	dst := rapid.SampledFrom([]schedule.DST{schedule.DSTCron, schedule.DSTSkip, schedule.DSTLiteral}).Draw(t, "dst")
	at := time.Unix(rapid.Int64Range(firstYear.Unix(), lastYear.Unix()).Draw(t, "at")/60*60, 0).UTC()
	if rapid.Bool().Draw(t, "change") {
		if _, end := at.In(zone.Location()).ZoneBounds(); !end.IsZero() && end.Before(lastYear) {
			at = end.UTC()
		}
	}
	return zone, dst, at
}

// TestOracleMinuteByMinute takes any expression, in any zone, and looks at every minute of three days.
func TestOracleMinuteByMinute(t *testing.T) {
	t.Parallel()
	z := zones(t)
	names := zoneNames(t, z)
	for range 4 * *oracleFactor {
		rapid.Check(t, func(t *rapid.T) {
			e := drawMeaning(t, false)
			zone, dst, at := drawZone(t, z, names)
			s, ok := accepted(t, e, schedule.Options{Zone: zone, DST: dst})
			if !ok {
				return
			}
			from, until := at.Add(-36*time.Hour), at.Add(36*time.Hour)
			clock := watchClock(zone.Location(), from.Add(-26*time.Hour), until, time.Minute)
			compare(t, s, from, until, e.slowTicks(clock, time.Minute, dst, from), spread(from, until)...)
		})
	}
}

// TestOracleSecondBySecond is the same with six fields, for the seconds around a change.
func TestOracleSecondBySecond(t *testing.T) {
	t.Parallel()
	z := zones(t)
	names := slices.DeleteFunc(zoneNames(t, z), func(name string) bool {
		// Those that left out a day, or had one twice, are for the minutes.
		zone, _ := z.Load(name)
		return slices.ContainsFunc(zone.Changes(firstYear, lastYear), func(c schedule.Change) bool {
			return max(c.Before-c.After, c.After-c.Before) > 3*3600
		})
	})
	for range *oracleFactor {
		rapid.Check(t, func(t *rapid.T) {
			e := drawMeaning(t, true)
			zone, dst, at := drawZone(t, z, names)
			s, ok := accepted(t, e, schedule.Options{Zone: zone, DST: dst, Seconds: true})
			if !ok {
				return
			}
			from, until := at.Add(-time.Hour), at.Add(2*time.Hour)
			clock := watchClock(zone.Location(), from.Add(-3*time.Hour), until, time.Second)
			compare(t, s, from, until, e.slowTicks(clock, time.Second, dst, from), spread(from, until)...)
		})
	}
}

// accepted reads an expression; one that is refused has to be one that leaves ten years empty.
func accepted(t *rapid.T, e *meaning, o schedule.Options) (*schedule.Schedule, bool) {
	s, err := schedule.Parse(o, e.text)
	if err == nil {
		return s, true
	}
	if !strings.Contains(err.Error(), "at least once in 10 years") {
		t.Fatal(err)
	}
	last := 2000
	for day := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2420; day = day.AddDate(0, 0, 1) {
		if e.date(day) {
			if last = day.Year(); day.Year() < 2400 {
				continue
			}
		}
		if day.Year()-last > 10 {
			return nil, false
		}
	}
	t.Fatalf("%q is refused, and has a day in any ten years: %v", e.text, err)
	return nil, false
}

// TestOracleDayByDay takes expressions with few times a day, and looks at every day of the forty years.
func TestOracleDayByDay(t *testing.T) {
	t.Parallel()
	z := zones(t)
	names := zoneNames(t, z)
	for range *oracleFactor {
		rapid.Check(t, func(t *rapid.T) {
			e := drawMeaning(t, false)
			h, m := rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute")
			e.text = fmt.Sprintf("%d %d %s", m, h, strings.Join(strings.Fields(e.text)[2:], " "))
			e.realTime = false
			zone, dst, _ := drawZone(t, z, names)
			s, ok := accepted(t, e, schedule.Options{Zone: zone, DST: dst})
			if !ok {
				return
			}
			var want []schedule.Tick
			for day := firstYear.AddDate(0, 0, -2); day.Before(lastYear); day = day.AddDate(0, 0, 1) {
				if e.date(day) {
					want = append(want, slowMoments(day.Add(time.Duration(h)*time.Hour+time.Duration(m)*time.Minute), zone.Location(), dst)...)
				}
			}
			slices.Sort(want)
			want = slices.Compact(want)
			want = slices.DeleteFunc(want, func(tick schedule.Tick) bool {
				return tick.Time().Before(firstYear) || !tick.Time().Before(lastYear.AddDate(0, 0, -2))
			})
			compare(t, s, firstYear, lastYear.AddDate(0, 0, -2), want, spread(firstYear, lastYear.AddDate(0, 0, -2))...)
		})
	}
}

// slowMoments looks for the moments of a wall time in the two days around it.
func slowMoments(wall time.Time, loc *time.Location, dst schedule.DST) (found []schedule.Tick) {
	shows := func(t time.Time) time.Time { return watchClock(loc, t, t.Add(1), time.Minute)[0].wall }
	from, until := wall.Add(-26*time.Hour), wall.Add(26*time.Hour)
	if d := shows(from).Sub(from); shows(wall).Sub(wall) == d && shows(until).Sub(until) == d {
		return []schedule.Tick{schedule.Tick(wall.Add(-d).Unix())}
	}
	later := time.Time{}
	for _, look := range watchClock(loc, from, until, time.Minute) {
		switch {
		case look.wall.Equal(wall) && (len(found) == 0 || dst == schedule.DSTLiteral):
			found = append(found, schedule.Tick(look.t.Unix()))
		case look.wall.After(wall) && later.IsZero():
			later = look.t
		}
	}
	if len(found) == 0 && dst == schedule.DSTCron {
		found = append(found, schedule.Tick(later.Unix()))
	}
	return found
}
