package cron

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/test/run"
)

// gate is a command that says that it runs, and ends with a code when the file it waits for is there.
type gate struct{ began, open string }

func newGate(t *testing.T) gate {
	dir := t.TempDir()
	return gate{filepath.Join(dir, "began"), filepath.Join(dir, "open")}
}

// script of a run that ends with a code once it may.
func (g gate) script(code int) string {
	return fmt.Sprintf(`echo began; : >%s; until [ -e %s ]; do sleep 0.05; done; exit %d`, g.began, g.open, code)
}

// await waits until the run has begun. It polls: the kernel tells of files only whoever watches the folder before.
func (g gate) await(f *fleet) {
	f.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) { // a poll of a file
		if _, err := os.Stat(g.began); err == nil {
			return
		}
	}
	f.Fatalf("the run does not begin; %s", f.logs())
}

func (g gate) let(f *fleet) { f.must(os.WriteFile(g.open, nil, 0o600)) }

// A daemon that is told to stop claims nothing more, lets what runs finish, writes its results, and exits with 0.
func TestADaemonThatIsStoppedDrains(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			f, g := one(t), newGate(t)
			d := f.daemon("a")
			f.add("j", fmt.Sprintf(`{"schedule":"@manual","script":%q,"success_codes":[3]}`, g.script(3)))
			asked := f.request("j")
			g.await(f)
			d.Signal(sig)
			d.WaitLog("msg=draining")
			f.add("late", `{"schedule":"@every 1s","cmd":["true"]}`)
			f.request("late")
			g.let(f)
			if code := d.Code(); code != 0 {
				t.Errorf("exit code %d; %s", code, d.Stderr())
			}
			f.ended(f.result(asked), record.Success, "")
			if got := f.results("late"); len(got) > 0 {
				t.Errorf("claimed after the signal: %+v", got)
			}
			f.empty()
			f.nothingOpen()
		})
	}
}

// The second signal ends what runs, and so does the end of the drain timeout; the result says so, and the code is 0.
func TestADaemonInAHurryEndsWhatRuns(t *testing.T) {
	for name, row := range map[string]struct {
		flags   []string
		signals int
	}{
		"a second signal":   {nil, 2},
		"no drain":          {[]string{"--drain-timeout", "0s"}, 1},
		"a drain that ends": {[]string{"--drain-timeout", "200ms"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f, g := one(t), newGate(t)
			d := f.daemon("a", row.flags...)
			f.add("j", fmt.Sprintf(`{"schedule":"@manual","script":%q}`, g.script(0)))
			asked := f.request("j")
			g.await(f)
			d.Signal(syscall.SIGTERM)
			if row.signals > 1 {
				d.WaitLog("msg=draining")
				d.Signal(syscall.SIGTERM)
			}
			if code := d.Code(); code != 0 {
				t.Errorf("exit code %d; %s", code, d.Stderr())
			}
			r := f.result(asked)
			f.ended(r, record.Killed, record.ReasonShutdown)
			if r.Signal != "SIGTERM" || r.Output.Tail != "began\n" {
				t.Errorf("signal %q, output %q", r.Signal, r.Output.Tail)
			}
			f.empty()
			f.nothingOpen()
		})
	}
}

// nothingOpen fails if etcd has a start whose end is not told, or a daemon.
func (f *fleet) nothingOpen() {
	f.Helper()
	for _, area := range []string{record.Opens, record.Runs, record.Nodes, record.Kills} {
		if keys := f.keys(area); len(keys) > 0 {
			f.Errorf("left in etcd: %q", keys)
		}
	}
}

// What a daemon cannot begin with is one line and a code.
func TestADaemonThatCannotBegin(t *testing.T) {
	f := one(t)
	nobody := []string{"CONCH_ENDPOINTS=127.0.0.1:1"}
	for _, row := range []struct {
		name string
		env  []string
		args []string
		code int
		want []string // what the line names
	}{
		{"no etcd", nobody, []string{"--host", "a", "--dial-timeout", "300ms"}, 69, []string{"127.0.0.1:1"}},
		{"no such flag", nil, []string{"--hots", "a"}, 64, []string{"--hots", "--host"}},
		{"an argument", nil, []string{"start"}, 64, []string{`"start"`}},
		{"a host that is no name", nil, []string{"--host", "a/b"}, 64, []string{"--host", "a/b"}},
		{"a label that is none", nil, []string{"--label", "disk"}, 64, []string{"--label", "disk"}},
		{"a user that is none", nil, []string{"--allow-user", "a b"}, 64, []string{"--allow-user", "a b"}},
		{"no room", nil, []string{"--max-running", "0"}, 64, []string{"--max-running", "0"}},
		{"too much room", nil, []string{"--max-running", "1000000"}, 64, []string{"--max-running", "1000000"}},
		{"no number", nil, []string{"--max-running", "many"}, 64, []string{"--max-running", "many"}},
		{"a drain before now", nil, []string{"--drain-timeout", "-1s"}, 64, []string{"--drain-timeout", "-1s"}},
		{"no unit", nil, []string{"--drain-timeout", "30"}, 64, []string{"--drain-timeout", "30"}},
		{"a skew too small", nil, []string{"--max-skew", "500ms"}, 64, []string{"--max-skew", "500ms", "1s"}},
		{"a TTL of no seconds", nil, []string{"--ttl", "500ms"}, 64, []string{"--ttl", "500ms"}},
		{"a margin as long as the TTL", nil, []string{"--ttl", "5s", "--kill-margin", "5s"}, 64, []string{"--ttl", "--kill-margin"}},
		{"a guard that is no choice", nil, []string{"--guard", "on"}, 64, []string{"--guard", "on"}},
		{"an endpoint that is none", nil, []string{"--endpoints", "http://"}, 64, []string{"--endpoints"}},
		{"a variable", []string{"CONCH_MAX_SKEW=1"}, nil, 64, []string{"CONCH_MAX_SKEW", "1"}},
	} {
		env := append(f.env(), row.env...)
		d := run.StartWith(t, run.Options{Path: run.BuildDaemon(t).Daemon, Env: env, Args: row.args})
		if code := d.Wait(); code != row.code {
			t.Errorf("%s: code %d, want %d", row.name, code, row.code)
		}
		said := d.Stderr()
		if strings.Count(said, "\n") != 1 || d.Stdout() != "" {
			t.Errorf("%s: want one line, got %q and %q", row.name, said, d.Stdout())
		}
		for _, word := range row.want {
			if !strings.Contains(said, word) {
				t.Errorf("%s: %q does not name %q", row.name, said, word)
			}
		}
	}
	if keys := f.keys(record.Root); len(keys) > 0 {
		t.Errorf("left in etcd: %q", keys)
	}
}

// A second daemon of a name is refused while the first lives, and gets its place when it is gone, however it went.
func TestOneDaemonAName(t *testing.T) {
	f := one(t)
	first := f.daemon("a", "--ttl", "4s")
	second := f.launch("a", "--ttl", "4s")
	if code := second.Wait(); code != 75 {
		t.Errorf("code %d, want 75; %s", code, second.Stderr())
	}
	if said := second.Stderr(); !strings.Contains(said, `"a"`) || !strings.Contains(said, "--host") {
		t.Errorf("it does not say which name, and what to do: %q", said)
	}
	f.lives(first)
	first.Kill()
	third := f.daemon("a", "--ttl", "4s") // waits for what the first one left
	f.ended(f.once("j", `{"cmd":["true"]}`), record.Success, "")
	f.stop(third)
	f.nothingOpen()
}

// A daemon is ready when it is registered and knows the jobs; the watchdog is fed by what everything depends on.
func TestTheServiceManagerHearsOfTheDaemon(t *testing.T) {
	f, m, g := one(t), run.NewManager(t), newGate(t)
	f.add("j", fmt.Sprintf(`{"schedule":"@manual","script":%q,"env_inherit":true}`, `[ -z "$NOTIFY_SOCKET$WATCHDOG_USEC" ] || exit 9; `+g.script(0)))
	env := append(f.env(), "NOTIFY_SOCKET="+m.Socket, "WATCHDOG_USEC=200000") // a beat every 100 ms
	d := f.start(run.Options{Path: run.BuildDaemon(t).Daemon, Env: env, Args: []string{"--host", "a"}}, "a")
	m.Until("READY=1\nSTATUS=node a")
	if keys := f.keys(record.Nodes); len(keys) != 1 {
		t.Errorf("ready, and registered are %q", keys)
	}
	asked := f.request("j")
	g.await(f)
	for range 3 {
		m.Until("WATCHDOG=1")
	}
	d.Signal(syscall.SIGTERM)
	m.Until("STATUS=draining")
	m.Until("WATCHDOG=1") // a drain may take longer than the watchdog waits
	g.let(f)
	m.Until("STOPPING=1")
	if code := d.Code(); code != 0 {
		t.Errorf("code %d; %s", code, d.Stderr())
	}
	f.ended(f.result(asked), record.Success, "")
}
