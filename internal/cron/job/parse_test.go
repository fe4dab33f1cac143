package job_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/hold"
)

func TestAJobOfAScheduleAndACommand(t *testing.T) {
	t.Parallel()
	j := parse(t, `{"schedule":"30 2 * * *","cmd":["backup","--all"]}`)
	want := &job.Job{Schedule: job.Strings{"30 2 * * *"}, Cmd: []string{"backup", "--all"}}
	if diff := cmp.Diff(want, j); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// full says everything that can be said, as Encode writes it.
const full = `{"schedule":["0 30 2 * * *","H 0 4 * * *"],"seconds":true,"tz":"Europe/Berlin","dst":"literal","jitter":"12h",` +
	`"start_at":"2027-01-01T00:00:00Z","end_at":"2028-01-01T00:00:00.5Z","script":"make <all> && true","shell":"/bin/bash","stdin":"a\u0000b\n",` +
	`"env":{"HOME":"/srv","PASSWORD":{"file":"/etc/secret"},"EMPTY":""},"env_inherit":true,"user":"backup","cwd":"/srv","umask":"0027",` +
	`"run_on":"one","select":{"rack/row":"r1","ssd":""},"prefer":"sticky","overlap":"queue_one","start_deadline":"30s",` +
	`"catchup":{"policy":"all","window":"6h","max":20},"run_ttl":"1h30m","kill_after":"1.5s",` +
	`"retry":{"max":3,"delay":"10s","factor":1.5,"max_delay":"5m","exit_codes":[1,75],"other_node":true},"on_lost":"retry","success_codes":[0,2],` +
	`"output":{"keep":"64KiB","file":"/var/log/x.log","file_size":"10MiB","file_count":3},"history":{"ok":5,"failed":500,"ttl":"720h"},` +
	`"labels":{"team":"db"},"description":"Füllt \u202e auf","paused":{"by":"ann","why":"upgrade","at":"2027-02-01T10:00:00Z","until":"2027-02-02T10:00:00Z"},` +
	`"added_by":"bob","added_at":"2026-12-01T10:00:00Z","schedule_since":"2026-12-24T10:00:00Z","resumed_at":"2026-12-26T10:00:00Z"}`

func TestAJobThatSaysEverything(t *testing.T) {
	t.Parallel()
	j := parse(t, full)
	want := &job.Job{
		Schedule: job.Strings{"0 30 2 * * *", "H 0 4 * * *"}, Seconds: true, TZ: "Europe/Berlin", DST: "literal", Jitter: hours(12),
		StartAt: at("2027-01-01T00:00:00Z"), EndAt: at("2028-01-01T00:00:00.5Z"),
		Script: "make <all> && true", Shell: "/bin/bash", Stdin: "a\x00b\n",
		Env:        map[string]job.EnvValue{"HOME": {Value: "/srv"}, "PASSWORD": {File: "/etc/secret"}, "EMPTY": {}},
		EnvInherit: true, User: "backup", Cwd: "/srv", Umask: "0027",
		RunOn: job.RunOnOne, Select: map[string]string{"rack/row": "r1", "ssd": ""}, Prefer: "sticky",
		Overlap: "queue_one", StartDeadline: seconds(30),
		Catchup: &job.Catchup{Policy: job.CatchupAll, Window: hours(6), Max: 20},
		RunTTL:  seconds(5400), KillAfter: seconds(1.5),
		Retry:  &job.Retry{Max: 3, Delay: seconds(10), Factor: 1.5, MaxDelay: seconds(300), ExitCodes: []int{1, 75}, OtherNode: true},
		OnLost: job.LostRetry, SuccessCodes: []int{0, 2},
		Output:  &job.Output{Keep: 64 << 10, File: "/var/log/x.log", FileSize: 10 << 20, FileCount: 3},
		History: &job.History{OK: 5, Failed: 500, TTL: hours(720)},
		Labels:  map[string]string{"team": "db"}, Description: "F\u00fcllt \u202e auf",
		Paused:  &job.Paused{By: "ann", Why: "upgrade", At: *at("2027-02-01T10:00:00Z"), Until: at("2027-02-02T10:00:00Z")},
		AddedBy: "bob", AddedAt: at("2026-12-01T10:00:00Z"), ScheduleSince: at("2026-12-24T10:00:00Z"), ResumedAt: at("2026-12-26T10:00:00Z"),
	}
	if diff := cmp.Diff(want, j); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got, line := string(j.Encode()), strings.Replace(full, `,"EMPTY":""`, "", 1)
	line = strings.Replace(line, `"env":{`, `"env":{"EMPTY":"",`, 1) // names are in order
	if line = strings.Replace(line, `\u202e`, "\u202e", 1); got != line {
		t.Errorf("encoded:\n got %s\nwant %s", got, line)
	}
}

func TestWhatIsWrittenIsCanonical(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{`"schedule":["@daily"]`, `"schedule":"@daily"`},
		{`"schedule":["@daily","@hourly"]`, `"schedule":["@daily","@hourly"]`},
		{`"jitter":"720m"`, `"jitter":"12h"`},
		{`"jitter":"90m0.0s"`, `"jitter":"1h30m"`},
		{`"jitter":"1500ms"`, `"jitter":"1.5s"`},
		{`"catchup":{"policy":"last"}`, `"catchup":"last"`},
		{`"catchup":"none"`, `"catchup":"none"`},
		{`"catchup":{"window":"60m","policy":"last"}`, `"catchup":{"policy":"last","window":"1h"}`},
		{`"output":{"keep":"1024B"}`, `"output":{"keep":"1KiB"}`},
		{`"output":{"keep":"1025B"}`, `"output":{"keep":"1025B"}`},
		{`"start_at":"2027-01-01T02:00:00+02:00"`, `"start_at":"2027-01-01T00:00:00Z"`},
		{`"env":{}`, ``},
		{`"seconds":false`, ``},
		{`"description":"","stdin":""`, ``},
		{`"tz":"UTC","overlap":"forbid"`, `"tz":"UTC","overlap":"forbid"`}, // said is said, and survives a change of the default
	} {
		if !strings.Contains(tt.in, "schedule") {
			tt.in = `"schedule":"@daily",` + tt.in
			tt.want = strings.TrimSuffix(`"schedule":"@daily",`+tt.want, ",")
		}
		j := parse(t, `{"script":"x",`+tt.in+"\n}")
		if diff := cmp.Diff(j, parse(t, string(j.Encode()))); diff != "" {
			t.Errorf("%s: comes back as another job:\n%s", tt.in, diff)
		}
		// The script goes where the order of the fields puts it.
		j.Script = ""
		if got := string(j.Encode()); got != "{"+tt.want+"}" {
			t.Errorf("%s is written as\n%s, want\n{%s}", tt.in, got, tt.want)
		}
	}
}

func TestASizeIsChecked(t *testing.T) {
	t.Parallel()
	j := &job.Job{Schedule: job.Strings{"@daily"}, Script: "x"}
	spare := job.MaxSize - len(j.Encode())
	j.Script += strings.Repeat("x", spare)
	if err := j.Validate("big"); err != nil {
		t.Errorf("the largest job: %v", err)
	}
	if _, err := job.Parse("big", j.Encode()); err != nil {
		t.Errorf("the largest job: %v", err)
	}
	j.Script += "x"
	const want = "bad job: it has 131073 bytes: want 131072 at most"
	if err := j.Validate("big"); err == nil || err.Error() != want {
		t.Errorf("a larger one: %v", err)
	}
	if _, err := job.Parse("big", j.Encode()); err == nil || err.Error() != want {
		t.Errorf("a larger one: %v", err)
	}
}

func TestADocumentIsNotReadIfItIsTooLarge(t *testing.T) {
	t.Parallel()
	doc := `{"schedule":"@daily","script":"x"}`
	parse(t, doc+strings.Repeat(" ", job.MaxSize-len(doc)))
	refused(t, doc+strings.Repeat(" ", job.MaxSize-len(doc)+1), "it has 131073 bytes: want 131072 at most")
}

func TestAJobNeedsAValidName(t *testing.T) {
	t.Parallel()
	_, err := job.Parse("a/b", []byte(`{"schedule":"@daily","script":"x"}`))
	if !errors.Is(err, job.ErrSpec) || !errors.Is(err, hold.ErrUsage) {
		t.Errorf("name a/b: %v", err)
	}
}

func TestManyJobsShareTheTimeZones(t *testing.T) {
	t.Parallel()
	zones, err := schedule.OpenZones()
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.ParseIn(zones, "tokyo", []byte(`{"schedule":"0 9 * * *","tz":"Asia/Tokyo","cmd":["x"]}`))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := j.Plan("tokyo", zones)
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	if tick, ok := plan.Next(from.Add(-time.Second)); !ok || !tick.Time().Equal(from) {
		t.Errorf("09:00 in Tokyo is %v, %v", tick.Time(), ok)
	}
}

// parse reads a job that has to be good.
func parse(t testing.TB, text string) *job.Job {
	t.Helper()
	j, err := job.Parse("job", []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return j
}

func at(text string) *time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return &t
}

func hours(n int) job.Duration { return job.Duration(n) * job.Duration(time.Hour) }

func seconds(n float64) job.Duration { return job.Duration(n * float64(time.Second)) }
