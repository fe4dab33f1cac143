package schedule_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/schedule"
)

// ticksFrom gives the first ticks after a moment, as people write them, in UTC.
func ticksFrom(s *schedule.Schedule, from string, n int) string {
	at, err := time.Parse(time.DateTime, from)
	if err != nil {
		return err.Error()
	}
	var all []string
	for range n {
		tick, ok := s.Next(at)
		if !ok {
			all = append(all, "none")
			break
		}
		at = tick.Time()
		layout := "2006-01-02 15:04"
		if at.Second() > 0 {
			layout = "2006-01-02 15:04:05"
		}
		all = append(all, at.Format(layout))
	}
	return strings.Join(all, ", ")
}

func TestWhatExpressionsMean(t *testing.T) {
	t.Parallel()
	// 2027-01-01 is a Friday.
	const newYear = "2026-12-31 23:59:59"
	for _, tt := range []struct {
		spec, from string
		n          int
		want       string
	}{
		{"* * * * *", newYear, 2, "2027-01-01 00:00, 2027-01-01 00:01"},
		{"  30\t2  * * * ", newYear, 2, "2027-01-01 02:30, 2027-01-02 02:30"},
		{"*/35 * * * *", newYear, 3, "2027-01-01 00:00, 2027-01-01 00:35, 2027-01-01 01:00"},
		{"5/20 0 * * *", newYear, 4, "2027-01-01 00:05, 2027-01-01 00:25, 2027-01-01 00:45, 2027-01-02 00:05"},
		{"0 22-4/2 * * *", newYear, 6, "2027-01-01 00:00, 2027-01-01 02:00, 2027-01-01 04:00, 2027-01-01 22:00, 2027-01-02 00:00, 2027-01-02 02:00"},
		{"58-2/2 0 * * *", newYear, 4, "2027-01-01 00:00, 2027-01-01 00:02, 2027-01-01 00:58, 2027-01-02 00:00"},
		{"007 0 * * *", newYear, 1, "2027-01-01 00:07"},

		// Days of the week: Sunday is 0 and 7, and ends a range as well as it begins one.
		{"0 0 * * 7", newYear, 2, "2027-01-03 00:00, 2027-01-10 00:00"},
		{"0 0 * * 0", newYear, 2, "2027-01-03 00:00, 2027-01-10 00:00"},
		{"0 0 * * 6-7", newYear, 3, "2027-01-02 00:00, 2027-01-03 00:00, 2027-01-09 00:00"},
		{"0 0 * * FRI-TUE", newYear, 6, "2027-01-01 00:00, 2027-01-02 00:00, 2027-01-03 00:00, 2027-01-04 00:00, 2027-01-05 00:00, 2027-01-08 00:00"},
		{"0 0 * * fri-tue/2", newYear, 4, "2027-01-01 00:00, 2027-01-03 00:00, 2027-01-05 00:00, 2027-01-08 00:00"},
		{"0 0 * * 7-2", newYear, 4, "2027-01-03 00:00, 2027-01-04 00:00, 2027-01-05 00:00, 2027-01-10 00:00"},
		{"0 0 * * 1-7/3", newYear, 4, "2027-01-03 00:00, 2027-01-04 00:00, 2027-01-07 00:00, 2027-01-10 00:00"},
		{"0 0 * * */2", newYear, 4, "2027-01-02 00:00, 2027-01-03 00:00, 2027-01-05 00:00, 2027-01-07 00:00"},
		{"0 0 * * FRIL", newYear, 2, "2027-01-29 00:00, 2027-02-26 00:00"},
		{"0 0 * * 7L", newYear, 2, "2027-01-31 00:00, 2027-02-28 00:00"},
		{"0 0 * * 5#3", newYear, 2, "2027-01-15 00:00, 2027-02-19 00:00"},
		{"0 0 * * 7#1", newYear, 2, "2027-01-03 00:00, 2027-02-07 00:00"},
		{"0 0 * * MON#5", newYear, 3, "2027-03-29 00:00, 2027-05-31 00:00, 2027-08-30 00:00"},
		{"0 0 ? * MON#1,FRIL", newYear, 3, "2027-01-04 00:00, 2027-01-29 00:00, 2027-02-01 00:00"},

		// Days of the month.
		{"0 0 L * *", newYear, 3, "2027-01-31 00:00, 2027-02-28 00:00, 2027-03-31 00:00"},
		{"0 0 LW * *", newYear, 3, "2027-01-29 00:00, 2027-02-26 00:00, 2027-03-31 00:00"},
		{"0 0 1W * ?", newYear, 5, "2027-01-01 00:00, 2027-02-01 00:00, 2027-03-01 00:00, 2027-04-01 00:00, 2027-05-03 00:00"},
		{"0 0 16w * *", newYear, 2, "2027-01-15 00:00, 2027-02-16 00:00"},
		{"0 0 31W * *", newYear, 3, "2027-01-29 00:00, 2027-03-31 00:00, 2027-05-31 00:00"},
		{"0 0 28-3/2 * *", newYear, 5, "2027-01-01 00:00, 2027-01-03 00:00, 2027-01-28 00:00, 2027-01-30 00:00, 2027-02-01 00:00"},
		{"0 0 31 * *", newYear, 3, "2027-01-31 00:00, 2027-03-31 00:00, 2027-05-31 00:00"},
		{"0 0 1 NOV-feb/3 *", newYear, 3, "2027-02-01 00:00, 2027-11-01 00:00, 2028-02-01 00:00"},
		{"0 0 29 2 *", "2096-02-29 00:00:00", 1, "2104-02-29 00:00"},
		{"0 0 29 2 *", newYear, 2, "2028-02-29 00:00, 2032-02-29 00:00"},

		// One of the two is enough, unless one begins with a star.
		{"0 0 13 * FRI", "2027-08-01 00:00:00", 4, "2027-08-06 00:00, 2027-08-13 00:00, 2027-08-20 00:00, 2027-08-27 00:00"},
		{"0 0 13 * MON", "2027-08-01 00:00:00", 4, "2027-08-02 00:00, 2027-08-09 00:00, 2027-08-13 00:00, 2027-08-16 00:00"},
		{"0 0 */13 * FRI", newYear, 3, "2027-01-01 00:00, 2027-05-14 00:00, 2027-08-27 00:00"},
		{"0 0 13 * */5", newYear, 3, "2027-06-13 00:00, 2027-08-13 00:00, 2028-02-13 00:00"},
		{"0 0 1,*/13 * FRI", newYear, 3, "2027-01-01 00:00, 2027-01-08 00:00, 2027-01-14 00:00"},
		{"0 0 *,1 * FRI", newYear, 2, "2027-01-01 00:00, 2027-01-08 00:00"},

		// Words.
		{"@hourly", newYear, 2, "2027-01-01 00:00, 2027-01-01 01:00"},
		{"@daily", newYear, 2, "2027-01-01 00:00, 2027-01-02 00:00"},
		{"@midnight", newYear, 2, "2027-01-01 00:00, 2027-01-02 00:00"},
		{"@weekly", newYear, 2, "2027-01-03 00:00, 2027-01-10 00:00"},
		{"@monthly", newYear, 2, "2027-01-01 00:00, 2027-02-01 00:00"},
		{"@yearly", newYear, 2, "2027-01-01 00:00, 2028-01-01 00:00"},
		{"@annually", newYear, 2, "2027-01-01 00:00, 2028-01-01 00:00"},
		{"@manual", newYear, 1, "none"},

		// By the clock that began in 1970, whenever one asks.
		{"@every 90s", newYear, 2, "2027-01-01 00:00, 2027-01-01 00:01:30"},
		{"@every 90s", "2027-01-01 00:01:29", 2, "2027-01-01 00:01:30, 2027-01-01 00:03"},
		{"@every 168h", newYear, 2, "2027-01-07 00:00, 2027-01-14 00:00"},
		{"@every 1h30m", newYear, 2, "2027-01-01 00:00, 2027-01-01 01:30"},

		{"@at 2027-03-14T02:30:00Z", newYear, 2, "2027-03-14 02:30, none"},
		{"@at 2027-03-14T02:30:05+02:00", newYear, 2, "2027-03-14 00:30:05, none"},
		{"@at 2027-03-14T02:30-05:00", newYear, 2, "2027-03-14 07:30, none"},
		{"@at 2027-03-14T02:30", newYear, 2, "2027-03-14 02:30, none"},
		{"@at 2027-03-14  02:30:07", newYear, 2, "2027-03-14 02:30:07, none"},
		{"@at 2027-03-14T02:30", "2027-03-14 02:30:00", 1, "none"},
	} {
		if got := ticksFrom(parse(t, schedule.Options{}, tt.spec), tt.from, tt.n); got != tt.want {
			t.Errorf("%q after %s:\n got %s\nwant %s", tt.spec, tt.from, got, tt.want)
		}
	}
}

func TestExpressionsWithSeconds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		spec string
		n    int
		want string
	}{
		{"*/25 * * * * *", 4, "2027-01-01 00:00, 2027-01-01 00:00:25, 2027-01-01 00:00:50, 2027-01-01 00:01"},
		{"7 30 2 * * *", 2, "2027-01-01 02:30:07, 2027-01-02 02:30:07"},
		{"58-1 0 0 1 1 *", 5, "2027-01-01 00:00, 2027-01-01 00:00:01, 2027-01-01 00:00:58, 2027-01-01 00:00:59, 2028-01-01 00:00"},
		{"@daily", 2, "2027-01-01 00:00, 2027-01-02 00:00"},
	} {
		if got := ticksFrom(parse(t, schedule.Options{Seconds: true}, tt.spec), "2026-12-31 23:59:59", tt.n); got != tt.want {
			t.Errorf("%q:\n got %s\nwant %s", tt.spec, got, tt.want)
		}
	}
}

// TestHashIsForEver: these numbers are in the keys of clusters. Whoever changes them moves every job that says H.
func TestHashIsForEver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		spec, job string
		n         int
		want      string
	}{
		{"H H * * *", "backup", 2, "2027-01-01 16:52, 2027-01-02 16:52"},
		{"H H * * *", "reports", 1, "2027-01-01 17:39"},
		{"h H(0-5) * * *", "backup", 1, "2027-01-01 04:52"},
		{"H H H * *", "backup", 2, "2027-01-24 16:52, 2027-02-24 16:52"},
		{"H H H h *", "backup", 2, "2027-03-24 16:52, 2028-03-24 16:52"},
		{"H H * * H", "backup", 2, "2027-01-04 16:52, 2027-01-11 16:52"},
		{"H/15 * * * *", "backup", 5, "2027-01-01 00:07, 2027-01-01 00:22, 2027-01-01 00:37, 2027-01-01 00:52, 2027-01-01 01:07"},
		{"H(10-29)/5 0 * * *", "backup", 5, "2027-01-01 00:12, 2027-01-01 00:17, 2027-01-01 00:22, 2027-01-01 00:27, 2027-01-02 00:12"},
		{"0 0 * * H(MON-FRI)", "backup", 1, "2027-01-06 00:00"},
		{"1,H 0 * * *", "backup", 2, "2027-01-01 00:01, 2027-01-01 00:52"},
	} {
		if got := ticksFrom(parse(t, schedule.Options{Name: tt.job}, tt.spec), "2026-12-31 23:59:59", tt.n); got != tt.want {
			t.Errorf("%q of %q:\n got %s\nwant %s", tt.spec, tt.job, got, tt.want)
		}
	}
}

// TestHashSpreads: of a thousand jobs that run once an hour, no minute gets much more than its share.
func TestHashSpreads(t *testing.T) {
	t.Parallel()
	jobs := map[int]int{}
	for i := range 1000 {
		s := parse(t, schedule.Options{Name: fmt.Sprintf("job%d", i)}, "H * * * *")
		tick, _ := s.Next(time.Unix(0, 0))
		jobs[tick.Time().Minute()]++
	}
	for m := range 60 {
		if jobs[m] == 0 || jobs[m] > 40 {
			t.Errorf("minute %d has %d of 1000 jobs", m, jobs[m])
		}
	}
}

func TestSchedulesOfOneJobAreUnited(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Options{}, "0 */2 * * *", "0 */3 * * *", "@every 6h", "@at 2027-01-01T01:00Z")
	want := "2027-01-01 00:00, 2027-01-01 01:00, 2027-01-01 02:00, 2027-01-01 03:00, 2027-01-01 04:00, 2027-01-01 06:00"
	if got := ticksFrom(s, "2026-12-31 23:59:59", 6); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	back, ok := s.Prev(time.Date(2027, 1, 1, 2, 0, 0, 0, time.UTC))
	if want := schedule.Tick(time.Date(2027, 1, 1, 1, 0, 0, 0, time.UTC).Unix()); !ok || back != want {
		t.Errorf("Prev gives %s, want %s", back.Time(), want.Time())
	}
}

func TestMomentsBetweenSeconds(t *testing.T) {
	t.Parallel()
	tick := time.Date(2027, 1, 1, 2, 30, 0, 0, time.UTC)
	s := parse(t, schedule.Options{}, "30 2 * * *")
	for _, tt := range []struct {
		at         time.Time
		next, prev time.Time
	}{
		{tick.Add(-time.Nanosecond), tick, tick.AddDate(0, 0, -1)},
		{tick, tick.AddDate(0, 0, 1), tick.AddDate(0, 0, -1)},
		{tick.Add(time.Nanosecond), tick.AddDate(0, 0, 1), tick},
	} {
		next, _ := s.Next(tt.at)
		prev, _ := s.Prev(tt.at)
		if !next.Time().Equal(tt.next) || !prev.Time().Equal(tt.prev) {
			t.Errorf("%s: between %s and %s, want %s and %s", tt.at.Format(time.RFC3339Nano), prev.Time(), next.Time(), tt.prev, tt.next)
		}
	}
}

func TestWindowsOfCatchUpAreBounded(t *testing.T) {
	t.Parallel()
	s := parse(t, schedule.Options{}, "* * * * *")
	from := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		until time.Time
		limit int
		n     int
		more  bool
	}{
		{from, 10, 0, false},
		{from.Add(-time.Hour), 10, 0, false},
		{from.Add(59 * time.Second), 10, 0, false},
		{from.Add(10 * time.Minute), 10, 10, false},
		{from.Add(10 * time.Minute), 9, 9, true},
		{from.Add(1000 * 24 * time.Hour), 10, 10, true},
		{from.Add(10 * time.Minute), 0, 0, true},
	} {
		ticks, more := s.Between(from, tt.until, tt.limit)
		if len(ticks) != tt.n || more != tt.more {
			t.Errorf("until %s at most %d: %d ticks, more %v; want %d, %v", tt.until, tt.limit, len(ticks), more, tt.n, tt.more)
		}
		if n, more := s.Count(from, tt.until, tt.limit); n != tt.n || more != tt.more {
			t.Errorf("until %s at most %d: counted %d, more %v; want %d, %v", tt.until, tt.limit, n, more, tt.n, tt.more)
		}
	}
}

// TestTheEndsOfTime: ticks lie from 1970 to 9999, wherever one asks from.
func TestTheEndsOfTime(t *testing.T) {
	t.Parallel()
	first, last := time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	farPast, farFuture := time.Time{}, time.Unix(1<<62, 999)
	for _, spec := range []string{"* * * * *", "@every 1m", "0 0 1 1 *", "0 0 29 2 *"} {
		for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York"} {
			s := parse(t, schedule.Options{Zone: zone(t, name)}, spec)
			a, ok := s.Next(farPast)
			if b, _ := s.Next(first.Add(-1)); !ok || a != b || a < 0 {
				t.Errorf("%s %q: the first tick is %d, and %d", name, spec, a, b)
			}
			if tick, ok := s.Prev(a.Time()); ok {
				t.Errorf("%s %q: %d is earlier than the first", name, spec, tick)
			}
			z, ok := s.Prev(farFuture)
			if b, _ := s.Prev(last.Add(time.Nanosecond)); !ok || z != b || z.Time().After(last) {
				t.Errorf("%s %q: the last tick is %s, and %s", name, spec, z.Time(), b.Time())
			}
			if tick, ok := s.Next(z.Time()); ok {
				t.Errorf("%s %q: %s is later than the last", name, spec, tick.Time())
			}
			for _, at := range []time.Time{farPast, time.Unix(-1<<62, 0), first} {
				if tick, ok := s.Prev(at); ok {
					t.Errorf("%s %q: %s before %s", name, spec, tick.Time(), at)
				}
			}
			for _, at := range []time.Time{farFuture, last} {
				if tick, ok := s.Next(at); ok {
					t.Errorf("%s %q: %s after %s", name, spec, tick.Time(), at)
				}
			}
		}
	}
}

func TestCheckSaysWhatNeverComes(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		spec, zone string
		dst        schedule.DST
		want       string
	}{
		{"30 2 * * *", "America/New_York", "", ""},
		{"@manual", "UTC", "", ""},
		{"@at 2027-01-01T00:00:01Z", "UTC", "", ""},
		{"@at 2027-01-01T00:00:00Z", "UTC", "", "no tick within 10 years of 2027-01-01T00:00:00Z: at 2027-01-01 00:00:00 +0000, and never again"},

		// The second Sunday of March is the one on which New York has no 02:30.
		{"30 2 * 3 SUN#2", "America/New_York", schedule.DSTCron, ""},
		{"30 2 * 3 SUN#2", "America/New_York", schedule.DSTSkip,
			"no tick within 10 years of 2027-01-01T00:00:00Z: at 02:30, on the second Sunday of the month, in March (America/New_York)"},
		{"30 2 * 3 SUN#2", "America/New_York", schedule.DSTLiteral,
			"no tick within 10 years of 2027-01-01T00:00:00Z: at 02:30, on the second Sunday of the month, in March (America/New_York)"},
		{"*/30 2 * 3 SUN#2", "America/New_York", schedule.DSTCron,
			"no tick within 10 years of 2027-01-01T00:00:00Z: at 02:00 and 02:30, on the second Sunday of the month, in March (America/New_York)"},
	} {
		s := parse(t, schedule.Options{Zone: zone(t, tt.zone), DST: tt.dst}, tt.spec)
		got := ""
		if err := s.Check(now); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q dst %q:\n got %s\nwant %s", tt.spec, tt.dst, got, tt.want)
		}
		if _, ok := s.Prev(now); ok && tt.want != "" && !strings.HasPrefix(tt.spec, "@") {
			t.Errorf("%q dst %q: has no next tick, but had one", tt.spec, tt.dst)
		}
	}
}

// TestTheDocumentIsTrue: what docs/schedule.md shows as an expression is one, except where it says that it is none.
func TestTheDocumentIsTrue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/schedule.md")
	if err != nil {
		t.Fatal(err)
	}
	refused := []string{"0 0 30 2 *", "@reboot"}
	n := 0
	for _, m := range regexp.MustCompile("`(@\\w+(?: [^`]+)?|[^` |]+(?: [^` |]+){4,5})`").FindAllStringSubmatch(string(text), -1) {
		n++
		o := schedule.Options{Name: "job", Seconds: strings.Count(m[1], " ") == 5}
		if _, err := schedule.Parse(o, m[1]); (err != nil) != slices.Contains(refused, m[1]) {
			t.Errorf("docs/schedule.md shows `%s`: %v", m[1], err)
		}
	}
	if n < 30 {
		t.Errorf("%d expressions were found", n)
	}
}
