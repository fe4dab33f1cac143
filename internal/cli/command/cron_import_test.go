package command

import (
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

const aCrontab = `# nightly
MAILTO=ops@example.org
30 2 * * * /usr/bin/backup --all
@reboot /usr/bin/init
*/10 * * * 7 tidy % line
`

func TestImportSaysOfEachLineWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	prefix := etcdtest.Office(t) + "-"
	lines := func(code int, args ...string) []string {
		t.Helper()
		out, said := cronFed(t, code, aCrontab, append([]string{"import", "crontab", "--prefix", prefix}, args...)...)
		if said != "" || harmless(out, false) != nil {
			t.Errorf("stdout %q, stderr %q", out, said)
		}
		var all []string
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "note: ") {
				all = append(all, strings.TrimSuffix(line, "\n"))
			}
		}
		return all
	}
	want := func(got []string, backup, tidy string) {
		t.Helper()
		if len(got) != 4 || !strings.HasPrefix(got[0], "2: MAILTO") || got[1] != "3: "+backup || !strings.HasPrefix(got[2], "4: not taken: ") || got[3] != "5: "+tidy {
			t.Errorf("%q", got)
		}
	}
	want(lines(1, "--dry-run", "-"), "created "+prefix+"backup", "created "+prefix+"tidy")
	if _, rev := storedJob(t, prefix+"backup"); rev != 0 {
		t.Fatal("a dry run has written")
	}
	want(lines(1, "--tz", "Europe/Berlin", "--run-as", "app", "--run-ttl", "2h"), "created "+prefix+"backup", "created "+prefix+"tidy")
	j, _ := storedJob(t, prefix+"tidy")
	if j.TZ != "Europe/Berlin" || j.User != "app" || j.RunTTL.String() != "2h" || j.Schedule[0] != "*/10 * * * 7" || j.Script != "tidy " || j.Stdin != " line\n" || j.AddedBy != caller() {
		t.Errorf("%s", j.Encode())
	}
	// Once more: nothing is done twice.
	want(lines(1, "--tz", "Europe/Berlin", "--run-as", "app", "--run-ttl", "2h"), "unchanged "+prefix+"backup", "unchanged "+prefix+"tidy")
	const other = ` exists already, and is another one; --replace overwrites it, --prefix gives other names`
	want(lines(1, "--tz", "Europe/Berlin"), "not taken: job "+prefix+"backup"+other, "not taken: job "+prefix+"tidy"+other)
	want(lines(1, "--replace"), "updated "+prefix+"backup", "updated "+prefix+"tidy")
}

// TestImportPutsNoSecretIntoEtcd unless that is asked for.
func TestImportPutsNoSecretIntoEtcd(t *testing.T) {
	t.Parallel()
	prefix := etcdtest.Office(t) + "-"
	text := "PGPASSWORD=hunter2\nAPI_TOKEN=\n30 2 * * * backup\n"
	run := func(code int, more ...string) (out, said string) {
		t.Helper()
		out, said = cronFed(t, code, text, append([]string{"import", "crontab", "--prefix", prefix}, more...)...)
		if strings.Contains(out+said, "hunter2") {
			t.Errorf("%q %q", out, said)
		}
		return out, said
	}
	const want = "conch: line 1: PGPASSWORD may be a secret, and would stand in etcd; want --env-file PGPASSWORD=PATH, a file on the nodes, or --allow-secrets; nothing was written\n"
	if out, said := run(1); out != "" || said != want {
		t.Errorf("%q %q", out, said)
	}
	if out, said := run(1, "--dry-run"); !strings.Contains(out, "3: created "+prefix+"backup\n") || said != want {
		t.Errorf("%q %q", out, said)
	}
	if _, rev := storedJob(t, prefix+"backup"); rev != 0 {
		t.Fatal("it was written")
	}
	run(0, "--env-file", "PGPASSWORD=/etc/pg")
	if j, _ := storedJob(t, prefix+"backup"); j.Env["PGPASSWORD"].File != "/etc/pg" || j.Env["PGPASSWORD"].Value != "" {
		t.Errorf("%s", j.Encode())
	}
	run(0, "--allow-secrets", "--replace")
	if j, _ := storedJob(t, prefix+"backup"); j.Env["PGPASSWORD"].Value != "hunter2" {
		t.Errorf("%s", j.Encode())
	}
}

func TestImportOfFiles(t *testing.T) {
	t.Parallel()
	prefix := etcdtest.Office(t) + "-"
	file := writeJobs(t, "crontab", "30 2 * * * root backup\n")
	out, _ := cron(t, 0, "import", "crontab", file, "--system", "--prefix", prefix)
	contains(t, out, "1: created "+prefix+"backup\n", "note: no time zone is given")
	if j, _ := storedJob(t, prefix+"backup"); j.User != "root" || j.RunTTL.String() != "24h" {
		t.Errorf("%s", j.Encode())
	}
	// A name that is too long with its prefix is a line that is not taken.
	out, _ = cron(t, 1, "import", "crontab", file, "--system", "--prefix", strings.Repeat("x", 195))
	contains(t, out, "1: not taken: ", "at most 200")
	if _, said := cron(t, 1, "import", "crontab", writeJobs(t, "crontab", "# nothing\n")); said != "conch: there is no command in the crontab\n" {
		t.Errorf("%q", said)
	}
}

func TestBadImportsNeverReachEtcd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"import what?"}},
		{[]string{"systemd"}, []string{"want crontab"}},
		{[]string{"crontab", "a", "b"}, []string{`"b"`, "one file"}},
		{[]string{"crontab", "/nonexistent"}, []string{`crontab "/nonexistent"`, "no such file"}},
		{[]string{"crontab", "/"}, []string{`crontab "/"`, "directory"}},
		{[]string{"crontab", "--prefix", "-x"}, []string{`--prefix "-x"`}},
		{[]string{"crontab", "--tz", "Europe/Berln"}, []string{`--tz "Europe/Berln"`, "did you mean Europe/Berlin?"}},
		{[]string{"crontab", "--system", "--run-as", "x"}, []string{`--run-as "x"`, "--system"}},
		{[]string{"crontab", "--env-file", "A=b"}, []string{`--env-file "A"="b"`, "begins with /"}},
		{[]string{"crontab", "--env-file", "A"}, []string{`--env-file "A"`, "KEY=VALUE"}},
		{[]string{"crontab", "--run-ttl", "1ms"}, []string{`--run-ttl "1ms"`, "from 1s to 720h"}},
	} {
		s := newShell("CONCH_ENDPOINTS=" + etcdtest.Untouched(t))
		if code := s.conch(append([]string{"cron", "import"}, tt.args...)...); code != hold.CodeUsage || s.stdout.String() != "" || strings.Count(s.stderr.String(), "\n") != 1 {
			t.Errorf("%q: code %d, %q %q", tt.args, code, s.stdout.String(), s.stderr.String())
		}
		contains(t, s.stderr.String(), tt.want...)
	}
	s := newShell("CONCH_DIAL_TIMEOUT=x")
	if code := s.conch("cron", "import", "crontab"); code != hold.CodeUsage {
		t.Errorf("code %d", code)
	}
	s = newShell("CONCH_ENDPOINTS="+etcdtest.Refused(t), "CONCH_DIAL_TIMEOUT=50ms")
	env := s.env("cron", "import", "crontab")
	env.Stdin = strings.NewReader(aCrontab)
	if code := Main(t.Context(), env); code != hold.CodeUnreachable {
		t.Errorf("code %d", code)
	}
}

func TestImportThatCannotPrintSaysSo(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	s := at(t)
	env := s.env("cron", "import", "crontab", "--dry-run")
	env.Stdin, env.Stdout = strings.NewReader("0 0 * * * "+name+"\n"), broken{}
	if code := Main(t.Context(), env); code != hold.CodeUnprinted {
		t.Errorf("code %d", code)
	}
}

// TestImportTellsAJobThatCameMeanwhile from its own.
func TestImportTellsAJobThatCameMeanwhile(t *testing.T) {
	t.Parallel()
	prefix := etcdtest.Office(t) + "-"
	f := &cronImportFlags{prefix: prefix}
	report, err := f.read("-", strings.NewReader("0 0 * * * backup\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := at(t)
	c := &call{env: s.env()}
	a := meddled(t, prefix+"backup", `{"schedule":"@daily","script":"theirs"}`, 1)
	if err := c.importJobs(t.Context(), a, f, report); err != nil || c.code != hold.CodeNo {
		t.Errorf("code %d, %v", c.code, err)
	}
	contains(t, s.stdout.String(), "1: not taken: job "+prefix+"backup exists already")
	if j, _ := storedJob(t, prefix+"backup"); j.Script != "theirs" {
		t.Errorf("%s", j.Encode())
	}
	s.offers(t, []string{"crontab"}, "cron", "import", "")
	if offered, directive := s.completed(t, "cron", "import", "crontab", ""); len(offered) != 0 || directive != anyFile {
		t.Errorf("%q %s", offered, directive)
	}
	s.offers(t, nil, "cron", "import", "crontab", "x", "")
	putKey(t, record.JobKey(prefix+"backup"), "no job")
	if err := c.importJobs(t.Context(), a, f, report); err != nil {
		t.Error(err)
	}
}
