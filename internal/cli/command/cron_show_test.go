package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// moments at which the tests look: the evening before clocks are set forward in New York.
var evening = time.Date(2027, 3, 13, 22, 0, 0, 0, time.UTC)

// knownAt is a job that was read, without etcd.
func knownAt(t *testing.T, name, value string) known {
	t.Helper()
	zones, err := schedule.OpenZones()
	if err != nil {
		t.Fatal(err)
	}
	return knownOf(zones, store.Stored{Name: name, Value: []byte(value), Rev: 7})
}

func TestLsTellsWhenJobsAreDue(t *testing.T) {
	t.Parallel()
	all := []known{
		knownAt(t, "a", `{"schedule":["30 2 * * *","0 4 * * *"],"tz":"America/New_York","script":"x"}`),
		knownAt(t, "b", `{"schedule":"@manual","script":"x","paused":{}}`),
		knownAt(t, "c", `{"schedule":"@hourly","script":"x","paused":{"until":"2027-03-14T00:00:00Z"},"start_at":"2027-03-20T12:00:00Z"}`),
		knownAt(t, "d", `{"schedule":"@hourly","script":"x","paused":{"until":"2027-03-13T00:00:00Z"},"end_at":"2027-03-13T22:59:59Z"}`),
		knownAt(t, "e", `{"schedule":"@hourly"}`),
		knownAt(t, "f", `{"schedule":"0 5 * * *","tz":"Asia/Kathmandu","script":"x","run_on":"all"}`),
	}
	last := map[string]record.Result{
		"a": {Status: record.Failed, Reason: record.ReasonExit, Host: "h1", EndedAt: record.StampOf(evening.Add(-90 * time.Minute))},
		"b": {Status: record.Success},
	}
	var out strings.Builder
	printJobs(&out, all, evening, true, last)
	const want = `NAME  SCHEDULE                                                      TZ                NEXT (TZ)                      NEXT (UTC)            DUE       PAUSED                      LAST
a     30 2 * * *; 0 4 * * *                                         America/New_York  2027-03-14 03:00:00 -0400 EDT  2027-03-14T07:00:00Z  in 9h     -                           failed (exit_code) 1h30m ago on h1
b     @manual                                                       UTC               -                              -                     -         yes                         success
c     @hourly                                                       UTC               2027-03-20 12:00:00 +0000 UTC  2027-03-20T12:00:00Z  in 6d14h  until 2027-03-14T00:00:00Z  -
d     @hourly                                                       UTC               -                              -                     -         -                           -
e     job e cannot be read: cmd: is missing: want a command as a...  -                 -                              -                     -         -                           -
f     0 5 * * *                                                     Asia/Kathmandu    2027-03-14 05:00:00 +0545      2027-03-13T23:15:00Z  in 1h15m  -                           -
`
	if got := out.String(); squeezed(got) != squeezed(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var lines strings.Builder
	for _, k := range all {
		lines.Write(cli.JSONLine(k.line(evening, nil)))
	}
	const wantJSON = `{"name":"a","schedule":["30 2 * * *","0 4 * * *"],"tz":"America/New_York","next_tick":1805007600,"next":"2027-03-14T03:00:00-04:00","next_in_ms":32400000,"paused":false,"run_on":"one","overlap":"forbid","rev":7,"error":""}
{"name":"b","schedule":["@manual"],"tz":"UTC","next_tick":null,"next":"","next_in_ms":0,"paused":true,"run_on":"one","overlap":"forbid","rev":7,"error":""}
{"name":"c","schedule":["@hourly"],"tz":"UTC","next_tick":1805544000,"next":"2027-03-20T12:00:00Z","next_in_ms":568800000,"paused":true,"run_on":"one","overlap":"forbid","rev":7,"error":""}
{"name":"d","schedule":["@hourly"],"tz":"UTC","next_tick":null,"next":"","next_in_ms":0,"paused":false,"run_on":"one","overlap":"forbid","rev":7,"error":""}
{"name":"e","schedule":[],"tz":"","next_tick":null,"next":"","next_in_ms":0,"paused":false,"run_on":"","overlap":"","rev":7,"error":"job e cannot be read: cmd: is missing: want a command as a list of texts, or a script"}
{"name":"f","schedule":["0 5 * * *"],"tz":"Asia/Kathmandu","next_tick":1804979700,"next":"2027-03-14T05:00:00+05:45","next_in_ms":4500000,"paused":false,"run_on":"all","overlap":"forbid","rev":7,"error":""}
`
	if got := lines.String(); got != wantJSON {
		t.Errorf("got\n%s\nwant\n%s", got, wantJSON)
	}
}

// squeezed is a table whatever the width of its columns, and of what is cut in them.
func squeezed(table string) string {
	table, rest, _ := strings.Cut(table, "job e")
	_, rest, _ = strings.Cut(rest, "\n")
	var all []string
	for line := range strings.Lines(table + "e\n" + rest) {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(all, "\n")
}

func TestShowDescribesAJob(t *testing.T) {
	t.Parallel()
	k := knownAt(t, "a", `{"schedule":"30 2 * * *","tz":"America/New_York","script":"x","jitter":"1h","paused":{"by":"me","why":"disk\u202e"},"added_by":"you"}`)
	out := described(k, map[string]record.Result{"a": {Status: record.Skipped, Reason: record.ReasonPaused}})
	shift := k.job.Shift("a").String()
	want := `name      a
revision  7
meaning   at 02:30, every day (America/New_York)
next      2027-03-14 03:00:00 -0400 EDT, in 9h; clocks forward 1h, to 03:00
          2027-03-15 02:30:00 -0400 EDT, in 32h30m
          2027-03-16 02:30:00 -0400 EDT, in 2d8h
jitter    each ` + shift + ` later than that
paused    yes, by me: disk\u202e
last      skipped (paused)

name: a
schedule: 30 2 * * *
tz: America/New_York
jitter: 1h
script: x
paused:
  by: me
  why: "disk\u202E"
added_by: you
`
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	out = described(knownAt(t, "a", `{"schedule":"@manual","script":"x"}`), nil)
	contains(t, out, "next      none\nlast      -\n", "meaning   never by itself")
}

func described(k known, last map[string]record.Result) string {
	out := &text{}
	k.describe(&out.buf, evening, last)
	return out.String()
}

func TestOneIsListedShownAndExported(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	cron(t, 0, "add", name, "--schedule", "@daily", "--label", "a=b", "--", "x", "y")
	out, _ := cron(t, 0, "ls", name)
	contains(t, out, name+"  @daily    UTC")
	result := record.Result{Job: name, Status: record.Success, RunID: name + "/1805007600"}
	putKey(t, record.Results+result.RunID, record.Encode(result))
	out, _ = cron(t, 0, "ls", "--last", "-o", "json", name)
	var line struct {
		Name string
		Next string
		Last record.Result
	}
	if err := json.Unmarshal([]byte(out), &line); err != nil || line.Name != name || !strings.HasSuffix(line.Next, "T00:00:00Z") || line.Last.Status != record.Success {
		t.Errorf("%s: %v", out, err)
	}
	out, _ = cron(t, 0, "show", name)
	contains(t, out, "name      "+name, "meaning   at 00:00, every day (UTC)", "last      success", "\ncmd: [x, y]\n")
	j, _ := storedJob(t, name)
	out, _ = cron(t, 0, "show", name, "-o", "json")
	if want := `{"name":"` + name + `",` + string(j.Encode()[1:]) + "\n"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
	out, _ = cron(t, 0, "show", name, "-o", "yaml")
	contains(t, out, "name: "+name+"\nschedule: '@daily'\n", "\nschedule_since: ")
	out, _ = cron(t, 0, "export", name, name)
	one := "name: " + name + "\nschedule: '@daily'\ncmd: [x, y]\nlabels:\n  a: b\n"
	if out != one+"---\n"+one {
		t.Errorf("%q", out)
	}
	out, _ = cron(t, 0, "export", "-o", "json", name)
	if out != `{"name":"`+name+`","schedule":"@daily","cmd":["x","y"],"labels":{"a":"b"}}`+"\n" {
		t.Errorf("%q", out)
	}
	for _, format := range []string{"yaml", "json"} {
		out, _ = cron(t, 0, "export", "-o", format, name)
		if again, _ := cronFed(t, 0, out, "apply", "-f", "-"); again != "unchanged "+name+"\n" {
			t.Errorf("%q", again)
		}
	}
	if all, _ := cron(t, 0, "ls"); !strings.Contains(all, name) {
		t.Errorf("%q", all)
	}
}

// TestWhereThereIsNoJob each verb says 1, and the name that was meant.
func TestWhereThereIsNoJob(t *testing.T) {
	t.Parallel()
	server := etcdtest.One(t)
	try := func(want string, args ...string) {
		t.Helper()
		s := newShell("CONCH_ENDPOINTS=" + server.Endpoint())
		if code := s.conch(append([]string{"cron"}, args...)...); code != 1 || s.stdout.String()+s.stderr.String() != want {
			t.Errorf("%q: code %d, stdout %q, stderr %q", args, code, s.stdout.String(), s.stderr.String())
		}
	}
	try("there are no jobs\n", "ls")
	try("", "ls", "-o", "json")
	s := newShell("CONCH_ENDPOINTS=" + server.Endpoint())
	if code := s.conch("cron", "export"); code != 0 || s.stdout.String() != "" {
		t.Errorf("code %d, %q", code, s.stdout.String())
	}
	if code := s.conch("cron", "add", "backup", "--schedule", "@daily", "--", "x"); code != 0 {
		t.Fatal(s.stderr.String())
	}
	for _, verb := range []string{"ls", "show", "next", "rm", "edit", "export"} {
		try("conch: there is no job bakcup; did you mean backup?\n", verb, "bakcup")
		try("conch: there is no job quite-another\n", verb, "quite-another")
	}
	try("conch: there is no job bakcup; did you mean backup?\n", "rm", "backup", "bakcup")
	client := server.Client(t)
	if _, err := client.Put(t.Context(), record.JobKey("broken"), `{"schedule":"x","script":"x"}`); err != nil {
		t.Fatal(err)
	}
	const broken = `conch: job broken cannot be read: schedule: "x" has 1 field: want five, minute hour day-of-month month day-of-week`
	for _, verb := range []string{"show", "next", "edit", "export"} {
		s := newShell("CONCH_ENDPOINTS=" + server.Endpoint())
		if code := s.conch("cron", verb, "broken"); code != 1 || !strings.HasPrefix(s.stderr.String(), broken[:40]) || s.stdout.String() != "" {
			t.Errorf("%s: code %d, %q %q", verb, code, s.stdout.String(), s.stderr.String())
		}
	}
}

func TestNextOfExpressions(t *testing.T) {
	t.Parallel()
	s := newShell("CONCH_ENDPOINTS=" + etcdtest.Untouched(t))
	next := func(code int, want string, args ...string) {
		t.Helper()
		s.stdout.buf.Reset()
		s.stderr.buf.Reset()
		if got := s.conch(append([]string{"cron", "next"}, args...)...); got != code || s.stdout.String()+s.stderr.String() != want {
			t.Errorf("%q: code %d\n got %q%q\nwant %q", args, got, s.stdout.String(), s.stderr.String(), want)
		}
	}
	// The vectors of the design.
	for _, v := range []struct {
		zone, expr, from string
		ticks            []string
	}{
		{"America/New_York", "30 2 * * *", "2027-03-14T05:00:00Z", []string{"1805007600"}},
		{"America/New_York", "0 2,3 * * *", "2027-03-14T05:00:00Z", []string{"1805007600"}},
		{"America/New_York", "30 1 * * *", "2027-11-07T04:00:00Z", []string{"1825565400"}},
		{"America/New_York", "*/30 * * * *", "2027-11-07T05:00:00Z", []string{"1825563600", "1825565400", "1825567200", "1825569000"}},
		{"Europe/Berlin", "0 2 * * *", "2027-10-30T22:00:00Z", []string{"1824940800"}},
		{"Asia/Beirut", "0 0 * * *", "2027-03-27T22:00:00Z", []string{"1806184800"}},
		{"America/Havana", "0 0 * * *", "2027-11-07T04:00:00Z", []string{"1825560000"}},
		{"Australia/Lord_Howe", "15 2 * * *", "2027-10-02T13:30:00Z", []string{"1822491000"}},
		{"Australia/Lord_Howe", "45 1 * * *", "2027-04-03T13:00:00Z", []string{"1806763500"}},
	} {
		s.stdout.buf.Reset()
		if code := s.conch("cron", "next", v.expr, "--tz", v.zone, "--from", v.from, "-n", fmt.Sprint(len(v.ticks)), "-o", "json"); code != 0 {
			t.Errorf("%v: code %d", v, code)
		}
		var got []string
		for line := range strings.Lines(s.stdout.String()) {
			var tick tickLine
			if err := json.Unmarshal([]byte(line), &tick); err != nil {
				t.Error(err)
			}
			at, err := time.Parse(time.RFC3339, tick.Time)
			if err != nil || at.Unix() != tick.Tick {
				t.Errorf("%s: %v", line, err)
			}
			got = append(got, fmt.Sprint(tick.Tick))
		}
		equal(t, got, v.ticks)
	}
	next(0, `{"tick":1805007600,"time":"2027-03-14T03:00:00-04:00"}`+"\n", "30 2 * * *", "--tz", "America/New_York", "--from", "2027-03-14T07:00:00Z", "-n", "1", "--json")
	next(0, `{"tick":1805013000,"time":"2027-03-14T08:30:00Z"}`+"\n", "30 8 * * *", "--from", "2027-03-14T08:30:00Z", "-n1", "--json")
	next(0, `{"tick":1805013000,"time":"2027-03-14T04:30:00-04:00"}`+"\n", "30 * * * *", "--tz", "America/New_York", "--from", "2027-03-14 04:00", "-n1", "--json")
	next(0, `{"tick":1805005800,"time":"2027-03-14T01:30:00-05:00"}`+"\n", "@at 2027-03-14T01:30:00", "--tz", "America/New_York", "--from", "2027-03-14T00:00:00Z", "-n9", "--json")
	next(0, `{"tick":1805007661,"time":"2027-03-14T07:01:01Z"}`+"\n", "1 1 7 * * *", "--seconds", "--from", "2027-03-14T07:00:00Z", "-n1", "--json")
}

func TestNextMarksDaysOnWhichClocksAreSet(t *testing.T) {
	t.Parallel()
	s := newShell()
	if code := s.conch("cron", "next", "0 12 * * *", "--tz", "Europe/Berlin", "--from", "2027-10-30T00:00:00Z", "-n", "3"); code != 0 {
		t.Fatal(s.stderr.String())
	}
	lines := strings.Split(s.stdout.String(), "\n")
	contains(t, lines[0], "TICK", "Europe/Berlin", "UTC", "DUE", "CLOCKS")
	contains(t, lines[1], "1824890400  2027-10-30 12:00:00 +0200 CEST  2027-10-30T10:00:00Z  ")
	contains(t, lines[2], "2027-10-31 12:00:00 +0100 CET ", "clocks back 1h, to 02:00")
	if strings.Contains(lines[1]+lines[3], "clocks") {
		t.Errorf("%q", lines)
	}
}

func TestWhereThereIsNoTick(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	for _, tt := range []struct{ spec, want string }{
		{`{"schedule":"@manual","script":"x"}`, "conch: never by itself, only when asked to run\n"},
		{`{"schedule":"@at 2001-01-01T00:00:00Z","script":"x"}`, "conch: no tick within 10 years of "},
		{`{"schedule":"@daily","script":"x","end_at":"2001-01-01T00:00:00Z"}`, "conch: no tick up to end_at, 2001-01-01T00:00:00Z\n"},
	} {
		putKey(t, record.JobKey(name), tt.spec)
		if out, said := cron(t, 1, "next", name); out != "" || !strings.HasPrefix(said, tt.want) {
			t.Errorf("%s: %q %q", tt.spec, out, said)
		}
	}
	putKey(t, record.JobKey(name), `{"schedule":"@daily","script":"x","jitter":"1h","paused":{}}`)
	out, _ := cron(t, 0, "next", name, "-n", "1")
	lines := strings.Split(out, "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[2], "by its jitter it is due ") || lines[3] != "it is paused: yes" {
		t.Errorf("%q", lines)
	}
	if out, _ = cron(t, 0, "next", name, "-n", "2", "-o", "json"); strings.Count(out, "\n") != 2 {
		t.Errorf("%q", out)
	}
}

// TestTheTicksAtTheBoundsCount, as in the engine.
func TestTheTicksAtTheBoundsCount(t *testing.T) {
	t.Parallel()
	k := knownAt(t, "a", `{"schedule":"@hourly","script":"x","start_at":"2027-03-13T23:00:00Z","end_at":"2027-03-14T00:00:00Z"}`)
	var got []string
	for at, ok := k.ticks.next(evening); ok; at, ok = k.ticks.next(at.Time()) {
		got = append(got, at.Time().Format(time.RFC3339))
	}
	equal(t, got, []string{"2027-03-13T23:00:00Z", "2027-03-14T00:00:00Z"})
}

func TestAwayIsForPeople(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "in 0s", 59*time.Second + 900*time.Millisecond: "in 59s", 61 * time.Minute: "in 1h1m", -90 * time.Second: "1m30s ago",
		47*time.Hour + 59*time.Minute: "in 47h59m", 48 * time.Hour: "in 2d0h", 400 * 24 * time.Hour: "in 400d0h",
	} {
		if got := away(evening, evening.Add(d)); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestExplainSaysWhatMaySurprise(t *testing.T) {
	t.Parallel()
	s := newShell("CONCH_ENDPOINTS=" + etcdtest.Untouched(t))
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"*/35 * * * *"}, []string{"at minutes 0 and 35 of every hour (UTC)\n", `note: minute "*/35" is not every 35 minutes`}},
		{[]string{"30 2 * * *", "--tz", "America/New_York"}, []string{"at 02:30, every day (America/New_York)\n", "note: ", "does not exist in America/New_York"}},
		{[]string{"@at 2001-01-01T00:00:00Z"}, []string{"note: no tick within 10 years"}},
		{[]string{"H 0 * * *", "--name", "x"}, []string{"every day (UTC)\n"}},
		{[]string{"@manual"}, []string{"never by itself, only when asked to run\n"}},
	} {
		s.stdout.buf.Reset()
		if code := s.conch(append([]string{"cron", "explain"}, tt.args...)...); code != 0 {
			t.Errorf("%q: code %d, %s", tt.args, code, s.stderr.String())
		}
		contains(t, s.stdout.String(), tt.want...)
	}
}

func TestValidateNeedsNoEtcd(t *testing.T) {
	t.Parallel()
	good := writeJobs(t, "good.yaml", "{name: x, schedule: 0 0 * * *, script: a}")
	bad := writeJobs(t, "bad.yaml", "{name: y, schedule: 0 0 * * *}\n---\n{name: z, schedule: 0 0 30 2 *, script: a}")
	for _, tt := range []struct {
		args []string
		code int
		want []string // the beginning of each line
	}{
		{[]string{"-f", good}, 0, nil},
		{[]string{"-f", good, "-f", bad}, 1, []string{bad + ":1: y: cmd: is missing", bad + ":3: z: schedule: "}},
		{[]string{"-f", "-"}, 1, []string{"no job was read"}},
	} {
		s := newShell("CONCH_ENDPOINTS=" + etcdtest.Untouched(t))
		if code := s.conch(append([]string{"cron", "validate"}, tt.args...)...); code != tt.code || s.stderr.String() != "" {
			t.Errorf("%q: code %d, %q", tt.args, code, s.stderr.String())
		}
		lines := strings.Split(strings.TrimSuffix(s.stdout.String(), "\n"), "\n")
		if len(tt.want) == 0 && s.stdout.String() != "" || len(tt.want) > 0 && len(lines) != len(tt.want) {
			t.Errorf("%q: %q", tt.args, lines)
		}
		for i, want := range tt.want {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("%q does not begin with %q", lines[i], want)
			}
		}
	}
}

func TestRmTakesWhatIsAskedOfAJobToo(t *testing.T) {
	t.Parallel()
	a, b := etcdtest.Office(t)+"-a", etcdtest.Office(t)+"-b"
	for _, name := range []string{a, b} {
		cron(t, 0, "add", name, "--schedule", "@daily", "--", "x")
		putKey(t, record.CursorKey(name, ""), "{}")
		putKey(t, record.Range(record.Wants, name)+"1805007600.1", "{}")
	}
	if out, _ := cron(t, 0, "rm", a, b); out != "removed "+a+"\nremoved "+b+"\n" {
		t.Errorf("%q", out)
	}
	for _, key := range []string{record.JobKey(a), record.CursorKey(a, ""), record.CursorKey(b, ""), record.Range(record.Wants, b) + "1805007600.1"} {
		if got, err := etcdtest.Shared(t).Client(t).Get(t.Context(), key); err != nil || got.Count != 0 {
			t.Errorf("%s is still there, %v", key, err)
		}
	}
}

// edit runs "conch cron edit" with a program as the editor, which sees the file as $1.
func edit(t *testing.T, code int, name, program string) (stdout, stderr string) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nset -e\n"+program+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := at(t)
	s.environ = append(s.environ, "VISUAL=sh "+script, "EDITOR=false", "NAME="+name, "CONCH_PASSWORD=")
	if got := s.conch("cron", "edit", name); got != code {
		t.Errorf("%q: code %d, want %d; %q %q", program, got, code, s.stdout.String(), s.stderr.String())
	}
	return s.stdout.String(), s.stderr.String()
}

func TestEdit(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	putKey(t, record.JobKey(name), `{"schedule":"@daily","cmd":["a"],"added_by":"x","schedule_since":"2026-01-01T00:00:00Z","paused":{"why":"disk"}}`)
	_, rev := storedJob(t, name)
	if out, _ := edit(t, 0, name, `test "$(cat "$1")" = "name: $NAME
schedule: '@daily'
cmd: [a]"; test "$(stat -c %a "$1")" = 600`); out != "unchanged "+name+"\n" {
		t.Errorf("%q", out)
	}
	if out, _ := edit(t, 0, name, `echo "# a comment" >>"$1"`); out != "unchanged "+name+"\n" {
		t.Errorf("%q", out)
	}
	if _, now := storedJob(t, name); now != rev {
		t.Error("what was not changed was written")
	}
	if out, _ := edit(t, 0, name, `sed -i s/a]/b]/ "$1"`); out != "updated "+name+"\n" {
		t.Errorf("%q", out)
	}
	j, rev := storedJob(t, name)
	if j.Cmd[0] != "b" || j.Paused == nil || j.AddedBy != "x" || j.ScheduleSince.Year() != 2026 {
		t.Errorf("%s", j.Encode())
	}
	for program, want := range map[string]string{
		`echo "overlap: forbit" >>"$1"`:                                       `edited.yaml:1: ` + name + `: overlap "forbit": want `,
		`sed -i "s/^name: .*/name: other/" "$1"`:                              "name: is other: want it as it was, " + name,
		`printf -- '---\n{name: y, schedule: 0 0 * * *, script: a}\n' >>"$1"`: "2 jobs were saved",
		`: >"$1"`: "0 jobs were saved",
		`sed -i "s/@daily/@at 2001-01-01T00:00:00Z/" "$1"`: "no tick within 10 years",
	} {
		_, said := edit(t, 1, name, program)
		contains(t, said, want, "; what was saved is in ")
		_, path, _ := strings.Cut(strings.TrimSpace(said), "what was saved is in ")
		if text, err := os.ReadFile(path); err != nil {
			t.Errorf("what was saved is lost: %q, %v", text, err)
		}
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Error(err)
		}
	}
	if _, said := edit(t, 1, name, "exit 7"); !strings.Contains(said, "ended with exit status 7; nothing was written") {
		t.Errorf("%q", said)
	}
	if _, said := edit(t, 1, name, `rm "$1"`); !strings.Contains(said, "read what was saved") {
		t.Errorf("%q", said)
	}
	if _, now := storedJob(t, name); now != rev {
		t.Error("it was written")
	}
}

// TestEditWritesOverNobodysChange that came while the editor was open.
func TestEditWritesOverNobodysChange(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	putKey(t, record.JobKey(name), `{"schedule":"@daily","cmd":["a"]}`)
	a := meddled(t, name, `{"schedule":"@daily","cmd":["theirs"]}`, 1)
	was, err := a.look(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.save(t.Context(), jobChange{was: was}, []byte("{name: "+name+", schedule: '@daily', cmd: [mine]}"))
	if err == nil || !strings.Contains(err.Error(), "somebody else changed or removed the job "+name+" meanwhile") {
		t.Errorf("%v", err)
	}
	if j, _ := storedJob(t, name); j.Cmd[0] != "theirs" {
		t.Errorf("%s", j.Encode())
	}
}

func TestWithoutAnEditorNothingIsEdited(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	cron(t, 0, "add", name, "--schedule", "@daily", "--", "x")
	s := at(t)
	if code := s.conch("cron", "edit", name); code != 1 || !strings.Contains(s.stderr.String(), "there is no terminal for vi; nothing was written") {
		t.Errorf("code %d, %q", code, s.stderr.String())
	}
	s = at(t)
	s.environ = append(s.environ, "EDITOR=/nonexistent/editor")
	if code := s.conch("cron", "edit", name); code != 1 || !strings.Contains(s.stderr.String(), `the editor "/nonexistent/editor" ended with exit status 127`) {
		t.Errorf("code %d, %q", code, s.stderr.String())
	}
}

func TestCronThatCannotPrintSaysSo(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	file := writeJobs(t, "a.yaml", "{name: "+name+", schedule: 0 0 * * *, script: a}")
	for _, args := range [][]string{
		{"apply", "-f", file}, {"add", name, "--replace", "--schedule", "@daily", "--", "a"}, {"ls", name}, {"show", name}, {"next", name}, {"explain", "@daily"}, {"export", name}, {"edit", name},
		{"rm", name},
	} {
		s := at(t)
		env := s.env(append([]string{"cron"}, args...)...)
		env.Environ = append(env.Environ, "EDITOR=true")
		env.Stdout = broken{}
		if code := Main(t.Context(), env); code != 74 {
			t.Errorf("%q: code %d, %s", args, code, s.stderr.String())
		}
	}
}
