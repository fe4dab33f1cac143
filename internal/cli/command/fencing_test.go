package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-coord/coord/coordination/fence"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// tokenFile is a path for a token, where there is no file yet.
func tokenFile(t *testing.T) string { return filepath.Join(t.TempDir(), "token") }

// hostage takes the lock of a token file.
func hostage(t *testing.T, path string, token uint64) *fence.Taken {
	t.Helper()
	file, err := fence.NewFile(path)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := file.Take(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	return taken
}

func TestBadFenceLinesTouchNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, damaged := filepath.Join(dir, "token"), filepath.Join(dir, "damaged")
	if err := os.WriteFile(damaged, []byte("33\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("elsewhere", link); err != nil {
		t.Fatal(err)
	}
	const whole = "want a whole number from 1 to 18446744073709551615"
	for _, row := range []struct {
		name string
		args []string
		want []string // in the one line
	}{
		{"nothing", []string{"fence"}, []string{"no command", "--"}},
		{"no command after --", []string{"fence", "--file", path, "--token", "1", "--"}, []string{"no command given after --"}},
		{"no --", []string{"fence", "--file", path, "true"}, []string{`"true"`, "goes after --"}},
		{"nearly a command", []string{"fence", "chek"}, []string{`"chek"`, "did you mean check?"}},
		{"a word before --", []string{"fence", "x", "--", "true"}, []string{`"x"`, "nothing is accepted before --"}},
		{"no file", []string{"fence", "--token", "1", "--", "true"}, []string{"--file is missing"}},
		{"a file without a name", []string{"fence", "--file", "", "--token", "1", "--", "true"}, []string{`--file "": want`}},
		{"a folder by its name", []string{"fence", "--file", dir + "/", "--token", "1", "--", "true"}, []string{"--file", "want the path of a file"}},
		{"a folder", []string{"fence", "--file", dir, "--token", "1", "--", "true"}, []string{"--file", "not a regular file"}},
		{"a pipe", []string{"fence", "--file", pipe, "--token", "1", "--", "true"}, []string{"--file", "not a regular file"}},
		{"a link", []string{"fence", "--file", link, "--token", "1", "--", "true"}, []string{"--file", "not a regular file"}},
		{"a folder that is not there", []string{"fence", "--file", path + "/no/token", "--token", "1", "--", "true"}, []string{"--file", "no such file"}},
		{"a folder where nothing can be made", []string{"fence", "--file", "/proc/token", "--token", "1", "--", "true"}, []string{"--file", "can be written"}},
		{"a damaged file", []string{"fence", "--file", damaged, "--token", "1", "--", "true"}, []string{"--file", "damaged", `"33\n"`, "want"}},
		{"no token", []string{"fence", "--file", path, "--", "true"}, []string{"--token is missing", "CONCH_REV", whole}},
		{"token 0", []string{"fence", "--file", path, "--token", "0", "--", "true"}, []string{`--token "0"`, whole}},
		{"token -1", []string{"fence", "--file", path, "--token", "-1", "--", "true"}, []string{`--token "-1"`, whole}},
		{"token 2^64", []string{"fence", "--file", path, "--token", "18446744073709551616", "--", "true"}, []string{"--token", whole}},
		{"token of words", []string{"fence", "--file", path, "--token", "latest", "--", "true"}, []string{`--token "latest"`, whole}},
		{"wait negative", []string{"fence", "--file", path, "--token", "1", "--wait", "-1s", "--", "true"}, []string{`--wait "-1s"`}},
		{"kill-after 0", []string{"fence", "--file", path, "--token", "1", "--kill-after", "0", "--", "true"}, []string{`--kill-after "0"`}},
		{"guard on", []string{"fence", "--file", path, "--token", "1", "--guard", "on", "--", "true"}, []string{`--guard "on"`, "auto or off"}},
		{"a status file without a name", []string{"fence", "--file", path, "--token", "1", "--status-file", "", "--", "true"}, []string{`--status-file ""`}},
		{"check with a command", []string{"fence", "check", "--file", path, "--token", "1", "--", "true"}, []string{"check takes no argument"}},
		{"check without a file", []string{"fence", "check", "--token", "1"}, []string{"--file is missing"}},
		{"check without a token", []string{"fence", "check", "--file", path}, []string{"--token is missing"}},
		{"check a folder", []string{"fence", "check", "--file", dir, "--token", "1"}, []string{"not a regular file"}},
		{"check a pipe", []string{"fence", "check", "--file", pipe, "--token", "1"}, []string{"not a regular file"}},
		{"check in a folder that is not there", []string{"fence", "check", "--file", filepath.Join(dir, "no", "token"), "--token", "1"}, []string{"no such file"}},
		{"check a damaged file", []string{"fence", "check", "--file", damaged, "--token", "1"}, []string{"damaged"}},
		{"an unknown dialect", []string{"fence", "sql", "--dialect", "mysql"}, []string{`--dialect "mysql"`, "postgres or sqlite"}},
		{"a table in capitals", []string{"fence", "sql", "--table", "Tokens"}, []string{`--table "Tokens"`, "lower-case"}},
		{"a table with a quote", []string{"fence", "sql", "--table", `a"; drop table x; --`}, []string{"--table", "lower-case"}},
		{"a table without a name", []string{"fence", "sql", "--table", ""}, []string{`--table ""`}},
		{"sql with an argument", []string{"fence", "sql", "x"}, []string{"sql takes no argument"}},
	} {
		s := newShell("CONCH_ENDPOINTS=" + etcdtest.Untouched(t))
		if code := s.conch(row.args...); code != hold.CodeUsage || strings.Count(s.stderr.String(), "\n") != 1 || s.stdout.String() != "" {
			t.Errorf("%s: code %d, stderr %q, stdout %q", row.name, code, s.stderr.String(), s.stdout.String())
		}
		contains(t, s.stderr.String(), append(row.want, "conch: usage: ")...)
	}
	if exists(path) || exists(path+".lock") {
		t.Error("a bad call left something")
	}
	for _, bad := range []string{"0", "x", "-1", "18446744073709551616"} {
		s := newShell("CONCH_REV=" + bad)
		if code := s.conch("fence", "--file", path, "--", "true"); code != hold.CodeUsage {
			t.Errorf("CONCH_REV=%s: code %d", bad, code)
		}
		contains(t, s.stderr.String(), `CONCH_REV "`+bad+`"`, whole)
	}
}

func TestOnlyWhatIsNotTooLateRuns(t *testing.T) {
	t.Parallel()
	path := tokenFile(t)
	out := filepath.Join(filepath.Dir(path), "out")
	for _, row := range []struct {
		token string
		code  int
		ran   bool
	}{
		{"33", 7, true}, {"33", 7, true}, {"32", hold.CodeFenced, false}, {"34", 7, true}, {"33", hold.CodeFenced, false},
	} {
		s := newShell("CONCH_REV="+row.token, "CONCH_NAME=reports", "CONCH_LEASE=1f", "CONCH_SLOT=2", "CONCH_PASSWORD=secret")
		code := s.conch("fence", "--file", path, "--", "sh", "-c",
			`echo "$CONCH_NAME $CONCH_REV $CONCH_LEASE $CONCH_SLOT $CONCH_PASSWORD" >"$1"; exit 7`, "sh", out)
		if code != row.code || exists(out) != row.ran {
			t.Errorf("%s: code %d, ran %v; stderr %q", row.token, code, exists(out), s.stderr.String())
		}
		if !row.ran {
			contains(t, s.stderr.String(), "conch: fenced: token "+row.token+" is below 3")
			continue
		}
		// What an outer wrapper says of its hold stands, and nothing is said where all goes well.
		if text, err := os.ReadFile(out); string(text) != "reports "+row.token+" 1f 2 \n" || err != nil || s.stderr.String() != "" {
			t.Errorf("%s: child saw %q, %v; stderr %q", row.token, text, err, s.stderr.String())
		}
		if err := os.Remove(out); err != nil {
			t.Fatal(err)
		}
	}
	// The flag counts more than the variable, and is what the child sees.
	s := newShell("CONCH_REV=1")
	if code := s.conch("fence", "--file", path, "--token", "35", "--", "sh", "-c", `test "$CONCH_REV" = 35`); code != 0 {
		t.Errorf("code %d; %s", code, s.stderr.String())
	}
}

func TestCheckOnlyLooks(t *testing.T) {
	t.Parallel()
	path := tokenFile(t)
	check := func(token string, want int) {
		t.Helper()
		s := newShell("CONCH_REV=" + token)
		if code := s.conch("fence", "check", "--file", path); code != want || s.stdout.String() != "" || (code == 0) != (s.stderr.String() == "") {
			t.Errorf("%s: code %d, want %d; stderr %q", token, code, want, s.stderr.String())
		}
	}
	check("1", 0)
	check("99", 0)
	if exists(path) || exists(path+".lock") {
		t.Error("it left something")
	}
	hostage(t, path, 34) // it does not wait for that
	check("33", hold.CodeFenced)
	check("34", 0)
	check("35", 0)
	check("34", 0)
}

func TestTheWaitForALockedFile(t *testing.T) {
	t.Parallel()
	path := tokenFile(t)
	marker := filepath.Join(filepath.Dir(path), "ran")
	status := filepath.Join(filepath.Dir(path), "status")
	taken := hostage(t, path, 33)
	for _, wait := range []string{"0", "20ms"} {
		s := newShell()
		if code := s.conch("fence", "--file", path, "--token", "34", "--wait", wait, "--status-file", status, "--", "touch", marker); code != hold.CodeNotAcquired {
			t.Errorf("--wait %s: code %d", wait, code)
		}
		contains(t, s.stderr.String(), "conch: not acquired: ", "is locked by another conch fence")
		text, _ := os.ReadFile(status)
		contains(t, string(text), `"outcome":"not-acquired","code":75`)
	}
	// A signal ends the wait, and only one that asks for the end.
	s := newShell()
	s.signals <- syscall.SIGUSR1
	s.signals <- syscall.SIGTERM
	if code := s.conch("fence", "--file", path, "--token", "34", "--status-file", status, "--", "touch", marker); code != 143 || s.stderr.String() != "" {
		t.Errorf("code %d; %s", code, s.stderr.String())
	}
	text, _ := os.ReadFile(status)
	contains(t, string(text), `"outcome":"signalled","code":143`, "SIGTERM")
	if exists(marker) {
		t.Error("it ran beside another")
	}
	if seen, _ := mustFile(t, path).Seen(); seen != 33 {
		t.Errorf("who waited in vain made %d seen", seen)
	}

	waiter := newShell()
	code := waiter.start("fence", "--file", path, "--token", "34", "--wait", "1m", "--", "touch", marker)
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if c := wait(t, code); c != 0 || !exists(marker) {
		t.Errorf("code %d; %s", c, waiter.stderr.String())
	}
}

func mustFile(t *testing.T, path string) *fence.File {
	t.Helper()
	f, err := fence.NewFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A signal that comes with the lock gives it back.
func TestASignalThatComesWithTheLock(t *testing.T) {
	t.Parallel()
	path := tokenFile(t)
	f := &fenceFlags{fenceFile: fenceFile{path: path, token: 34}}
	signals := make(chan os.Signal, 1)
	for range 100 { // which of the two is heard first is anybody's guess
		signals <- syscall.SIGINT
		taken, sig, err := f.take(context.Background(), signals)
		switch {
		case sig == 0 && err == nil:
			<-signals
			_ = taken.Close()
		case sig != syscall.SIGINT:
			t.Fatalf("%v, %v, %v", taken, sig, err)
		}
	}
	hostage(t, path, 34)
}

func TestTheStatusFileOfAFence(t *testing.T) {
	t.Parallel()
	path := tokenFile(t)
	status := filepath.Join(filepath.Dir(path), "status")
	for _, row := range []struct {
		token string
		argv  []string
		code  int
		want  string
	}{
		{"34", []string{"sh", "-c", "exit 76"}, 76, `"outcome":"child-exit","code":76,"rev":34,"lease":""`},
		{"34", []string{"sh", "-c", "kill -9 $$"}, 137, `"outcome":"child-signal","code":137,"rev":34`},
		{"33", []string{"true"}, 76, `"outcome":"fenced","code":76`},
		{"34", []string{"no-such-command"}, 127, `"outcome":"not-started","code":127`},
		{"34", []string{"/etc/passwd"}, 126, `"outcome":"not-started","code":126`},
	} {
		s := newShell()
		args := append([]string{"fence", "--file", path, "--token", row.token, "--status-file", status, "--"}, row.argv...)
		if code := s.conch(args...); code != row.code {
			t.Errorf("%q: code %d, want %d; %s", row.argv, code, row.code, s.stderr.String())
		}
		text, err := os.ReadFile(status)
		if err != nil {
			t.Fatal(err)
		}
		contains(t, string(text), row.want)
	}
	// A typo makes no token seen.
	if seen, _ := mustFile(t, path).Seen(); seen != 34 {
		t.Errorf("%d was seen", seen)
	}
	other := tokenFile(t)
	if newShell().conch("fence", "--file", other, "--token", "1", "--", "no-such-command") != 127 || exists(other) || exists(other+".lock") {
		t.Error("a typo left something")
	}
}

func TestTheSQLThatIsPrinted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args []string
		d    fence.Dialect
		name string
		has  string
	}{
		{nil, fence.PostgreSQL, "", ":'key'"},
		{[]string{"--dialect", "sqlite", "--table", "tokens"}, fence.SQLite, "tokens", ".parameter"},
	} {
		guard, err := fence.NewSQL(row.d, fence.SQLOptions{Table: row.name})
		if err != nil {
			t.Fatal(err)
		}
		s := newShell()
		if code := s.conch(append([]string{"fence", "sql"}, row.args...)...); code != 0 || s.stderr.String() != "" {
			t.Errorf("code %d; %s", code, s.stderr.String())
		}
		contains(t, s.stdout.String(), guard.Migration()+";\n", guard.Statement()+";\n", row.has)
	}
	if s := newShell(); s.conch("fence", "sql", "--dialect", "x") != hold.CodeUsage {
		t.Error("an unknown dialect")
	}
}

func TestAServiceManagerHearsOfAFence(t *testing.T) {
	t.Parallel()
	notes := make(chan string, 100)
	s := newShell()
	code := s.startNotifying(func(state string) {
		select {
		case notes <- state:
		default:
		}
	}, "fence", "--file", tokenFile(t), "--token", "34", "--", "sh", "-c", "sleep 0.2")
	if c := wait(t, code); c != 0 {
		t.Errorf("code %d; %s", c, s.stderr.String())
	}
	close(notes)
	var heard []string
	for note := range notes {
		heard = append(heard, note)
	}
	contains(t, strings.Join(heard, "\n"), "READY=1", "STATUS=running under ", "WATCHDOG=1")
}
