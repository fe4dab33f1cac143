package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/schedule"
)

// FuzzParse: whatever is written, it is an error of one harmless line, or a schedule whose ticks rise and are found again backward.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "* * * * *", "30 2 * * *", "*/35 * * * *", "0 0 29 2 *", "0 0 30 2 *", "H H(0-5) * * *", "0 0 L,LW,15W * ?", "0 0 ? * FRI-TUE/2,5L,MON#3",
		"* */15 * * * *", "@daily", "@every 90s", "@at 2027-03-14T02:30", "@at 2027-03-14T02:30:00Z", "@manual", "@reboot", "CRON_TZ=UTC * * * * *",
		"50-10/7 22-4 28-3 NOV-FEB 5-7", "99999999999999999999 * * * *", "\x00\x1b[2J", "\xff\xfe", "0 0 ſ * *", "*/0 * * * *", "-1 * * * *", "1,,2 * * * *",
		"0 0 5#9 * *", "H() * * * *", "H(1-2)/3 * * * *", "@every 9223372036854775807h", "@every -1ns", "@at 9999-12-31T23:59:59-23:59",
	} {
		f.Add(seed, false, byte(0), int64(1805000000))
		f.Add("0 "+seed, true, byte(8), int64(-1))
	}
	modes := []schedule.DST{schedule.DSTCron, schedule.DSTSkip, schedule.DSTLiteral}
	var places []*schedule.Zone
	for _, name := range []string{"UTC", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"} {
		places = append(places, zone(f, name))
	}
	f.Fuzz(func(t *testing.T, spec string, seconds bool, where byte, at int64) {
		o := schedule.Options{Seconds: seconds, Zone: places[int(where)/3%len(places)], DST: modes[where%3], Name: "job"}
		s, err := schedule.Parse(o, spec)
		if err != nil {
			harmless(t, err, schedule.ErrSpec)
			return
		}
		from := time.Unix(at, 0)
		for _, line := range append(s.Lint(from), s.Explain()) {
			isOneLine(t, line)
		}
		ticks, _ := s.Between(from, from.AddDate(20, 0, 0), 5)
		last := schedule.Tick(-1)
		for i, tick := range ticks {
			if tick <= last || int64(tick) <= at {
				t.Fatalf("after %d: tick %d after %d", at, tick, last)
			}
			if back, ok := s.Prev(tick.Time()); i > 0 && (!ok || back != last) {
				t.Fatalf("before %d there is %d, want %d", tick, back, last)
			}
			last = tick
		}
	})
}

// FuzzLoad: a name is a zone's, or an error of one harmless line.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{"", "UTC", "Local", "europe/berlin", "Europe/Belrin", "../UTC", "\x1b[2J", "\xff", "Etc/GMT+5"} {
		f.Add(seed)
	}
	z := zones(f)
	f.Fuzz(func(t *testing.T, name string) {
		zone, err := z.Load(name)
		if err != nil {
			harmless(t, err, schedule.ErrZone)
		} else if zone.Name() != name && name != "" {
			t.Fatalf("Load(%q) is called %q", name, zone.Name())
		}
	})
}

func harmless(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("%v does not wrap %v", err, kind)
	}
	isOneLine(t, err.Error())
}

func isOneLine(t *testing.T, text string) {
	t.Helper()
	if len(text) > 2000 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Fatalf("not one line of plain characters: %q", text)
	}
}
