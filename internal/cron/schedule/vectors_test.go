package schedule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/schedule"
)

// zones are opened once for all tests of this file's package.
func zones(t testing.TB) *schedule.Zones {
	t.Helper()
	z, err := schedule.OpenZones()
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func zone(t testing.TB, name string) *schedule.Zone {
	t.Helper()
	z, err := zones(t).Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func parse(t testing.TB, o schedule.Options, specs ...string) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(o, specs...)
	if err != nil {
		t.Fatalf("Parse(%q): %v", specs, err)
	}
	return s
}

func TestVectors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		zone, spec, day string
		want            []schedule.Tick
	}{
		{"America/New_York", "30 2 * * *", "2027-03-14", []schedule.Tick{1805007600}},
		{"America/New_York", "0 2,3 * * *", "2027-03-14", []schedule.Tick{1805007600}},
		{"America/New_York", "30 1 * * *", "2027-11-07", []schedule.Tick{1825565400}},
		{"America/New_York", "*/30 * * * *", "2027-11-07", []schedule.Tick{1825563600, 1825565400, 1825567200, 1825569000}},
		{"Europe/Berlin", "0 2 * * *", "2027-10-31", []schedule.Tick{1824940800}},
		{"Asia/Beirut", "0 0 * * *", "2027-03-28", []schedule.Tick{1806184800}},
		{"America/Havana", "0 0 * * *", "2027-11-07", []schedule.Tick{1825560000}},
		{"Australia/Lord_Howe", "15 2 * * *", "2027-10-03", []schedule.Tick{1822491000}},
		{"Australia/Lord_Howe", "45 1 * * *", "2027-04-04", []schedule.Tick{1806763500}},
	} {
		z := zone(t, tt.zone)
		noon, err := time.ParseInLocation(time.DateTime, tt.day+" 12:00:00", z.Location())
		if err != nil {
			t.Fatal(err)
		}
		s := parse(t, schedule.Options{Zone: z}, tt.spec)

		// The ticks of that day, by the clock of the zone.
		got, _ := s.Between(noon.AddDate(0, 0, -2), noon.AddDate(0, 0, 2), 1000)
		got = slices.DeleteFunc(got, func(tick schedule.Tick) bool {
			return tick.Time().In(z.Location()).Format(time.DateOnly) != tt.day
		})
		if tt.spec == "*/30 * * * *" {
			// The day has 50 of them.
			got = got[slices.Index(got, tt.want[0]):][:4]
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s %q on %s: %d, want %d", tt.zone, tt.spec, tt.day, got, tt.want)
		}
	}
}
