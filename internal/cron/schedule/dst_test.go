package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/schedule"
)

// TestWhatTheClocksDo: the table of docs/schedule.md, on the days on which it matters. Times are local, with their offset.
func TestWhatTheClocksDo(t *testing.T) {
	t.Parallel()
	const everyOther = "00:30-0500 04:30-0400 06:30-0400 08:30-0400 10:30-0400 12:30-0400 14:30-0400 16:30-0400 18:30-0400 20:30-0400 22:30-0400"
	for _, tt := range []struct {
		zone, spec, day     string
		cron, skip, literal string
	}{
		// 02:00 to 02:59 is missing.
		{"America/New_York", "30 2 * * *", "2027-03-14", "03:00-0400", "", ""},
		{"America/New_York", "0,15,30,45 2 * * *", "2027-03-14", "03:00-0400", "", ""},
		{"America/New_York", "0 2,3 * * *", "2027-03-14", "03:00-0400", "03:00-0400", "03:00-0400"},
		{"America/New_York", "30 2,3 * * *", "2027-03-14", "03:00-0400 03:30-0400", "03:30-0400", "03:30-0400"},
		{"America/New_York", "30 2 14 3 *", "2027-03-14", "03:00-0400", "", ""},
		{"America/New_York", "*/30 2 * * *", "2027-03-14", "", "", ""},
		{"America/New_York", "30 */2 * * *", "2027-03-14", everyOther, everyOther, everyOther},

		// 01:00 to 01:59 comes twice.
		{"America/New_York", "30 1 * * *", "2027-11-07", "01:30-0400", "01:30-0400", "01:30-0400 01:30-0500"},
		{"America/New_York", "*/30 1 * * *", "2027-11-07", "01:00-0400 01:30-0400 01:00-0500 01:30-0500",
			"01:00-0400 01:30-0400 01:00-0500 01:30-0500", "01:00-0400 01:30-0400 01:00-0500 01:30-0500"},
		{"America/New_York", "30 1-2 * * *", "2027-11-07", "01:30-0400 02:30-0500", "01:30-0400 02:30-0500", "01:30-0400 01:30-0500 02:30-0500"},

		// A star in the second is one as well.
		{"America/New_York", "*/30 30 2 * * *", "2027-03-14", "", "", ""},
		{"America/New_York", "*/30 30 1 * * *", "2027-11-07", "01:30-0400 01:30-0400 01:30-0500 01:30-0500",
			"01:30-0400 01:30-0400 01:30-0500 01:30-0500", "01:30-0400 01:30-0400 01:30-0500 01:30-0500"},

		// Midnight itself.
		{"Asia/Beirut", "0 0 * * *", "2027-03-28", "01:00+0300", "", ""},
		{"America/Havana", "0 0 * * *", "2027-11-07", "00:00-0400", "00:00-0400", "00:00-0400 00:00-0500"},
		{"America/Santiago", "30 0 * * *", "2027-09-05", "01:00-0300", "", ""},

		// Half an hour.
		{"Australia/Lord_Howe", "15 2 * * *", "2027-10-03", "02:30+1100", "", ""},
		{"Australia/Lord_Howe", "30 2 * * *", "2027-10-03", "02:30+1100", "02:30+1100", "02:30+1100"},
		{"Australia/Lord_Howe", "45 1 * * *", "2027-04-04", "01:45+1100", "01:45+1100", "01:45+1100 01:45+1030"},

		// A day that Samoa never had: what was due on it is due when it is over, once with what that day brings itself.
		{"Pacific/Apia", "30 9 * * *", "2011-12-31", "00:00+1400 09:30+1400", "09:30+1400", "09:30+1400"},
		{"Pacific/Apia", "0 0 * * *", "2011-12-31", "00:00+1400", "00:00+1400", "00:00+1400"},
		{"Pacific/Apia", "30 9 30 12 *", "2011-12-31", "00:00+1400", "", ""},

		// A rule that began between two changes: no change of the clocks is to be seen a second time.
		{"America/Ciudad_Juarez", "30 23 * * *", "2022-11-29", "23:30-0600", "23:30-0600", "23:30-0600 23:30-0700"},
		// The last day of a leap year.
		{"America/New_York", "30 2 * * *", "2028-12-31", "02:30-0500", "02:30-0500", "02:30-0500"},
	} {
		z := zone(t, tt.zone)
		for dst, want := range map[schedule.DST]string{schedule.DSTCron: tt.cron, schedule.DSTSkip: tt.skip, schedule.DSTLiteral: tt.literal} {
			s := parse(t, schedule.Options{Zone: z, DST: dst, Seconds: strings.Count(tt.spec, " ") == 5}, tt.spec)
			if got := localTicks(t, s, z, tt.day); got != want {
				t.Errorf("%s %q on %s, dst %s: got %q, want %q", tt.zone, tt.spec, tt.day, dst, got, want)
			}
		}
	}
}

// localTicks gives the ticks whose local day is one, as they are shown there. It asks forward and backward.
func localTicks(t *testing.T, s *schedule.Schedule, z *schedule.Zone, day string) string {
	t.Helper()
	const layout = "15:04-0700"
	noon, err := time.ParseInLocation("2006-01-02 15:04", day+" 12:00", z.Location())
	if err != nil {
		t.Fatal(err)
	}
	var forward, backward []string
	start, end := noon.AddDate(0, 0, -3), noon.AddDate(0, 0, 3)
	for tick, ok := s.Next(start); ok && tick.Time().Before(end); tick, ok = s.Next(tick.Time()) {
		if local := tick.Time().In(z.Location()); local.Format(time.DateOnly) == day {
			forward = append(forward, local.Format(layout))
		}
	}
	for tick, ok := s.Prev(end); ok && tick.Time().After(start); tick, ok = s.Prev(tick.Time()) {
		if local := tick.Time().In(z.Location()); local.Format(time.DateOnly) == day {
			backward = append([]string{local.Format(layout)}, backward...)
		}
	}
	if strings.Join(forward, " ") != strings.Join(backward, " ") {
		t.Errorf("%s on %s: forward %q, backward %q", s.Explain(), day, forward, backward)
	}
	return strings.Join(forward, " ")
}

func TestAtWallTimes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		zone, spec, want string
		dst              schedule.DST
	}{
		{"America/New_York", "@at 2027-03-14T02:30", "at 2027-03-14 03:00:00 -0400, and never again", schedule.DSTCron},
		{"America/New_York", "@at 2027-11-07T01:30", "at 2027-11-07 01:30:00 -0400, and never again", schedule.DSTCron},
		{"America/New_York", "@at 2027-11-07T01:30", "at 2027-11-07 01:30:00 -0400, and never again", schedule.DSTSkip},
		{"America/New_York", "@at 2027-11-07T01:30", "at 2027-11-07 01:30:00 -0400 and 2027-11-07 01:30:00 -0500, and never again", schedule.DSTLiteral},
		{"America/New_York", "@at 2027-11-07T06:30Z", "at 2027-11-07 01:30:00 -0500, and never again", schedule.DSTCron},
		{"Europe/Berlin", "@at 2027-07-01 12:00", "at 2027-07-01 12:00:00 +0200, and never again", schedule.DSTLiteral},
		{"Pacific/Apia", "@at 2011-12-30 12:00", "at 2011-12-31 00:00:00 +1400, and never again", schedule.DSTCron},
	} {
		s := parse(t, schedule.Options{Zone: zone(t, tt.zone), DST: tt.dst}, tt.spec)
		if got := s.Explain(); got != tt.want {
			t.Errorf("%s %q dst %s: %s, want %s", tt.zone, tt.spec, tt.dst, got, tt.want)
		}
		last, ok := s.Prev(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
		if first, _ := s.Next(time.Unix(0, 0)); !ok || first != last && tt.dst != schedule.DSTLiteral {
			t.Errorf("%s %q dst %s: first %s, last %s", tt.zone, tt.spec, tt.dst, first.Time(), last.Time())
		}
	}
}

// TestEveryIsTheSameInAllZones: it hangs on no clock on a wall.
func TestEveryIsTheSameInAllZones(t *testing.T) {
	t.Parallel()
	from, until := time.Date(2027, 3, 13, 0, 0, 0, 0, time.UTC), time.Date(2027, 3, 15, 0, 0, 0, 0, time.UTC)
	for _, name := range []string{"UTC", "America/New_York", "Asia/Kolkata"} {
		ticks, _ := parse(t, schedule.Options{Zone: zone(t, name)}, "@every 90s").Between(from, until, 10000)
		if len(ticks) != 2*24*40 {
			t.Errorf("%s: %d ticks in two days", name, len(ticks))
		}
		for _, tick := range ticks {
			if tick%90 != 0 {
				t.Errorf("%s: %d is no multiple of 90", name, tick)
			}
		}
	}
}
