package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// cron runs one "conch cron" on the shared etcd and gives what it printed. The code has to be that one.
func cron(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	return cronFed(t, code, "", args...)
}

// cronFed is cron with something on stdin.
func cronFed(t *testing.T, code int, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	s := at(t)
	env := s.env(append([]string{"cron"}, args...)...)
	env.Stdin = strings.NewReader(stdin)
	if got := Main(t.Context(), env); got != code {
		t.Errorf("%q: code %d, want %d; stdout %q, stderr %q", args, got, code, s.stdout.String(), s.stderr.String())
	}
	if harmless(s.stderr.String(), false) != nil {
		t.Errorf("%q: stderr %q", args, s.stderr.String())
	}
	return s.stdout.String(), s.stderr.String()
}

// storedJob is a job as it stands in etcd; rev is 0 where there is none.
func storedJob(t *testing.T, name string) (j *job.Job, rev int64) {
	t.Helper()
	got, err := etcdtest.Shared(t).Client(t).Get(t.Context(), record.JobKey(name))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) == 0 {
		return nil, 0
	}
	if j, err = job.Parse(name, got.Kvs[0].Value); err != nil {
		t.Fatal(err)
	}
	return j, got.Kvs[0].ModRevision
}

func putKey(t *testing.T, key, value string) {
	t.Helper()
	if _, err := etcdtest.Shared(t).Client(t).Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// manyFlags say nearly everything that a job can.
var manyFlags = []string{
	"--schedule", "0 30 2 * * *", "--schedule", "@hourly", "--seconds", "--tz", "Europe/Berlin", "--dst", "skip", "--jitter", "10m",
	"--start-at", "2027-01-01T00:00:00Z", "--end-at", "2036-01-01T00:00:00Z", "--stdin", "in", "--env", "A=b=c", "--env", "B=", "--env-file", "C=/c",
	"--env-inherit", "--run-as", "nobody", "--cwd", "/tmp", "--umask", "0022", "--run-on", "one", "--select", "zone=a", "--prefer", "sticky",
	"--overlap", "queue_one", "--start-deadline", "30s", "--catchup", "all", "--catchup-window", "6h", "--catchup-max", "20", "--run-ttl", "90s", "--kill-after", "3s",
	"--retry", "3", "--retry-delay", "1s", "--retry-factor", "1.5", "--retry-max-delay", "1m", "--retry-exit-codes", "75,1", "--retry-other-node",
	"--on-lost", "retry", "--success-codes", "0,3", "--output-keep", "1KiB", "--output-file", "/o", "--output-file-size", "1MiB", "--output-file-count", "2",
	"--history-ok", "5", "--history-failed", "6", "--history-ttl", "1h", "--label", "team=db", "--description", "x",
}

const manyFields = `{"schedule":["0 30 2 * * *","@hourly"],"seconds":true,"tz":"Europe/Berlin","dst":"skip","jitter":"10m",` +
	`"start_at":"2027-01-01T00:00:00Z","end_at":"2036-01-01T00:00:00Z","cmd":["a","-b"],"stdin":"in","env":{"A":"b=c","B":"","C":{"file":"/c"}},` +
	`"env_inherit":true,"user":"nobody","cwd":"/tmp","umask":"0022","run_on":"one","select":{"zone":"a"},"prefer":"sticky",` +
	`"overlap":"queue_one","start_deadline":"30s","catchup":{"policy":"all","window":"6h","max":20},"run_ttl":"1m30s","kill_after":"3s",` +
	`"retry":{"max":3,"delay":"1s","factor":1.5,"max_delay":"1m","exit_codes":[75,1],"other_node":true},` +
	`"on_lost":"retry","success_codes":[0,3],"output":{"keep":"1KiB","file":"/o","file_size":"1MiB","file_count":2},` +
	`"history":{"ok":5,"failed":6,"ttl":"1h"},"labels":{"team":"db"},"description":"x"`

func TestFlagsMakeAJob(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	before := time.Now().UTC().Truncate(time.Millisecond)
	out, _ := cron(t, 0, append(append([]string{"add", name}, manyFlags...), "--", "a", "-b")...)
	if out != "created "+name+"\n" {
		t.Errorf("%q", out)
	}
	j, _ := storedJob(t, name)
	if j.AddedBy != caller() || j.AddedAt.Before(before) || !j.ScheduleSince.Equal(*j.AddedAt) {
		t.Errorf("%s", j.Encode())
	}
	j.AddedBy, j.AddedAt, j.ScheduleSince = "", nil, nil
	if got := string(j.Encode()); got != manyFields+"}" {
		t.Errorf("got\n%s\nwant\n%s", got, manyFields)
	}
	if len(manyFlags) < len(specTable()) {
		t.Errorf("%d words of flags for %d flags", len(manyFlags), len(specTable()))
	}
}

// TestEachFieldHasAFlag: all that can be said in a file, but for what commands write, and the shell of what is no script.
func TestEachFieldHasAFlag(t *testing.T) {
	t.Parallel()
	var fields map[string]any
	if err := json.Unmarshal([]byte(manyFields+"}"), &fields); err != nil {
		t.Fatal(err)
	}
	paths := []string{"script", "shell"}
	for name, value := range fields {
		inner, part := value.(map[string]any)
		if !part || slices.Contains([]string{"env", "select", "labels"}, name) {
			paths = append(paths, name)
			continue
		}
		for field := range inner {
			paths = append(paths, name+"."+field)
		}
	}
	slices.Sort(paths)
	have := []string{"cmd"}
	for _, f := range specTable() {
		have = append(have, f.path)
	}
	slices.Sort(have)
	equal(t, slices.Compact(have), paths)
}

func TestAScriptIsAJobToo(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	cron(t, 0, "add", name, "--schedule", "@daily", "--script", "a\nb", "--shell", "/bin/bash", "--env-inherit=false")
	if j, _ := storedJob(t, name); j.Script != "a\nb" || j.Shell != "/bin/bash" || j.EnvInherit || len(j.Cmd) != 0 {
		t.Errorf("%s", j.Encode())
	}
}

func TestAJobThatIsThereIsLeftAlone(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	putKey(t, record.JobKey(name), `{"schedule":"@daily","cmd":["a"],"added_by":"first","schedule_since":"2026-01-01T00:00:00Z","paused":{"why":"disk"}}`)
	_, rev := storedJob(t, name)
	if _, said := cron(t, 1, "add", name, "--schedule", "@daily", "--", "b"); said != "conch: job "+name+" exists already; --replace overwrites it\n" {
		t.Errorf("%q", said)
	}
	if _, now := storedJob(t, name); now != rev {
		t.Error("it was written")
	}
	if out, _ := cron(t, 0, "add", name, "--replace", "--schedule", "@daily", "--", "a"); out != "unchanged "+name+"\n" {
		t.Errorf("%q", out)
	}
	if _, now := storedJob(t, name); now != rev {
		t.Error("it was written, although nothing was changed")
	}
	if out, _ := cron(t, 0, "add", name, "--replace", "--schedule", "@daily", "--", "b"); out != "updated "+name+"\n" {
		t.Errorf("%q", out)
	}
	j, _ := storedJob(t, name)
	if j.Cmd[0] != "b" || j.AddedBy != "first" || j.Paused == nil || j.ScheduleSince.Year() != 2026 {
		t.Errorf("%s", j.Encode())
	}
	putKey(t, record.JobKey(name), "no job")
	if out, _ := cron(t, 0, "add", name, "--replace", "--schedule", "@daily", "--", "b"); out != "updated "+name+"\n" {
		t.Errorf("what cannot be read is not overwritten: %q", out)
	}
}

func TestBadCronCommandLinesNeverReachEtcd(t *testing.T) {
	t.Parallel()
	add := func(args ...string) []string { return append([]string{"add", "x", "--schedule", "@daily"}, args...) }
	endpoint := etcdtest.Untouched(t)
	for _, tt := range []struct {
		args []string
		want []string // in the one line
	}{
		{[]string{"lst"}, []string{`"cron lst"`, "did you mean ls?"}},
		{[]string{"nothing"}, []string{`"cron nothing"`}},
		{[]string{"--nothing"}, []string{`"--nothing"`}},
		{[]string{"add"}, []string{"no job given", "conch cron add NAME"}},
		{[]string{"add", "a/b", "--schedule", "@daily", "--", "a"}, []string{`"a/b"`}},
		{[]string{"add", "x", "y", "--", "a"}, []string{`"y"`, "one job"}},
		{[]string{"add", "x", "true"}, []string{"-- is missing", `"true"`}},
		{[]string{"add", "x", "--", "a"}, []string{"--schedule is missing"}},
		{add(), []string{"no command given", "--script"}},
		{add("--"), []string{"no command given after --"}},
		{add("--script", "a", "--", "b"), []string{`--script "a"`, `"b"`}},
		{add("--", ""), []string{`cmd[0] ""`}},
		{add("--", "a", "\xff"), []string{"UTF-8", `"\xff"`}},
		{add("--stdin", "\xff", "--", "a"), []string{"--stdin", "UTF-8"}},
		{[]string{"add", "x", "--schedule", "61 * * * *", "--", "a"}, []string{"--schedule: minute \"61\""}},
		{[]string{"add", "x", "--schedule", "0 0 30 2 *", "--", "a"}, []string{"--schedule: "}},
		{[]string{"add", "x", "--schedule", "@at 2001-01-01T00:00:00Z", "--", "a"}, []string{`--schedule "@at 2001-01-01T00:00:00Z"`, "no tick"}},
		{add("--tz", "Europe/Berln", "--", "a"), []string{`--tz: "Europe/Berln"`, "did you mean Europe/Berlin?"}},
		{add("--overlap", "forbit", "--", "a"), []string{`--overlap "forbit"`, "did you mean forbid?"}},
		{add("--run-ttl", "5", "--", "a"), []string{`--run-ttl "5"`, "a duration from 1ms to 720h"}},
		{add("--retry", "x", "--", "a"), []string{`--retry "x"`, "from 1 to 100"}},
		{add("--retry", "-1", "--", "a"), []string{`--retry -1`, "from 1 to 100"}},
		{add("--retry-delay", "1s", "--", "a"), []string{`--retry: is missing`}},
		{add("--retry", "1", "--retry-exit-codes", "1,x", "--", "a"), []string{`--retry-exit-codes[1] "x"`}},
		{add("--success-codes", "", "--", "a"), []string{`--success-codes[0] ""`}},
		{add("--catchup-window", "1h", "--", "a"), []string{"--catchup: is missing"}},
		{add("--seconds=maybe", "--", "a"), []string{`--seconds "maybe"`, "true or false"}},
		{add("--env", "A", "--", "a"), []string{`--env "A"`, "KEY=VALUE"}},
		{add("--env", "A=secret", "--env", "A=secret", "--", "a"), []string{`--env "A"=...`, "twice"}},
		{add("--env", "A=secret", "--env-file", "A=/a", "--", "a"), []string{`--env-file "A": is given twice`}},
		{add("--env", "0=secret", "--", "a"), []string{`--env`, `"0"`, "the first no digit"}},
		{add("--env-file", "A=a", "--", "a"), []string{`--env`, `A.file "a"`, "begins with /"}},
		{add("--label", "a=b,c", "--", "a"), []string{`--label`, `"b,c"`, "commas"}},
		{add("--description", strings.Repeat("x", 200_000), "--", "a"), []string{"bytes: want 131072"}},
		{[]string{"apply"}, []string{"-f is missing"}},
		{[]string{"apply", "x"}, []string{"no argument", `"x"`}},
		{[]string{"apply", "-f", "/nonexistent"}, []string{`-f "/nonexistent"`, "no such file"}},
		{[]string{"apply", "-f", "/proc/self/mem"}, []string{`-f "/proc/self/mem"`, "read"}},
		{[]string{"apply", "-f", "-", "--prune"}, []string{"--prune", "--set"}},
		{[]string{"apply", "-f", "-", "--set", ""}, []string{`--set ""`}},
		{[]string{"apply", "-f", "-", "--set", "a/b"}, []string{`--set "a/b"`}},
		{[]string{"validate"}, []string{"-f is missing"}},
		{[]string{"validate", "-f", t.TempDir()}, []string{"-f", "*.yaml"}},
		{[]string{"validate", "-f", "-", "--log-format", "xml"}, []string{"--log-format"}},
		{[]string{"ls", "a/b"}, []string{`"a/b"`}},
		{[]string{"ls", "-o", "xml"}, []string{`"xml"`, "table or json"}},
		{[]string{"show"}, []string{"no job given"}},
		{[]string{"show", "a", "b"}, []string{"one job", `"b"`}},
		{[]string{"show", "a", "-o", "xml"}, []string{`"xml"`, "text or yaml or json"}},
		{[]string{"next"}, []string{"no job and no expression"}},
		{[]string{"next", "*", "*"}, []string{"quotes", `"*"`}},
		{[]string{"next", "a", "--tz", "UTC"}, []string{"--tz", "expression only"}},
		{[]string{"next", "* * * *"}, []string{`expression "* * * *"`}},
		{[]string{"next", "@daily", "-n", "0"}, []string{`"0"`, "from 1 to 100000"}},
		{[]string{"next", "@daily", "--from", "now"}, []string{`--from "now"`, "RFC 3339"}},
		{[]string{"next", "@daily", "--from", "1969-12-31T00:00:00Z"}, []string{`--from "1969-12-31T00:00:00Z"`, "unix seconds"}},
		{[]string{"next", "@daily", "--tz", "Mars"}, []string{`--tz "Mars"`}},
		{[]string{"next", "@daily", "--dst", "x"}, []string{`--dst "x"`}},
		{[]string{"next", "H 0 * * *"}, []string{`expression "H 0 * * *"`, "name of a job"}},
		{[]string{"explain"}, []string{"no expression"}},
		{[]string{"explain", "*", "*"}, []string{"quotes"}},
		{[]string{"explain", "0 0 30 2 *"}, []string{"expression"}},
		{[]string{"explain", "@daily", "--name", "a/b"}, []string{`--name "a/b"`}},
		{[]string{"explain", "@daily", "--log-format", "xml"}, []string{"--log-format"}},
		{[]string{"rm"}, []string{"no job given", "rm NAME..."}},
		{[]string{"rm", "a", "b c"}, []string{`"b c"`}},
		{[]string{"edit"}, []string{"no job given"}},
		{[]string{"edit", "a", "b"}, []string{"one job"}},
		{[]string{"export", "-x"}, []string{`"-x"`}},
		{[]string{"export", "a/b"}, []string{`"a/b"`}},
	} {
		s := newShell("CONCH_ENDPOINTS=" + endpoint)
		if code := s.conch(append([]string{"cron"}, tt.args...)...); code != hold.CodeUsage || s.stdout.String() != "" {
			t.Errorf("%q: code %d, stdout %q", tt.args, code, s.stdout.String())
		}
		line := s.stderr.String()
		if strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, "conch: usage: ") || len(line) > 400 || harmless(line, false) != nil || strings.Contains(line, "secret") {
			t.Errorf("%q: got %q, want one safe line", tt.args, line)
		}
		contains(t, line, tt.want...)
	}
}

func TestABadVariableEndsEachCronCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"add", "x", "--schedule", "@daily", "--", "a"}, {"apply", "-f", "-"}, {"ls"}, {"show", "x"}, {"next", "@daily"}, {"rm", "x"}, {"edit", "x"}, {"export"},
	} {
		s := newShell("CONCH_ENDPOINTS="+etcdtest.Untouched(t), "CONCH_DIAL_TIMEOUT=x")
		if code := s.conch(append([]string{"cron"}, args...)...); code != hold.CodeUsage || !strings.HasPrefix(s.stderr.String(), `conch: usage: CONCH_DIAL_TIMEOUT "x": want `) {
			t.Errorf("%q: code %d, %s", args, code, s.stderr.String())
		}
	}
	for _, verb := range []string{"explain", "validate"} {
		s := newShell("CONCH_LOG_FORMAT=xml")
		if code := s.conch("cron", verb, "x"); code != hold.CodeUsage {
			t.Errorf("%s: code %d", verb, code)
		}
	}
}

func TestEachCronCommandHasHelp(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]string{
		"add": "--overlap forbid|allow|queue_one|replace   ", "apply": "--prune", "validate": "-f, --file", "ls": "--last", "show": "text|yaml|json", "next": "--from TIME   ", "explain": "--seconds",
		"rm": "conch cron rm NAME...", "edit": "$VISUAL", "export": "yaml|json",
	} {
		s := newShell()
		if code := s.conch("help", "cron", verb); code != 0 || s.stderr.String() != "" {
			t.Errorf("%s: code %d, %s", verb, code, s.stderr.String())
		}
		contains(t, s.stdout.String(), "Usage: conch cron "+verb+" ", "Exit codes: 0", want)
		for line := range strings.Lines(s.stdout.String()) {
			if len(line) > 121 {
				t.Errorf("%s: a line of %d bytes: %s", verb, len(line), line)
			}
		}
	}
}

func TestCronByItselfIsHelp(t *testing.T) {
	t.Parallel()
	s := newShell()
	env := s.env()
	env.Name = "/usr/local/bin/cron"
	if code := Main(t.Context(), env); code != 0 || s.stderr.String() != "" {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
	contains(t, s.stdout.String(), "Usage: conch cron COMMAND [flags]", "  apply ", "  next ")
}

// TestWithoutEtcdCronSaysSo: 69, one line, nothing on stdout.
func TestWithoutEtcdCronSaysSo(t *testing.T) {
	t.Parallel()
	file := writeJobs(t, "a.yaml", "{name: x, schedule: 0 0 * * *, script: a}")
	for _, args := range [][]string{
		{"add", "x", "--schedule", "@daily", "--", "a"}, {"apply", "-f", file}, {"apply", "-f", file, "--set", "s", "--prune"}, {"ls"}, {"ls", "x"}, {"show", "x"}, {"next", "x"},
		{"rm", "x"}, {"edit", "x"}, {"export"},
	} {
		s := newShell("CONCH_ENDPOINTS="+etcdtest.Refused(t), "CONCH_DIAL_TIMEOUT=50ms")
		if code := s.conch(append([]string{"cron"}, args...)...); code != hold.CodeUnreachable || s.stdout.String() != "" || strings.Count(s.stderr.String(), "\n") != 1 {
			t.Errorf("%q: code %d, stdout %q, stderr %q", args, code, s.stdout.String(), s.stderr.String())
		}
	}
}

func TestWhatCronMayNotDoIsNamed(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	key := record.JobKey("x")
	if _, err := root.Put(t.Context(), key, `{"schedule":"@daily","script":"a"}`); err != nil {
		t.Fatal(err)
	}
	addUser(t, root, "reader", grants{record.Jobs: readOnly})
	addUser(t, root, "nobody", grants{"/x": readOnly})
	file := writeJobs(t, "a.yaml", "{name: x, schedule: 0 1 * * *, script: a}")
	for _, tt := range []struct {
		user string
		args []string
		lack string
	}{
		{"nobody", []string{"show", "x"}, "read " + key},
		{"nobody", []string{"ls"}, "read the prefix " + record.Jobs},
		{"reader", []string{"ls", "--last"}, "read the prefix " + record.Results},
		{"reader", []string{"show", "x"}, "read the prefix " + record.Results},
		{"reader", []string{"apply", "-f", file}, "write " + key},
		{"reader", []string{"add", "y", "--schedule", "@daily", "--", "a"}, "write " + record.JobKey("y")},
		{"reader", []string{"rm", "x"}, "write " + key + ", read the prefix " + record.Cursors},
	} {
		s := as(server, tt.user)
		if code := s.conch(append([]string{"cron"}, tt.args...)...); code != hold.CodePermission {
			t.Errorf("%q: code %d", tt.args, code)
		}
		contains(t, s.stderr.String(), "user "+`"`+tt.user+`" may not `+tt.lack)
	}
	addUser(t, root, "keeper", grants{
		key: readWrite, record.Cursors: readWrite, record.Range(record.Wants, "x"): readWrite,
	})
	for _, args := range [][]string{{"apply", "-f", file}, {"export", "x"}, {"rm", "x"}} {
		s := as(server, "keeper")
		if code := s.conch(append([]string{"cron"}, args...)...); code != 0 {
			t.Errorf("%q: code %d, %s", args, code, s.stderr.String())
		}
	}
}

func TestJobsAreCompletedFromEtcd(t *testing.T) {
	t.Parallel()
	server := etcdtest.One(t)
	client := server.Client(t)
	for _, name := range []string{"report", "relay", "other", "re/x", "re\x1b"} {
		if _, err := client.Put(t.Context(), record.JobKey(name), "{}"); err != nil {
			t.Fatal(err)
		}
	}
	s := newShell("CONCH_ENDPOINTS=" + server.Endpoint())
	for _, verb := range []string{"show", "next", "edit", "rm", "ls", "export"} {
		s.offers(t, []string{"relay", "report"}, "cron", verb, "re")
	}
	s.offers(t, []string{"report"}, "cron", "rm", "relay", "rep")
	s.offers(t, nil, "cron", "show", "relay", "rep")
	s.offers(t, nil, "cron", "show", "a/b")
	s.offers(t, nil, "cron", "add", "")
	s.offers(t, []string{"forbid", "allow", "queue_one", "replace"}, "cron", "add", "x", "--overlap", "")
	s.offers(t, []string{"cron", "literal", "skip"}, "cron", "next", "--dst", "")
	if zones, directive := s.completed(t, "cron", "explain", "--tz", "Europe/B"); !slices.Contains(zones, "Europe/Berlin") || directive != noFile {
		t.Errorf("%q %s", zones, directive)
	}
	if offered, directive := s.completed(t, "cron", "add", "x", "--", ""); len(offered) != 0 || directive != anyFile {
		t.Errorf("%q %s", offered, directive)
	}
}

// TestHostileJobsDoNothingToATerminal: what stands in etcd in the place of a job, or in one.
func TestHostileJobsDoNothingToATerminal(t *testing.T) {
	t.Parallel()
	values := hostileValues()
	text, _ := json.Marshal(nasty)
	for i, job := range []string{
		`{"schedule":"@daily","script":"x","description":%s,"labels":{"a":"b"},"paused":{"by":%[1]s,"why":%[1]s},"added_by":%[1]s}`, `{"schedule":%s,"script":"x"}`, `{%s:1}`, `{"schedule":"@daily","cmd":[%s]}`,
	} {
		values[fmt.Sprint(i)] = fmt.Sprintf(job, text)
	}
	name := etcdtest.Office(t)
	putKey(t, record.Range(record.Results, name)+"1805007600", record.Encode(record.Result{Status: nasty, Reason: nasty, Host: nasty, EndedAt: record.StampOf(time.Now())}))
	file := writeJobs(t, "a.yaml", fmt.Sprintf("{name: %s, schedule: 0 0 * * *, script: a}", name))
	for what, value := range values {
		putKey(t, record.JobKey(name), value)
		for _, args := range [][]string{
			{"ls", name}, {"ls", "--last", name}, {"ls", "--last", "-o", "json", name}, {"show", name}, {"show", name, "-o", "json"}, {"show", name, "-o", "yaml"}, {"next", name},
			{"export", name}, {"export", "-o", "json", name}, {"edit", name}, {"apply", "--dry-run", "-f", file},
		} {
			s := at(t)
			s.environ = append(s.environ, "EDITOR=true")
			if code := s.conch(append([]string{"cron"}, args...)...); code != 0 && code != 1 {
				t.Errorf("%s: %q: code %d", what, args, code)
			}
			for _, out := range []string{s.stdout.String(), s.stderr.String()} {
				if err := harmless(out, slices.Contains(args, "json") && strings.HasPrefix(out, "{")); err != nil {
					t.Errorf("%s: %q: %v", what, args, err)
				}
			}
		}
	}
}

func writeJobs(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
