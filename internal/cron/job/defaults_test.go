package job_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/go-coord/coord/internal/cron/job"
)

func TestWhatHoldsWhereAJobSaysNothing(t *testing.T) {
	t.Parallel()
	j := &job.Job{}
	ok, failed, ttl := j.HistoryLimits()
	mask, masked := j.Mask()
	file, size, count := j.OutputFile()
	delay, again := j.Retries(1, 1)
	got := fmt.Sprintln(j.RunTime(), j.Grace(), j.Overlaps(), j.Preference(), j.OnAll(), j.Keep(), ok, failed, ttl, mask, masked, file, size, count,
		delay, again, j.RetriesLost(), j.CatchUp(), j.PausedAt(time.Unix(0, 0)), j.Shift("x"), j.Matches(nil))
	const want = "10m0s 5s forbid spread false 16384 50 50 72h0m0s 0 false  0 0 0s false false {none 0s 0} false 0s true\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestWhatHoldsWhereAJobSaysIt(t *testing.T) {
	t.Parallel()
	j := parse(t, full)
	ok, failed, ttl := j.HistoryLimits()
	mask, masked := j.Mask()
	file, size, count := j.OutputFile()
	got := fmt.Sprintln(j.RunTime(), j.Grace(), j.Overlaps(), j.Preference(), j.OnAll(), j.Keep(), ok, failed, ttl, mask, masked, file, size, count,
		j.RetriesLost(), j.CatchUp(), j.Deadline(time.Hour), j.Argv())
	const want = "1h30m0s 1.5s queue_one sticky false 65536 5 500 720h0m0s 23 true /var/log/x.log 10485760 3 true {all 6h 20} 30s " +
		"[/bin/bash -c make <all> && true]\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestWhatHoldsWhereAPartSaysNothing(t *testing.T) {
	t.Parallel()
	j := parse(t, `{"schedule":"@daily","run_on":"all","script":"x","output":{"file":"/x"},"history":{},"retry":{"max":1},"paused":{}}`)
	ok, failed, ttl := j.HistoryLimits()
	file, size, count := j.OutputFile()
	got := fmt.Sprintln(j.OnAll(), j.Keep(), ok, failed, ttl, file, size, count, j.PausedAt(time.Now()), j.Argv())
	if want := "true 16384 50 50 72h0m0s /x 10485760 5 true [/bin/sh -c x]\n"; got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestTheDeadlineIsHalfTheInterval(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ interval, want time.Duration }{
		{time.Hour, time.Minute},
		{2 * time.Minute, time.Minute},
		{time.Minute, 30 * time.Second},
		{3 * time.Second, 1500 * time.Millisecond},
		{time.Second, time.Second},
		{0, time.Minute}, // there is no next tick
	} {
		if got := (&job.Job{}).Deadline(tt.interval); got != tt.want {
			t.Errorf("interval %s: deadline %s, want %s", tt.interval, got, tt.want)
		}
	}
}

func TestArgvIsACopy(t *testing.T) {
	t.Parallel()
	j := &job.Job{Cmd: []string{"a", "b"}}
	argv := j.Argv()
	argv[0] = "c"
	if !slices.Equal(j.Cmd, []string{"a", "b"}) {
		t.Errorf("cmd became %v", j.Cmd)
	}
}

func TestCodesThatAreListedAreTheOnlyOnes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		codes []int
		code  int
		want  bool
	}{
		{nil, 0, true},
		{nil, 1, false},
		{nil, -1, false},
		{[]int{0, 3}, 3, true},
		{[]int{0, 3}, 0, true},
		{[]int{3}, 0, false},
		{[]int{3}, -1, false},
	} {
		if got := (&job.Job{SuccessCodes: tt.codes}).Succeeds(tt.code); got != tt.want {
			t.Errorf("codes %v: %d is successful: %v, want %v", tt.codes, tt.code, got, tt.want)
		}
	}
}

func TestRetriesBackOff(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		retry job.Retry
		want  string // of one attempt after the other
	}{
		{job.Retry{Max: 1}, "[10s]"},
		{job.Retry{Max: 8}, "[10s 20s 40s 1m20s 2m40s 5m20s 10m0s 10m0s]"},
		{job.Retry{Max: 4, Factor: 1, Delay: seconds(3)}, "[3s 3s 3s 3s]"},
		{job.Retry{Max: 4, Factor: 10, Delay: seconds(1), MaxDelay: seconds(50)}, "[1s 10s 50s 50s]"},
		{job.Retry{Max: 2, Delay: hours(1)}, "[1h0m0s 1h0m0s]"}, // the longest delay is no shorter than the first
		{job.Retry{Max: 3, Factor: 1.5, Delay: seconds(2)}, "[2s 3s 4.5s]"},
	} {
		j := &job.Job{Retry: &tt.retry}
		var got []time.Duration
		for attempt := 1; ; attempt++ {
			delay, again := j.Retries(attempt, 1)
			if !again {
				break
			}
			got = append(got, delay)
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%+v: %v, want %s", tt.retry, got, tt.want)
		}
	}
	most := &job.Job{Retry: &job.Retry{Max: 100, Factor: 100, Delay: hours(24), MaxDelay: hours(24)}}
	if delay, again := most.Retries(100, 1); !again || delay != 24*time.Hour {
		t.Errorf("the hundredth retry: %s, %v", delay, again)
	}
}

func TestWhatIsRetried(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		success, exit []int
		code          int
		want          bool
	}{
		{nil, nil, 0, false},
		{nil, nil, 1, true},
		{nil, nil, -1, true}, // a signal, or no time left
		{nil, []int{75}, 75, true},
		{nil, []int{75}, 1, false},
		{nil, []int{75}, -1, false},
		{[]int{75}, []int{75}, 75, false},
		{[]int{3}, nil, 0, true},
	} {
		j := &job.Job{SuccessCodes: tt.success, Retry: &job.Retry{Max: 1, ExitCodes: tt.exit}}
		if _, again := j.Retries(1, tt.code); again != tt.want {
			t.Errorf("%v %v: code %d is retried: %v, want %v", tt.success, tt.exit, tt.code, again, tt.want)
		}
	}
}

func TestCatchUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		is   *job.Catchup
		want job.Catchup
	}{
		{nil, job.Catchup{Policy: job.CatchupNone}},
		{&job.Catchup{Policy: job.CatchupNone}, job.Catchup{Policy: job.CatchupNone}},
		{&job.Catchup{Policy: job.CatchupLast}, job.Catchup{Policy: job.CatchupLast, Window: hours(24), Max: 1}},
		{&job.Catchup{Policy: job.CatchupLast, Window: hours(2)}, job.Catchup{Policy: job.CatchupLast, Window: hours(2), Max: 1}},
		{&job.Catchup{Policy: job.CatchupAll, Window: hours(2)}, job.Catchup{Policy: job.CatchupAll, Window: hours(2), Max: 100}},
		{&job.Catchup{Policy: job.CatchupAll, Window: hours(2), Max: 5}, job.Catchup{Policy: job.CatchupAll, Window: hours(2), Max: 5}},
	} {
		j := &job.Job{Catchup: tt.is}
		if diff := cmp.Diff(tt.want, j.CatchUp()); diff != "" {
			t.Errorf("%+v: -want +got:\n%s", tt.is, diff)
		}
	}
}

func TestAPauseHoldsUntilItsEnd(t *testing.T) {
	t.Parallel()
	begin, end := at("2027-01-01T00:00:00Z"), at("2027-01-02T00:00:00Z")
	for _, tt := range []struct {
		paused *job.Paused
		now    time.Time
		want   bool
	}{
		{nil, *begin, false},
		{&job.Paused{}, *begin, true},
		{&job.Paused{At: *begin}, begin.Add(-time.Second), true}, // whose clock is behind obeys as well
		{&job.Paused{At: *begin, Until: end}, end.Add(-1), true},
		{&job.Paused{At: *begin, Until: end}, *end, false},
	} {
		if got := (&job.Job{Paused: tt.paused}).PausedAt(tt.now); got != tt.want {
			t.Errorf("%+v at %v: %v, want %v", tt.paused, tt.now, got, tt.want)
		}
	}
}

func TestANodeMatchesIfItHasAllLabels(t *testing.T) {
	t.Parallel()
	j := &job.Job{Select: map[string]string{"zone": "a", "ssd": ""}}
	for _, tt := range []struct {
		labels map[string]string
		want   bool
	}{
		{nil, false},
		{map[string]string{"zone": "a"}, false},
		{map[string]string{"zone": "a", "ssd": "", "rack": "7"}, true},
		{map[string]string{"zone": "b", "ssd": ""}, false},
	} {
		if got := j.Matches(tt.labels); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.labels, got, tt.want)
		}
	}
}

// TestTheShiftIsAPartOfTheJitter: these numbers may never change, or each job is due at another time after an upgrade.
func TestTheShiftIsAPartOfTheJitter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		jitter time.Duration
		want   time.Duration
	}{
		{"backup", 0, 0},
		{"backup", time.Millisecond, 0},
		{"backup", 2*time.Millisecond - 1, 0},
		{"backup", 12 * time.Hour, 5*time.Hour + 21*time.Minute + 37193*time.Millisecond},
		{"backup", time.Minute, 37193 * time.Millisecond},
		{"restore", 12 * time.Hour, 6*time.Hour + 28*time.Minute + 18844*time.Millisecond},
	} {
		if got := (&job.Job{Jitter: job.Duration(tt.jitter)}).Shift(tt.name); got != tt.want {
			t.Errorf("%s in %s: %s, want %s", tt.name, tt.jitter, got, tt.want)
		}
	}
	var first, all int
	j := &job.Job{Jitter: hours(1)}
	for i := range 2000 {
		shift := j.Shift(fmt.Sprintf("job-%d", i))
		if shift < 0 || shift >= time.Hour || shift%time.Millisecond != 0 {
			t.Fatalf("job-%d: shift %s", i, shift)
		}
		if all++; shift < 30*time.Minute {
			first++
		}
	}
	if first < all*45/100 || first > all*55/100 {
		t.Errorf("%d of %d jobs are due in the first half", first, all)
	}
}

func TestAnEditOfTheScheduleIsOne(t *testing.T) {
	t.Parallel()
	const base = `{"schedule":"@daily","script":"x","jitter":"1m","start_at":"2027-01-01T00:00:00Z"`
	for _, tt := range []struct {
		doc  string
		want bool
	}{
		{base + `}`, false},
		{base + `,"tz":"UTC","dst":"cron","seconds":false}`, false},
		{`{"schedule":["@daily"],"script":"y","jitter":"60s","start_at":"2027-01-01T01:00:00+01:00","overlap":"allow"}`, false},
		{base + `,"tz":"Etc/UTC"}`, true}, // the same today: not for us to know
		{base + `,"tz":"Europe/Berlin"}`, true},
		{base + `,"dst":"skip"}`, true},
		{base + `,"seconds":true}`, true},
		{base + `,"end_at":"2028-01-01T00:00:00Z"}`, true},
		{`{"schedule":"@daily","script":"x","jitter":"1m","start_at":"2027-01-01T00:00:01Z"}`, true},
		{`{"schedule":"@daily","script":"x","jitter":"1m"}`, true},
		{`{"schedule":"@daily","script":"x","start_at":"2027-01-01T00:00:00Z"}`, true},
		{`{"schedule":"@hourly","script":"x","jitter":"1m","start_at":"2027-01-01T00:00:00Z"}`, true},
		{`{"schedule":["@daily","@hourly"],"script":"x","jitter":"1m","start_at":"2027-01-01T00:00:00Z"}`, true},
	} {
		a, b := parse(t, base+"}"), parse(t, tt.doc)
		if got := a.ScheduleDiffers(b); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.doc, got, tt.want)
		}
		if got := b.ScheduleDiffers(a); got != tt.want {
			t.Errorf("%s, the other way: %v, want %v", tt.doc, got, tt.want)
		}
	}
	if !(&job.Job{}).ScheduleDiffers(nil) {
		t.Error("a job that was not there has no other schedule")
	}
}

func TestDurationsAndSizesAreReadAsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"12h": "12h", "90m": "1h30m", "3600s": "1h", "1h0m5s": "1h0m5s", "0s": "0s", "10ms": "10ms", "1m0s": "1m", "-2h": "-2h"} {
		if d, err := job.ParseDuration(text); err != nil || d.String() != want {
			t.Errorf("duration %s: %s, %v, want %s", text, d, err, want)
		}
	}
	for text, want := range map[string]string{"0B": "0B", "0KiB": "0B", "1024B": "1KiB", "1536B": "1536B", "2048MiB": "2GiB", "8589934591GiB": "8589934591GiB", "9223372036854775807B": "9223372036854775807B"} {
		if n, err := job.ParseSize(text); err != nil || n.String() != want {
			t.Errorf("size %s: %s, %v, want %s", text, n, err, want)
		}
	}
	for _, text := range []string{"", "B", "1", "1k", "1.5KiB", "+1B", "8589934592GiB", "9223372036854775808B", "1 KiB"} {
		if n, err := job.ParseSize(text); err == nil {
			t.Errorf("size %q: %s", text, n)
		}
	}
	if _, err := job.ParseDuration("1d"); err == nil || err.Error() != `bad job: duration "1d": want a number and a unit, such as 90s, 1h30m or 12h` {
		t.Errorf("duration 1d: %v", err)
	}
}
