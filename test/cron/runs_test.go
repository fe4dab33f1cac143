package cron

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
)

// ended holds a result against how the run should have ended.
func (f *fleet) ended(r record.Result, status record.Status, reason record.Reason) {
	f.Helper()
	if r.Status != status || r.Reason != reason {
		f.Errorf("%s: %s %q (%s), want %s %q; output %.300q", r.RunID, r.Status, r.Reason, r.Detail, status, reason, r.Output.Tail)
	}
}

// What a command leaves behind ends with it, wherever it hid, and the run with both.
func TestNothingIsLeftOfARun(t *testing.T) {
	f := one(t)
	f.daemon("a")
	for name, script := range map[string]string{
		"background":  `sleep 600 & exit 0`,
		"session":     `setsid sleep 600 & setsid -f sleep 600`,
		"double-fork": `( setsid sh -c 'sleep 600 & sleep 600' & ) & exit 0`,
		"deaf":        `trap '' TERM; (trap '' TERM HUP INT; while :; do sleep 1; done) & exit 0`,
		"closed":      `exec >/dev/null 2>&1 </dev/null; setsid -f sleep 600`,
	} {
		r := f.once(name, fmt.Sprintf(`{"script":%q,"kill_after":"1s"}`, script))
		f.ended(r, record.Success, "")
		if r.WallMS > patience.Milliseconds()/2 {
			t.Errorf("%s took %d ms", name, r.WallMS)
		}
		f.empty()
	}
}

// Whatever a run writes, its result is JSON and text, small, and tells how much there was.
func TestOutputIsCappedAndText(t *testing.T) {
	f := one(t)
	f.daemon("a")
	for _, row := range []struct {
		name, script string
		bytes        int64
		truncated    bool
		tail         string // of the tail, its end
	}{
		{"much", `yes | head -c 50M`, 50 << 20, true, "y\ny\n"},
		{"long-line", `head -c 10485760 /dev/zero | tr '\0' x`, 10 << 20, true, "xxxx"},
		{"no-text", `printf 'a\0\377\303b'; printf '\303\251' >&2`, 7, false, "a\x00\uFFFDbé"},
		{"cut-in-a-letter", `yes é | tr -d '\n' | head -c 100001; echo`, 100002, true, "é\uFFFD\n"},
		{"nothing", `true`, 0, false, ""},
	} {
		r := f.once(row.name, fmt.Sprintf(`{"script":%q}`, row.script))
		f.ended(r, record.Success, "")
		o := r.Output
		if o.Bytes != row.bytes || o.Truncated != row.truncated || !strings.HasSuffix(o.Tail, row.tail) {
			t.Errorf("%s: %d bytes, truncated %v, tail ...%q; want %d, %v, ...%q",
				row.name, o.Bytes, o.Truncated, o.Tail[max(0, len(o.Tail)-20):], row.bytes, row.truncated, row.tail)
		}
		// Each byte that is no text is a character of three.
		if len(o.Tail) > 3*16<<10 || row.truncated && len(o.Tail) < 16<<10-4 {
			t.Errorf("%s: a tail of %d bytes", row.name, len(o.Tail))
		}
		got, err := f.cli.Get(t.Context(), record.Range(record.Results, row.name), clientv3.WithPrefix())
		f.must(err)
		for _, kv := range got.Kvs {
			if !json.Valid(kv.Value) || !utf8.Valid(kv.Value) {
				t.Errorf("%s: no JSON: %.200q", row.name, kv.Value)
			}
		}
	}
}

// A run has the surroundings that its job names.
func TestTheSurroundingsOfARun(t *testing.T) {
	f := one(t)
	f.daemon("a")
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	f.must(os.WriteFile(secret, []byte("from a file\n"), 0o600))
	for _, row := range []struct{ name, fields, tail string }{
		{"umask", `"script":"umask","umask":"0027"`, "0027\n"},
		{"cwd", fmt.Sprintf(`"cmd":["pwd"],"cwd":%q`, dir), dir + "\n"},
		{"relative", fmt.Sprintf(`"cmd":["./hello"],"cwd":%q`, dir), "hello\n"},
		{"env", fmt.Sprintf(`"script":"echo $A $B $C","env":{"A":"one","B":{"file":%q},"MARK":"m"}`, secret), "one from a file\n"},
		{"bare", `"script":"env | grep -c -e ^CONCH_ENDPOINTS -e ^PWD_OF_TEST; echo $PATH","success_codes":[0]`, "0\n/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"},
		{"names", `"script":"echo $CONCH_NAME $CONCH_KIND $CONCH_ATTEMPT"`, "names manual 1\n"},
		{"stdin", `"cmd":["cat"],"stdin":"line\nline % \u00e9"`, "line\nline % é"},
		{"no-stdin", `"cmd":["cat"]`, ""},
		{"argv", `"cmd":["printf","%s|","a b","$HOME","","é"]`, "a b|$HOME||é|"},
		{"shell", `"script":"echo ${BASH_VERSION:+bash}","shell":"/bin/bash"`, "bash\n"},
	} {
		f.must(os.WriteFile(filepath.Join(dir, "hello"), []byte("#!/bin/sh\necho hello\n"), 0o755))
		r := f.once(row.name, "{"+row.fields+"}")
		f.ended(r, record.Success, "")
		if r.Output.Tail != row.tail {
			t.Errorf("%s: output %q, want %q", row.name, r.Output.Tail, row.tail)
		}
	}
}

// How a command ends, and that it cannot be started, is told apart.
func TestTheEndOfARun(t *testing.T) {
	f := one(t)
	f.daemon("a")
	for _, row := range []struct {
		name, fields string
		status       record.Status
		reason       record.Reason
		code         int
		detail       string
	}{
		{"ok", `"cmd":["true"]`, record.Success, "", 0, ""},
		{"code", `"script":"exit 3"`, record.Failed, record.ReasonExit, 3, ""},
		{"code-that-is-fine", `"script":"exit 3","success_codes":[3,4]`, record.Success, "", 3, ""},
		{"zero-that-is-not", `"cmd":["true"],"success_codes":[3,4]`, record.Failed, record.ReasonExit, 0, ""},
		{"signal", `"script":"kill -USR1 $$"`, record.Failed, record.ReasonSignal, 128 + 10, ""},
		{"too-long", `"cmd":["sleep","600"],"run_ttl":"300ms"`, record.Timeout, record.ReasonRunTTL, 128 + 15, "run_ttl 300ms"},
		{"too-long-and-deaf", `"script":"trap '' TERM; while :; do sleep 1; done","run_ttl":"300ms","kill_after":"300ms"`, record.Timeout, record.ReasonRunTTL, 128 + 9, "run_ttl 300ms"},
		{"no-command", `"cmd":["no-such-command"]`, record.Error, record.ReasonNotStarted, 0, "no-such-command"},
		{"no-file", `"cmd":["/no/such/file"]`, record.Error, record.ReasonNotStarted, 0, "/no/such/file"},
		{"no-program", `"cmd":["/etc/passwd"]`, record.Error, record.ReasonNotStarted, 0, "/etc/passwd"},
		{"no-folder", `"cmd":["true"],"cwd":"/no/such/folder"`, record.Error, record.ReasonNotStarted, 0, "/no/such/folder"},
		{"no-shell", `"script":"true","shell":"/no/such/shell"`, record.Error, record.ReasonNotStarted, 0, "/no/such/shell"},
		{"no-value", `"cmd":["true"],"env":{"A":{"file":"/no/such/secret"}}`, record.Error, record.ReasonNotStarted, 0, "/no/such/secret"},
		{"no-room", `"cmd":["true"],"output":{"file":"/no/such/folder/log"}`, record.Error, record.ReasonNotStarted, 0, "/no/such/folder/log"},
	} {
		r := f.once(row.name, "{"+row.fields+"}")
		f.ended(r, row.status, row.reason)
		if r.ExitCode != row.code || !strings.Contains(r.Detail, row.detail) || strings.ContainsAny(r.Detail, "\n") {
			t.Errorf("%s: code %d, detail %q; want %d, %q", row.name, r.ExitCode, r.Detail, row.code, row.detail)
		}
		if started := !r.StartedAt.IsZero(); started != row.status.Started() {
			t.Errorf("%s: started %v with status %s", row.name, started, row.status)
		}
	}
	f.empty()
}

// A full stream in a file on the node is kept in as many files of such a size as the job says.
func TestTheFileOfOutputIsRotated(t *testing.T) {
	f := one(t)
	f.daemon("a")
	log := filepath.Join(t.TempDir(), "log")
	// By lines of 100 bytes, none of which is torn, however much comes at once.
	f.add("j", fmt.Sprintf(`{"schedule":"@manual","script":"i=0; while [ $i -lt 60 ]; do printf '%%099d\n' $i; i=$((i+1)); done","output":{"file":%q,"file_size":"1KiB","file_count":3}}`, log))
	r := f.result(f.request("j"))
	f.ended(r, record.Success, "")
	var all string
	for _, name := range []string{log + ".3", log + ".2", log + ".1", log} {
		raw, err := os.ReadFile(name)
		f.must(err)
		if len(raw) != 1000 {
			t.Errorf("%s has %d bytes", name, len(raw))
		}
		all += string(raw)
	}
	if _, err := os.Lstat(log + ".4"); err == nil {
		t.Error("more than three old files")
	}
	if !strings.HasSuffix(r.Output.Tail, all) || r.Output.Bytes != 6000 {
		t.Errorf("the files are not the end of the output: %d bytes of %d", len(all), r.Output.Bytes)
	}
}

// A job runs as another user only where the daemon allows it; elsewhere its ticks say that there is no node for it.
func TestUsers(t *testing.T) {
	f := one(t)
	refused := f.daemon("a", "--max-skew", "1s")
	f.add("j", `{"schedule":"@every 2s","script":"id -un; echo $HOME $USER; umask","user":"nobody"}`)
	r := f.next("j", 0)
	f.ended(r, record.Skipped, record.ReasonNoNode)
	f.stop(refused)

	f.daemon("b", "--allow-user", "nobody")
	r = f.await(record.Range(record.Results, "j"), func(r record.Result) bool { return r.Status != record.Skipped && r.Status != record.Missed })
	if os.Geteuid() != 0 { // who is not root cannot become somebody else
		f.ended(r, record.Error, record.ReasonNotStarted)
		return
	}
	f.ended(r, record.Success, "")
	if !strings.HasPrefix(r.Output.Tail, "nobody\n/") || !strings.Contains(r.Output.Tail, " nobody\n") {
		t.Errorf("output %q", r.Output.Tail)
	}
	f.ended(f.once("k", `{"cmd":["true"],"user":"nobody","cwd":"/root"}`), record.Error, record.ReasonNotStarted)
}

// within fails if something took longer than it may, and a busy machine adds.
func within(t *testing.T, what string, took, most time.Duration) {
	t.Helper()
	t.Logf("%s: %v", what, took)
	if took > most+slack {
		t.Errorf("%s: %v, want at most %v", what, took, most)
	}
}
