package schedule_test

import (
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/schedule"
)

func BenchmarkNext(b *testing.B) {
	from := time.Date(2027, 3, 13, 12, 0, 0, 0, time.UTC)
	for _, bm := range []struct{ name, zone, spec string }{
		{"minute", "UTC", "* * * * *"},
		{"daily", "UTC", "30 2 * * *"},
		{"minute-zone", "America/New_York", "* * * * *"},
		{"daily-zone", "America/New_York", "30 2 * * *"},
		{"leap-day", "Europe/Berlin", "0 0 29 2 *"},
		{"leap-day-2100", "Europe/Berlin", "0 0 29 2 *"},
		{"in-the-gap", "America/New_York", "*/10 2 * 3 SUN#2"},
		{"every", "UTC", "@every 90s"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			s := parse(b, schedule.Options{Zone: zone(b, bm.zone)}, bm.spec)
			at := from
			if bm.name == "leap-day-2100" {
				at = time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC)
			}
			for b.Loop() {
				s.Next(at)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	o := schedule.Options{Zone: zone(b, "Europe/Berlin"), Name: "job"}
	for _, spec := range []string{"30 2 * * *", "H H(0-5) 1,15W,L JAN-MAR MON-FRI", "0 0 29 2 *", "*/10 2 * 3 SUN#2"} {
		b.Run(spec, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				parse(b, o, spec)
			}
		})
	}
}
