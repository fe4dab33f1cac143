package schedule_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/cron/schedule"
)

func TestErrorsSayWhatAndWhereAndWhatInstead(t *testing.T) {
	t.Parallel()
	const words = "@annually @daily @hourly @midnight @monthly @weekly @yearly"
	for _, tt := range []struct{ spec, want string }{
		{"", "the expression is empty: want five fields, such as 30 2 * * *, or one of " + words},
		{" \t ", "the expression is empty: want five fields, such as 30 2 * * *, or one of " + words},
		{"* * * *", `"* * * *" has 4 fields: want 5, minute hour day-of-month month day-of-week`},
		{"5", `"5" has 1 field: want 5, minute hour day-of-month month day-of-week`},
		{"0 * * * * *", `"0 * * * * *" has 6 fields: want 5, minute hour day-of-month month day-of-week; a field for the second has to be asked for with seconds`},
		{"CRON_TZ=Asia/Tokyo 30 4 * * *", `"CRON_TZ=Asia/Tokyo" at column 1: want a field; the time zone of a job is its tz`},
		{"0 0 * * MON\n", `"\n" at column 12: want letters, digits and signs of ASCII, and blanks between them`},
		{"0 0 * * \u017fun", `"\u017f" at column 9: want letters, digits and signs of ASCII, and blanks between them`},
		{"\xff", `"\ufffd" at column 1: want letters, digits and signs of ASCII, and blanks between them`},
		{strings.Repeat("1,", 600), `"` + strings.Repeat("1,", 20) + `"... has 1200 bytes: want 1000 at most`},

		// Values.
		{"60 * * * *", `minute "60" at column 1: want 0 to 59; did you mean 0?`},
		{"61 * * * *", `minute "61" at column 1: want 0 to 59; did you mean 59?`},
		{"0 24 * * *", `hour "24" at column 3: want 0 to 23; did you mean 0?`},
		{"0  99 * * *", `hour "99" at column 4: want 0 to 23; did you mean 23?`},
		{"0 0 0 * *", `day-of-month "0" at column 5: want 1 to 31; did you mean 1?`},
		{"0 0 1,15,32 * *", `day-of-month "32" at column 10: want 1 to 31; did you mean 31?`},
		{"0 0 1 13 *", `month "13" at column 7: want 1 to 12 or JAN to DEC; did you mean 12?`},
		{"0 0 1 JNA *", `month "JNA" at column 7: want 1 to 12 or JAN to DEC, a range of these, * or H, with a /step or without; did you mean JAN?`},
		{"0 0 1 sept *", `month "sept" at column 7: want 1 to 12 or JAN to DEC, a range of these, * or H, with a /step or without; did you mean SEP?`},
		{"0 0 * * 8", `day-of-week "8" at column 9: want 0 to 7 or SUN to SAT; did you mean 7?`},
		{"0 0 * * monday", `day-of-week "monday" at column 9: want 0 to 7 or SUN to SAT, a range of these, * or H, with a /step or without, ?, 5L, 5#3; did you mean MON?`},
		{"0 0 * * MON-X", `day-of-week "X" in "MON-X" at column 9: want 0 to 7 or SUN to SAT, a range of these, * or H, with a /step or without, ?, 5L, 5#3`},
		{"-5 * * * *", `minute "" in "-5" at column 1: want 0 to 59, a range of these, * or H, with a /step or without`},
		{"5- * * * *", `minute "" in "5-" at column 1: want 0 to 59, a range of these, * or H, with a /step or without`},
		{"1-2-3 * * * *", `minute "2-3" in "1-2-3" at column 1: want 0 to 59, a range of these, * or H, with a /step or without`},
		{"+5 * * * *", `minute "+5" at column 1: want 0 to 59, a range of these, * or H, with a /step or without`},
		{"99999999999999999999 * * * *", `minute "99999999999999999999" at column 1: want 0 to 59, a range of these, * or H, with a /step or without`},
		{"1,,2 * * * *", `minute "1,,2" at column 3: an element of the list is empty: want 0 to 59, a range of these, * or H, with a /step or without`},
		{"? * * * *", `minute "?" at column 1: want 0 to 59, a range of these, * or H, with a /step or without`},
		{"*5 * * * *", `minute "*5" at column 1: want 0 to 59, a range of these, * or H, with a /step or without`},

		// Steps.
		{"*/0 * * * *", `minute "0" in "*/0" at column 1: want a step of 1 to 60; did you mean 1?`},
		{"*/90 * * * *", `minute "90" in "*/90" at column 1: want a step of 1 to 60; longer ones are @every 90m`},
		{"0 */25 * * *", `hour "25" in "*/25" at column 3: want a step of 1 to 24; longer ones are @every 25h`},
		{"0 0 */x * *", `day-of-month "x" in "*/x" at column 5: want a step of 1 to 31`},
		{"0 0 1 */13 *", `month "13" in "*/13" at column 7: want a step of 1 to 12`},
		{"*/5/2 * * * *", `minute "5/2" in "*/5/2" at column 1: want a step of 1 to 60`},
		{"*/ * * * *", `minute "" in "*/" at column 1: want a step of 1 to 60`},

		// Days that no number names.
		{"0 0 5L * *", `day-of-month "5L" at column 5: want 1 to 31, a range of these, * or H, with a /step or without, ?, L, LW, 15W`},
		{"0 0 L-3 * *", `day-of-month "L-3" at column 5: want L (the last day), LW (the last of Monday to Friday) or 15W (the one of these nearest the 15th)`},
		{"0 0 L/2 * *", `day-of-month "L/2" at column 5: want L (the last day), LW (the last of Monday to Friday) or 15W (the one of these nearest the 15th)`},
		{"0 0 W * *", `day-of-month "W" at column 5: want L (the last day), LW (the last of Monday to Friday) or 15W (the one of these nearest the 15th)`},
		{"0 0 32W * *", `day-of-month "32W" at column 5: want L (the last day), LW (the last of Monday to Friday) or 15W (the one of these nearest the 15th)`},
		{"0 0 1,? * *", `day-of-month "?" at column 7: want ? alone in its field; did you mean *?`},
		{"0 0 * * L", `day-of-week "L" at column 9: want 5L or FRIL (the last Friday of the month), 5#3 or FRI#3 (the third)`},
		{"0 0 * * 5#3L", `day-of-week "5#3L" at column 9: want 5L or FRIL (the last Friday of the month), 5#3 or FRI#3 (the third)`},
		{"0 0 * * 5#6", `day-of-week "5#6" at column 9: want a count of 1 to 5 after the #; 5L or FRIL (the last Friday of the month), 5#3 or FRI#3 (the third)`},
		{"0 0 * * 9#1", `day-of-week "9" in "9#1" at column 9: want 0 to 7 or SUN to SAT; did you mean 7?`},
		{"0 0 * * FIRL", `day-of-week "FIR" in "FIRL" at column 9: want 0 to 7 or SUN to SAT, a range of these, * or H, with a /step or without, ?, 5L, 5#3; did you mean FRI?`},

		// H.
		{"H 2 * * *", `minute "H" at column 1: want a number here: H is made from the name of a job, and there is none`},
		{"H(5-1) 2 * * *", `minute "H(5-1)" at column 1: want a range of H that rises`},
		{"H(5-61) 2 * * *", `minute "61" in "H(5-61)" at column 1: want 0 to 59; did you mean 59?`},
		{"H(x-6) 2 * * *", `minute "x" in "H(x-6)" at column 1: want 0 to 59, a range of these, * or H, with a /step or without`},
		{"H(5-6 2 * * *", `minute "H(5-6" at column 1: want H, or H(a-b), each of a and b 0 to 59`},
		{"H5 2 * * *", `minute "H5" at column 1: want H, or H(a-b), each of a and b 0 to 59`},

		// Words.
		{"@dayly", `"@dayly" at column 1: want one of ` + words + " @every @at @manual; did you mean @daily?"},
		{"@fortnightly", `"@fortnightly" at column 1: want one of ` + words + " @every @at @manual"},
		{"@daily 5", `"5" at column 8: want nothing after @daily`},
		{"@manual 5", `"5" at column 9: want nothing after @manual`},
		{"@reboot", "@reboot at column 1: a start of a host is no moment in time; want @every, @at, @manual or one of " + words},
		{"@every", "@every needs a duration of whole seconds, such as 90s, 15m or 24h; there are 0 words"},
		{"@every 1h 30m", "@every needs a duration of whole seconds, such as 90s, 15m or 24h; there are 2 words"},
		{"@every 1d", `"1d" at column 8: @every needs a duration of whole seconds, such as 90s, 15m or 24h; did you mean 24h?`},
		{"@every 4000d", `"4000d" at column 8: @every needs a duration of whole seconds, such as 90s, 15m or 24h`},
		{"@every often", `"often" at column 8: @every needs a duration of whole seconds, such as 90s, 15m or 24h`},
		{"@every 1.5s", `"1.5s" at column 8: @every needs a duration of whole seconds, such as 90s, 15m or 24h, from 1s to 87600h`},
		{"@every 0s", `"0s" at column 8: @every needs a duration of whole seconds, such as 90s, 15m or 24h, from 1s to 87600h`},
		{"@every -5m", `"-5m" at column 8: @every needs a duration of whole seconds, such as 90s, 15m or 24h, from 1s to 87600h`},
		{"@every 87601h", `"87601h" at column 8: @every needs a duration of whole seconds, such as 90s, 15m or 24h, from 1s to 87600h`},
		{"@at tomorrow", `@at "tomorrow": want a time of whole seconds from 1970 to 9999, such as 2027-03-14T02:30:00Z, or 2027-03-14T02:30 in the zone of the job`},
		{"@at 2027-02-30T00:00Z", `@at "2027-02-30T00:00Z": want a time of whole seconds from 1970 to 9999, such as 2027-03-14T02:30:00Z, or 2027-03-14T02:30 in the zone of the job`},
		{"@at 2027-03-14T02:30:00.5Z", `@at "2027-03-14T02:30:00.5Z": want a time of whole seconds from 1970 to 9999, such as 2027-03-14T02:30:00Z, or 2027-03-14T02:30 in the zone of the job`},
		{"@at 1969-12-31T23:59:59Z", `@at "1969-12-31T23:59:59Z": want a time of whole seconds from 1970 to 9999, such as 2027-03-14T02:30:00Z, or 2027-03-14T02:30 in the zone of the job`},

		// Days that never come, or not within ten years.
		{"0 0 30 2 *", `day-of-month "30", month "2" and day-of-week "*": want a day that comes at least once in 10 years; did you mean L, the last day of the month?`},
		{"0 0 31 4,6,9,NOV ?", `day-of-month "31", month "4,6,9,NOV" and day-of-week "?": want a day that comes at least once in 10 years; did you mean L, the last day of the month?`},
		{"0 0 ? 2 MON#5", `day-of-month "?", month "2" and day-of-week "MON#5": want a day that comes at least once in 10 years`},
		{"0 0 ? 2 TUE#5", `day-of-month "?", month "2" and day-of-week "TUE#5": want a day that comes at least once in 10 years`}, // 2000 has one
		{"0 0 */28 2 1", `day-of-month "*/28", month "2" and day-of-week "1": want a day that comes at least once in 10 years`},   // up to 11 years
		{"0 0 31W 2 *", `day-of-month "31W", month "2" and day-of-week "*": want a day that comes at least once in 10 years`},
	} {
		_, err := schedule.Parse(schedule.Options{}, tt.spec)
		if !errors.Is(err, schedule.ErrSpec) {
			t.Errorf("%q: %v, want an error that wraps ErrSpec", tt.spec, err)
			continue
		}
		if got := err.Error(); got != "bad schedule: "+tt.want {
			t.Errorf("%q:\n got %s\nwant bad schedule: %s", tt.spec, got, tt.want)
		}
	}
}

func TestErrorsAboutOptions(t *testing.T) {
	t.Parallel()
	job := schedule.Options{Name: "backup"}
	for _, tt := range []struct {
		options schedule.Options
		specs   []string
		want    string
	}{
		{schedule.Options{}, nil, "no expression: want five fields, such as 30 2 * * *, or one of @annually @daily @hourly @midnight @monthly @weekly @yearly"},
		{schedule.Options{}, make([]string, 101), "101 expressions: want 100 at most"},
		{schedule.Options{}, []string{"* * * * *", "60 * * * *"}, `minute "60" at column 1: want 0 to 59; did you mean 0? (expression 2 of 2)`},
		{schedule.Options{}, []string{"@manual", "* * * * *"}, "@manual beside other expressions: it says that there are no ticks (expression 1 of 2)"},
		{schedule.Options{DST: "corn"}, []string{"* * * * *"}, `dst "corn": want cron, literal or skip; did you mean cron?`},
		{schedule.Options{DST: "\x1b[2J"}, []string{"* * * * *"}, `dst "\x1b[2J": want cron, literal or skip`},
		{schedule.Options{Seconds: true}, []string{"* * * * *"},
			`"* * * * *" has 5 fields: want 6, second minute hour day-of-month month day-of-week; with seconds the first field is the second, such as 0`},
		{schedule.Options{Seconds: true}, []string{"60 * * * * *"}, `second "60" at column 1: want 0 to 59; did you mean 0?`},
		{schedule.Options{Seconds: true}, []string{"*/61 * * * * *"}, `second "61" in "*/61" at column 1: want a step of 1 to 60; longer ones are @every 61s`},
		{job, []string{"H(0-5)/7 * * * *"}, `minute "H(0-5)/7" at column 1: want a step no longer than the range`},
		{schedule.Options{Zone: zone(t, "America/New_York"), DST: schedule.DSTSkip}, []string{"@at 2027-03-14T02:30"},
			`@at "2027-03-14T02:30": no clock in America/New_York ever shows that, and dst is skip: want another time, or dst cron`},
		{schedule.Options{Zone: zone(t, "America/New_York"), DST: schedule.DSTLiteral}, []string{"@at 2027-03-14 02:30:00"},
			`@at "2027-03-14 02:30:00": no clock in America/New_York ever shows that, and dst is literal: want another time, or dst cron`},
	} {
		_, err := schedule.Parse(tt.options, tt.specs...)
		if !errors.Is(err, schedule.ErrSpec) || err.Error() != "bad schedule: "+tt.want {
			t.Errorf("%+v %q:\n got %v\nwant bad schedule: %s", tt.options, tt.specs, err, tt.want)
		}
	}
}
