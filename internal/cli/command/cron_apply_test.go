package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

func TestApplyMakesJobsWhatFilesSay(t *testing.T) {
	t.Parallel()
	a, b := etcdtest.Office(t)+"-a", etcdtest.Office(t)+"-b"
	text := fmt.Sprintf("jobs:\n  %s: {schedule: 0 0 * * *, script: a}\n  %s: {schedule: 0 0 * * *, script: b}\n", a, b)
	apply := func(text, want string, more ...string) {
		t.Helper()
		if out, said := cronFed(t, 0, text, append([]string{"apply", "-f", "-"}, more...)...); out != want || said != "" {
			t.Errorf("%q, want %q; %q", out, want, said)
		}
	}
	apply(text, "created "+a+"\ncreated "+b+"\n", "--dry-run")
	if _, rev := storedJob(t, a); rev != 0 {
		t.Fatal("a dry run has written")
	}
	apply(text, "created "+a+"\ncreated "+b+"\n")
	was, rev := storedJob(t, a)
	apply(text, "unchanged "+a+"\nunchanged "+b+"\n", "--diff")
	if _, now := storedJob(t, a); now != rev {
		t.Error("what was not changed was written")
	}
	// Paused meanwhile, and written by hand, in another order.
	putKey(t, record.JobKey(a), fmt.Sprintf(`{"paused":{"why":"disk"}, "script":"a","schedule":"0 0 * * *","added_by":"x","schedule_since":"%s"}`, was.ScheduleSince.Format(time.RFC3339Nano)))
	apply(text, "unchanged "+a+"\nunchanged "+b+"\n")
	apply(strings.Replace(text, "script: a", `script: "a\u202e"`, 1), "--- stored/"+a+"\n+++ given/"+a+"\n@@ -1,6 +1,6 @@\n {\n"+
		"   \"schedule\": \"0 0 * * *\",\n-  \"script\": \"a\",\n+  \"script\": \"a\\u202e\",\n   \"paused\": {\n     \"why\": \"disk\"\n   },\n"+
		"updated "+a+"\nunchanged "+b+"\n", "--diff")
	now, _ := storedJob(t, a)
	if now.Paused == nil || now.AddedBy != "x" || !now.ScheduleSince.Equal(*was.ScheduleSince) {
		t.Errorf("%s", now.Encode())
	}
	apply(strings.ReplaceAll(text, "0 0", "5 0"), "updated "+a+"\nupdated "+b+"\n")
	if now, _ = storedJob(t, a); !now.ScheduleSince.After(*was.ScheduleSince) {
		t.Errorf("another schedule counts for the past: %s", now.Encode())
	}
}

// TestWhatCannotBeReadIsReplaced: a value that is no job, or no JSON, is shown for what it is.
func TestWhatCannotBeReadIsReplaced(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	text := fmt.Sprintf("{name: %s, schedule: 0 0 * * *, script: a}", name)
	for value, want := range map[string]string{"no\x1b job": `-no\x1b job`, `{"schedule":"\u001b"}`: `-  "schedule": "\u001b"`} {
		putKey(t, record.JobKey(name), value)
		out, _ := cronFed(t, 0, text, "apply", "-f", "-", "--diff", "--set", "x", "--prune", "--dry-run")
		contains(t, out, "\n"+want+"\n", "+  \"script\": \"a\",\n", "\nupdated "+name+"\n")
	}
}

// TestNothingIsWrittenWhereOneJobIsWrong, wherever it stands, and whatever is wrong.
func TestNothingIsWrittenWhereOneJobIsWrong(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	good := fmt.Sprintf("{name: %s, schedule: 0 0 * * *, script: a}\n---\n", name)
	for bad, want := range map[string]string{
		"{name: x, schedule: 0 0 * *, script: a}":                    "stdin:3: x: schedule: ",
		"{name: x, schedule: '@at 2001-01-01T00:00:00Z', script: a}": "stdin:3: x: no tick within 10 years",
		"a: b: c": "stdin:3: no YAML: ",
		good:      "stdin:3: " + name + ": is given twice, the first time at stdin:1",
	} {
		out, said := cronFed(t, 1, good+bad, "apply", "-f", "-")
		if lines := strings.Split(said, "\n"); out != "" || len(lines) != 3 || !strings.HasPrefix(lines[0], "conch: "+want) || lines[1] != "conch: 1 to mend; nothing was written" {
			t.Errorf("stdout %q, stderr %q", out, said)
		}
	}
	if _, rev := storedJob(t, name); rev != 0 {
		t.Error("the good one was written")
	}
	// What is over already stays as it is.
	putKey(t, record.JobKey(name), `{"schedule":"@at 2001-01-01T00:00:00Z","script":"a"}`)
	if out, _ := cronFed(t, 0, fmt.Sprintf("{name: %s, schedule: '@at 2001-01-01T00:00:00Z', script: b}", name), "apply", "-f", "-"); out != "updated "+name+"\n" {
		t.Errorf("%q", out)
	}
}

func TestFoldersAndFilesAreApplied(t *testing.T) {
	t.Parallel()
	dir, name := t.TempDir(), etcdtest.Office(t)
	for file, text := range map[string]string{
		"b.yaml": "{name: %s-b, schedule: 0 0 * * *, script: a}", "a.json": `{"name":"%s-a","schedule":"@daily","script":"a"}`,
		"c.yml": "{name: %s-c, schedule: 0 0 * * *, script: a}", ".d.yaml": "%s", "README": "%s",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), fmt.Appendf(nil, text, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "e.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	d := writeJobs(t, "d.yaml", fmt.Sprintf("{name: %s-d, schedule: 0 0 * * *, script: a}", name))
	want := fmt.Sprintf("created %[1]s-d\ncreated %[1]s-a\ncreated %[1]s-b\ncreated %[1]s-c\n", name)
	if out, _ := cron(t, 0, "apply", "-f", d, "-f", dir); out != want {
		t.Errorf("%q", out)
	}
	if err := os.Chmod(filepath.Join(dir, "b.yaml"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nonexistent", filepath.Join(dir, "x.json")); err != nil {
		t.Fatal(err)
	}
	if _, said := cron(t, 64, "apply", "-f", dir); !strings.Contains(said, "-f ") {
		t.Errorf("%q", said)
	}
}

func TestPruneRemovesOfTheSetWhatIsInNoFile(t *testing.T) {
	t.Parallel()
	set := etcdtest.Office(t)
	job := func(n string) string {
		return fmt.Sprintf("---\n{name: %s-%s, schedule: 0 0 * * *, script: a}\n", set, n)
	}
	apply := func(code int, text, want string, more ...string) string {
		t.Helper()
		out, said := cronFed(t, code, text, append([]string{"apply", "-f", "-"}, more...)...)
		if want = strings.ReplaceAll(want, "$", set); out != want {
			t.Errorf("%q, want %q", out, want)
		}
		return said
	}
	apply(0, job("other"), "created $-other\n")
	apply(0, job("a")+job("b")+job("c"), "created $-a\ncreated $-b\ncreated $-c\n", "--set", set, "--prune")
	putKey(t, record.CursorKey(set+"-b", ""), "{}")
	apply(0, job("a"), "unchanged $-a\nremoved $-b\nremoved $-c\n", "--set", set, "--prune", "--dry-run")
	if _, rev := storedJob(t, set+"-b"); rev == 0 {
		t.Fatal("a dry run has removed")
	}
}

func TestSets(t *testing.T) {
	t.Parallel()
	set := etcdtest.Office(t)
	job := func(n string) string {
		return fmt.Sprintf("---\n{name: %s-%s, schedule: 0 0 * * *, script: a}\n", set, n)
	}
	setOfJob := func(n string) string {
		t.Helper()
		j, rev := storedJob(t, set+"-"+n)
		if rev == 0 {
			return "gone"
		}
		return j.Labels[setLabel]
	}
	cronFed(t, 0, job("a")+job("b")+job("c"), "apply", "-f", "-", "--set", set)
	cronFed(t, 0, job("other"), "apply", "-f", "-")
	// Whoever applies without a set leaves it as it is; an own label counts.
	if out, _ := cronFed(t, 0, job("a"), "apply", "-f", "-"); out != "unchanged "+set+"-a\n" {
		t.Errorf("%q", out)
	}
	if out, _ := cronFed(t, 0, strings.Replace(job("c"), "script", "labels: {conch/set: mine}, script", 1), "apply", "-f", "-"); out != "updated "+set+"-c\n" || setOfJob("c") != "mine" {
		t.Errorf("%q, set %q", out, setOfJob("c"))
	}
	out, said := cronFed(t, 1, job("b")+job("c"), "apply", "-f", "-", "--set", set)
	if out != "" || !strings.Contains(said, set+"-c: it belongs to the set mine: apply it with --set mine, or remove it first") {
		t.Errorf("%q %q", out, said)
	}
	putKey(t, record.CursorKey(set+"-b", ""), "{}")
	if out, _ = cronFed(t, 0, job("a")+job("other"), "apply", "-f", "-", "--set", set, "--prune", "--diff"); !strings.Contains(out, "--- stored/"+set+"-b\n+++ /dev/null\n@@ -1,") || !strings.HasSuffix(out, "\nremoved "+set+"-b\n") {
		t.Errorf("%q", out)
	}
	for n, want := range map[string]string{"a": set, "b": "gone", "c": "mine", "other": set} {
		if got := setOfJob(n); got != want {
			t.Errorf("%s is in the set %q, want %q", n, got, want)
		}
	}
	// Files that are empty by a mistake remove nothing.
	if _, said := cronFed(t, 1, "# nothing\n", "apply", "-f", "-", "--set", set, "--prune"); !strings.Contains(said, "no job was read") {
		t.Errorf("%q", said)
	}
	if setOfJob("a") != set {
		t.Error("a job is gone")
	}
}

// meddler writes a job just before each transaction about it.
type meddler struct {
	clientv3.KV
	name, value string
	left        int
}

func (m *meddler) Txn(ctx context.Context) clientv3.Txn {
	if m.left > 0 {
		m.left--
		_, _ = m.Put(ctx, record.JobKey(m.name), m.value)
	}
	return m.KV.Txn(ctx)
}

// meddled are the jobs of the shared etcd, where somebody else writes one each time that it is about to be written.
func meddled(t *testing.T, name, value string, times int) *cronJobs {
	t.Helper()
	server := etcdtest.Shared(t)
	client := server.Client(t)
	client.KV = &meddler{KV: clientv3.NewKV(client), name: name, value: value, left: times}
	conn := &cli.Connection{Settings: cli.Settings{Endpoints: []string{server.Endpoint()}, DialTimeout: time.Minute}}
	return &cronJobs{client: client, conn: conn, now: time.Now, by: "x"}
}

// applied applies a file as "conch cron apply" does, with other jobs.
func applied(t *testing.T, a *cronJobs, text string, args ...string) (string, error) {
	t.Helper()
	s := at(t)
	c := &call{env: s.env()}
	c.env.Stdin = strings.NewReader(text)
	f := &cronApplyFlags{files: jobFiles{paths: []string{"-"}}}
	if len(args) > 0 {
		f.set, f.prune = args[0], true
	}
	entries, _, err := f.files.read(c.env)
	if err != nil {
		t.Fatal(err)
	}
	err = c.applyJobs(t.Context(), &application{cronJobs: a, cronApplyFlags: f, entries: entries})
	return s.stdout.String(), err
}

// TestApplyTakesWhatOthersWriteMeanwhile: a pause that comes between the look and the write stays.
func TestApplyTakesWhatOthersWriteMeanwhile(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	text := fmt.Sprintf("{name: %s, schedule: 0 0 * * *, script: new}", name)
	paused := `{"schedule":"0 0 * * *","script":"old","paused":{"why":"disk"}}`
	if out, err := applied(t, meddled(t, name, paused, 1), text); err != nil || out != "updated "+name+"\n" {
		t.Errorf("%q, %v", out, err)
	}
	if j, _ := storedJob(t, name); j.Script != "new" || j.Paused == nil {
		t.Errorf("%s", j.Encode())
	}
	// Somebody who never stops wins, and that is said.
	out, err := applied(t, meddled(t, name, paused, 1000), strings.Replace(text, "new", "newer", 1))
	if !errors.Is(err, hold.ErrNo) || out != "" {
		t.Errorf("%q, %v", out, err)
	}
	// Another set takes it meanwhile.
	taken := `{"schedule":"0 0 * * *","script":"old","labels":{"conch/set":"theirs"}}`
	if _, err = applied(t, meddled(t, name, taken, 1), text, "mine"); !errors.Is(err, hold.ErrNo) {
		t.Errorf("%v", err)
	}
}

// TestPruneLooksAgain: a job that leaves the set meanwhile is not removed, one that is gone meanwhile counts as removed.
func TestPruneLooksAgain(t *testing.T) {
	t.Parallel()
	set := etcdtest.Office(t)
	name := set + "-b"
	in := fmt.Sprintf(`{"schedule":"0 0 * * *","script":"a","labels":{"conch/set":"%s"}}`, set)
	text := fmt.Sprintf("{name: %s-a, schedule: 0 0 * * *, script: a}", set)
	cronFed(t, 0, text, "apply", "-f", "-", "--set", set)
	putKey(t, record.JobKey(name), in)
	a := meddled(t, name, `{"schedule":"0 0 * * *","script":"a"}`, 1)
	if out, err := applied(t, a, text, set); err != nil || out != "unchanged "+set+"-a\nunchanged "+name+"\n" {
		t.Errorf("%q, %v", out, err)
	}
	putKey(t, record.JobKey(name), in)
	if out, err := applied(t, meddled(t, name, in, 1), text, set); err != nil || out != "unchanged "+set+"-a\nremoved "+name+"\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestAddAndRmLookAgain, as apply does.
func TestAddAndRmLookAgain(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	c := &call{env: at(t).env()}
	_, was := cronFed(t, 0, fmt.Sprintf("{name: %s, schedule: 0 0 * * *, script: a}", name), "apply", "-f", "-")
	if was != "" {
		t.Fatal(was)
	}
	j, _ := storedJob(t, name)
	j.Script = "c"
	f := &cronAddFlags{replace: true}
	if err := c.addJob(t.Context(), meddled(t, name, `{"schedule":"@daily","script":"b","paused":{}}`, 2), f, name, j); err != nil {
		t.Error(err)
	}
	if now, _ := storedJob(t, name); now.Script != "c" || now.Paused == nil {
		t.Errorf("%s", now.Encode())
	}
	other := name + "-x"
	if err := c.addJob(t.Context(), meddled(t, other, `{"schedule":"@daily","script":"b"}`, 1), &cronAddFlags{}, other, j); !errors.Is(err, hold.ErrNo) {
		t.Errorf("%v", err)
	}
	if err := c.removeJobs(t.Context(), meddled(t, name, `{"schedule":"@daily","script":"b"}`, 1), []string{name}); err != nil {
		t.Error(err)
	}
	if _, rev := storedJob(t, name); rev != 0 {
		t.Error("it is not removed")
	}
}

// TestAChangeThatCannotBeReadAgainIsAnError of etcd's.
func TestAChangeThatCannotBeReadAgainIsAnError(t *testing.T) {
	t.Parallel()
	a := meddled(t, "x", "x", 0)
	a.conn.DialTimeout = 20 * time.Millisecond
	if err := a.client.Close(); err != nil {
		t.Fatal(err)
	}
	ch := jobChange{was: store.Stored{Name: "x"}, verb: jobRemoved}
	if _, err := a.insist(t.Context(), ch, func(store.Stored) (jobChange, error) { return ch, nil }); err == nil || errors.Is(err, hold.ErrNo) {
		t.Errorf("%v", err)
	}
}
