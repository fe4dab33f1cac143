package schedule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/schedule"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ spec, want string }{
		{"* * * * *", "every minute (UTC)"},
		{"*/15 * * * *", "every 15 minutes (UTC)"},
		{"*/15 9-17 * * MON-FRI", "every 15 minutes of hours 9 to 17, on Monday to Friday (UTC)"},
		{"*/35 * * * *", "at minutes 0 and 35 of every hour (UTC)"},
		{"5 * * * *", "at minute 5 of every hour (UTC)"},
		{"0 */2 * * *", "at minute 0 of hours 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20 and 22 (UTC)"},
		{"* 2 * * *", "every minute of hour 2 (UTC)"},
		{"30 2 * * *", "at 02:30, every day (UTC)"},
		{"0 2,14 * * *", "at 02:00 and 14:00, every day (UTC)"},
		{"0,30 2,14 * * *", "at 02:00, 02:30, 14:00 and 14:30, every day (UTC)"},
		{"30 2 1,15 * *", "at 02:30, on the 1st and 15th of the month (UTC)"},
		{"30 2 2-4,22,23,31 JAN-MAR,7 *", "at 02:30, on the 2nd to 4th, 22nd, 23rd and 31st of the month, in January to March and July (UTC)"},
		{"30 2 L,LW,15W * *", "at 02:30, on the Monday to Friday nearest the 15th, the last Monday to Friday and the last day of the month (UTC)"},
		{"30 2 11-13 * FRI", "at 02:30, on the 11th to 13th of the month, and also on Friday (UTC)"},
		{"30 2 */10 * 1", "at 02:30, on the 1st, 11th, 21st and 31st of the month, if that is Monday (UTC)"},
		{"30 2 * 2 SUN#2,FRIL,3", "at 02:30, on Wednesday, the second Sunday of the month and the last Friday of the month, in February (UTC)"},
		{"30 2 5,* * 1", "at 02:30, on any day of the month, and also on Monday (UTC)"},
		{"30 2 5 * 1,*", "at 02:30, on the 5th of the month, and also on any weekday (UTC)"},
		{"@weekly", "at 00:00, on Sunday (UTC)"},
		{"@every 90s", "every 1m30s, counted from 1970-01-01 00:00 UTC"},
		{"@every 15m", "every 15m, counted from 1970-01-01 00:00 UTC"},
		{"@every 168h", "every 168h, counted from 1970-01-01 00:00 UTC"},
		{"@manual", "never by itself, only when asked to run"},
	} {
		if got := parse(t, schedule.Options{}, tt.spec).Explain(); got != tt.want {
			t.Errorf("%q:\n got %s\nwant %s", tt.spec, got, tt.want)
		}
	}
}

func TestExplainWithSecondsZonesAndLists(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		options schedule.Options
		specs   []string
		want    string
	}{
		{schedule.Options{Seconds: true}, []string{"* * * * * *"}, "every second (UTC)"},
		{schedule.Options{Seconds: true}, []string{"* */15 * * * *"}, "every second of minutes 0, 15, 30 and 45 of every hour (UTC)"},
		{schedule.Options{Seconds: true}, []string{"30 * 9 * * *"}, "at second 30 of every minute of hour 9 (UTC)"},
		{schedule.Options{Seconds: true}, []string{"0,30 7 * * * *"}, "at seconds 0 and 30 of minute 7 of every hour (UTC)"},
		{schedule.Options{Seconds: true}, []string{"15 30 2 * * *"}, "at 02:30:15, every day (UTC)"},
		{schedule.Options{Zone: zone(t, "Europe/Berlin")}, []string{"30 2 * * *", "@every 1h"},
			"at 02:30, every day (Europe/Berlin); and every 1h, counted from 1970-01-01 00:00 UTC"},
		{schedule.Options{Name: "backup"}, []string{"H H * * *"}, "at 16:52, every day (UTC)"},
	} {
		if got := parse(t, tt.options, tt.specs...).Explain(); got != tt.want {
			t.Errorf("%q:\n got %s\nwant %s", tt.specs, got, tt.want)
		}
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	const or = `: as in cron, a day that matches one of them is enough`
	for _, tt := range []struct {
		options schedule.Options
		specs   []string
		want    []string
	}{
		// Nothing to say.
		{schedule.Options{}, []string{"30 2 * * *"}, nil},
		{schedule.Options{}, []string{"*/15 9-17 * * MON-FRI"}, nil},
		{schedule.Options{}, []string{"5/15 * * * *"}, nil},
		{schedule.Options{}, []string{"* 9-17 * * *"}, nil},
		{schedule.Options{}, []string{"0-30/7 * 25-31 * *"}, nil},
		{schedule.Options{}, []string{"0 0 L * ?"}, nil},
		{schedule.Options{}, []string{"0 */1 */1 * */7"}, nil},
		{schedule.Options{Seconds: true}, []string{"* * * * * *"}, nil},
		{schedule.Options{}, []string{"@every 90s"}, nil},
		{schedule.Options{}, []string{"@at 2027-03-14T02:30Z"}, nil},
		{schedule.Options{}, []string{"@manual"}, nil},

		// Steps.
		{schedule.Options{}, []string{"*/35 * * * *"}, []string{
			`minute "*/35" is not every 35 minutes: it is 0 and 35, and then 0 again after 25; @every 35m is`}},
		{schedule.Options{}, []string{"0 1/5 * * *"}, []string{
			`hour "1/5" is not every 5 hours: it is 1, 6, 11, 16 and 21, and then 1 again after 4; @every 5h is`}},
		{schedule.Options{Seconds: true}, []string{"*/59 * * * * *"}, []string{
			`second "*/59" is not every 59 seconds: it is 0 and 59, and then 0 again after 1; @every 59s is`}},
		{schedule.Options{}, []string{"0 0 */2 * *"}, []string{
			`day-of-month "*/2" is not every 2 days: it is 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29 and 31, and starts anew each month`}},
		{schedule.Options{}, []string{"0 0 * * */2"}, []string{
			`day-of-week "*/2" is not every 2 days: it is 0, 2, 4 and 6, and then 0 again`}},
		{schedule.Options{}, []string{"0 0 1 */5 *"}, []string{
			`month "*/5" is not every 5 months: it is 1, 6 and 11, and then 1 again`}},
		{schedule.Options{Name: "backup"}, []string{"H/25 0-3 * * *"}, []string{
			`minute "H/25" is not every 25 minutes: it is 2, 27 and 52, and then 2 again after 10; @every 25m is`}},
		{schedule.Options{}, []string{"@every 24h", "@every 24h"}, []string{
			"@every 24h is at 00:00 UTC, in every time zone: a time of day in the zone of the job is @daily or 30 2 * * *"}},

		// Sixty times.
		{schedule.Options{}, []string{"* 2 * * *"}, []string{
			`minute "*" with hour "2" runs 60 times in each of these hours: 0 in the place of the star is once`}},
		{schedule.Options{Seconds: true}, []string{"* */15 * * * *"}, []string{
			`second "*" with minute "*/15" runs 60 times in each of these minutes: 0 in the place of the star is once`}},

		// Days.
		{schedule.Options{}, []string{"0 0 31 * *"}, []string{
			"day-of-month 31: none in February, April, June, September and November; L is the last day of each month"}},
		{schedule.Options{}, []string{"0 0 30,29W * *"}, []string{
			"day-of-month 29: February has it in leap years only; L is the last day of each month",
			"day-of-month 30: none in February; L is the last day of each month"}},
		{schedule.Options{}, []string{"0 0 31 1,3 *"}, nil},
		{schedule.Options{}, []string{"0 0 13 * FRI"}, []string{`day-of-month "13" and day-of-week "FRI"` + or}},
		{schedule.Options{}, []string{"0 0 */31 * FRI"}, []string{
			`day-of-month "*/31" is not every 31 days: it is 1, and starts anew each month`,
			`day-of-month "*/31" and day-of-week "FRI": as in cron, a day has to match both, since one begins with a star`}},
		{schedule.Options{}, []string{"0 0 1,* * FRI"}, []string{
			`"1,*": only a star that comes first counts as one, for the choice between day-of-month and day-of-week`,
			`day-of-month "1,*" and day-of-week "FRI"` + or}},
	} {
		got := parse(t, tt.options, tt.specs...).Lint(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q:\n got %s\nwant %s", tt.specs, strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
		}
	}
}

func TestLintOfTheComingYear(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		zone, spec string
		dst        schedule.DST
		want       []string
	}{
		{"America/New_York", "30 2 * * *", schedule.DSTCron, []string{
			"2027-03-14 02:30:00 does not exist in America/New_York: the tick is at 03:00:00 -0400 instead (dst cron)"}},
		{"America/New_York", "30 2 * * *", schedule.DSTSkip, []string{
			"2027-03-14 02:30:00 does not exist in America/New_York: no tick then (dst skip)"}},
		{"America/New_York", "30 2 * * *", schedule.DSTLiteral, []string{
			"2027-03-14 02:30:00 does not exist in America/New_York: no tick then (dst literal)"}},
		{"America/New_York", "0 */2 * * *", schedule.DSTCron, []string{
			"2027-03-14 02:00:00 does not exist in America/New_York: no tick then, since expressions with a star in the hour or minute follow real time"}},
		{"America/New_York", "30 1 * * *", schedule.DSTCron, []string{
			"2027-11-07 01:30:00 comes twice in America/New_York: a tick the first time only (dst cron)"}},
		{"America/New_York", "30 1 * * *", schedule.DSTLiteral, []string{
			"2027-11-07 01:30:00 comes twice in America/New_York: a tick each time (dst literal)"}},
		{"America/New_York", "*/15 1-2 * * *", schedule.DSTSkip, []string{
			"2027-03-14 02:00:00 does not exist in America/New_York: no tick then, since expressions with a star in the hour or minute follow real time",
			"2027-11-07 01:00:00 comes twice in America/New_York: a tick each time, since expressions with a star in the hour or minute follow real time"}},
		{"America/New_York", "0 12 * * *", schedule.DSTCron, nil},
		{"America/New_York", "*/5 * * * *", schedule.DSTCron, nil},
		{"America/New_York", "30 2 1 * *", schedule.DSTCron, nil},
		{"Asia/Tokyo", "30 2 * * *", schedule.DSTCron, nil},
	} {
		s := parse(t, schedule.Options{Zone: zone(t, tt.zone), DST: tt.dst}, tt.spec)
		if got := s.Lint(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)); !slices.Equal(got, tt.want) {
			t.Errorf("%s %q dst %s:\n got %s\nwant %s", tt.zone, tt.spec, tt.dst, strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
		}
	}
}
