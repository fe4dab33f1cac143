package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/view/live"
)

// register puts hosts until the test ends; each has the test's own label, so that tests do not see each other's.
func register(t *testing.T, client *clientv3.Client, label, name, more string) (uuid string) {
	t.Helper()
	uuid = label + "-" + name
	lease, err := client.Grant(t.Context(), 600)
	if err != nil {
		t.Fatal(err)
	}
	value := fmt.Sprintf(`{"hostname":%q,"labels":{"test":%q,"n":%q}%s}`, name, label, name, more)
	if _, err := client.Put(t.Context(), coord.HostsPrefix+uuid, value, clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unregister(t, uuid) })
	return uuid
}

func unregister(t *testing.T, uuid string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own has ended
	defer cancel()
	if _, err := etcdtest.Shared(t).Client(t).Delete(ctx, coord.HostsPrefix+uuid); err != nil {
		t.Error(err)
	}
}

func TestHostsPrintsWhoIsUp(t *testing.T) {
	t.Parallel()
	client, label := etcdtest.Shared(t).Client(t), etcdtest.Office(t)
	started := time.Now().Add(-time.Hour).UnixNano()
	register(t, client, label, "b", fmt.Sprintf(`,"hypervisor":"qemu","version":"1\u001b[2J","started_at_unix_ns":%d`, started))
	a := register(t, client, label, "a", `,"stopping":true`)

	s := at(t)
	if code := s.conch("hosts", "-l", "test="+label); code != 0 || s.stderr.String() != "" {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(s.stdout.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], a+"  stopping  a ") || strings.Contains(s.stdout.String(), "\x1b") {
		t.Fatalf("%q", lines)
	}
	contains(t, lines[0], "UUID", "LABELS")
	contains(t, lines[2], label+"-b  up", "qemu", `1\x1b[2J`, "1h0m", "n=b,test="+label)

	s = at(t)
	if code := s.conch("hosts", "--json", "-l", "test="+label+",n=b"); code != 0 {
		t.Errorf("code %d", code)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(s.stdout.String()), &got); err != nil || strings.Contains(s.stdout.String(), "\x1b") {
		t.Fatalf("%v in %q", err, s.stdout.String())
	}
	for name, want := range map[string]any{
		"host_uuid": label + "-b", "hostname": "b", "hypervisor": "qemu", "version": "1\x1b[2J", "stopping": false,
		"started": time.Unix(0, started).UTC().Format(time.RFC3339),
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if left, up := got["ttl_left_ms"].(float64), got["up_ms"].(float64); left < 500_000 || up < 3_600_000 || got["rev"].(float64) == 0 || got["lease"] == "" {
		t.Errorf("%v", got)
	}
}

func TestHostsSaysWhereNobodyIsUp(t *testing.T) {
	t.Parallel()
	s := at(t)
	if code := s.conch("hosts", "-l", "test="+etcdtest.Office(t)); code != 1 || s.stdout.String() != "no such host is up\n" {
		t.Errorf("code %d, stdout %q", code, s.stdout.String())
	}
	s = at(t)
	if code := s.conch("hosts", "--json", "-l", "test="+etcdtest.Office(t)); code != 1 || s.stdout.String() != "" {
		t.Errorf("code %d, stdout %q", code, s.stdout.String())
	}
	for _, watch := range []string{"--watch=false", "--watch"} {
		s = newShell("CONCH_ENDPOINTS="+etcdtest.Refused(t), "CONCH_DIAL_TIMEOUT=200ms")
		if code := s.conch("hosts", watch); code != 69 || s.stdout.String() != "" {
			t.Errorf("%s: code %d, stdout %q", watch, code, s.stdout.String())
		}
	}
}

// TestLeasesAreAskedForFewHostsOnly: each costs a request.
func TestLeasesAreAskedForFewHostsOnly(t *testing.T) {
	t.Parallel()
	client, label := etcdtest.Shared(t).Client(t), etcdtest.Office(t)
	lease, err := client.Grant(t.Context(), 600)
	if err != nil {
		t.Fatal(err)
	}
	var ops []clientv3.Op
	for i := range live.LeftMost + 1 {
		uuid := fmt.Sprintf("%s-%03d", label, i)
		t.Cleanup(func() { unregister(t, uuid) })
		ops = append(ops, clientv3.OpPut(coord.HostsPrefix+uuid, fmt.Sprintf(`{"labels":{"test":%q,"n":"%d"}}`, label, i), clientv3.WithLease(lease.ID)))
	}
	if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
		t.Fatal(err)
	}
	for selector, known := range map[string]bool{"test=" + label: false, "n=0,test=" + label: true} {
		s := at(t)
		code := s.conch("hosts", "--json", "-l", selector)
		if all, not := strings.Count(s.stdout.String(), "\n"), strings.Count(s.stdout.String(), `"ttl_left_ms":-1`); code != 0 || all == 0 || known != (not == 0) || !known && not != all {
			t.Errorf("%s: code %d, %d of %d are not known", selector, code, not, all)
		}
	}
}

func TestWhoMayNotReadHostsIsTold(t *testing.T) {
	t.Parallel()
	m := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := m.EnableAuth(t)
	addUser(t, root, "reader", grants{coord.HostsPrefix: readOnly})
	addUser(t, root, "other", grants{"/else/": readOnly})
	s := as(m, "other")
	for _, watch := range []string{"--watch=false", "--watch"} {
		if code := s.conch("hosts", watch); code != 77 {
			t.Errorf("%s: code %d, stderr %q", watch, code, s.stderr.String())
		}
	}
	contains(t, s.stderr.String(), "may not read the prefix /coord/hosts/")
	if s = as(m, "reader"); s.conch("hosts") != 1 {
		t.Error(s.stderr.String())
	}
}

func TestHostsAreWatchedUntilASignal(t *testing.T) {
	t.Parallel()
	client, label := etcdtest.Shared(t).Client(t), etcdtest.Office(t)
	uuid := register(t, client, label, "a", "")
	text, js := make(reader), make(reader)
	s, sj := at(t), at(t)
	code := s.startTo(text, "hosts", "--watch", "-l", "test="+label+",n=a")
	codeJSON := sj.startTo(js, "hosts", "--watch", "--json", "-l", "test="+label+",n=a")
	var rev float64
	want := func(event, reason string) {
		t.Helper()
		var got map[string]any
		if err := json.Unmarshal([]byte(js.next(t)), &got); err != nil {
			t.Fatal(err)
		}
		if got["event"] != event || got["host_uuid"] != uuid || reason != "" && got["reason"] != reason || got["at"] == "" {
			t.Errorf("got %v, want %s %s", got, event, reason)
		}
		if event == "up" {
			rev = got["rev"].(float64)
		} else if got["rev"] != rev {
			t.Errorf("got %v, want rev %v", got, rev)
		}
		line := text.next(t)
		if contains(t, line, event+"  "+uuid+"  "); reason != "" {
			contains(t, line, "("+reason+")")
		}
	}
	want("up", "")
	if line := js.next(t); !strings.Contains(line, `"event":"snapshot-done"`) || strings.Contains(line, "host_uuid") {
		t.Error(line)
	}
	register(t, client, label, "a", `,"version":"2"`)
	want("update", "")
	if _, err := client.Put(t.Context(), coord.HostsPrefix+uuid, `{}`); err != nil {
		t.Fatal(err)
	}
	want("down", relabelled)
	register(t, client, label, "other", "")
	register(t, client, label, "a", `,"stopping":true`)
	want("up", "")
	unregister(t, uuid)
	want("down", "stopped")
	s.signals <- syscall.SIGTERM
	sj.signals <- syscall.SIGINT
	if c, cj := wait(t, code), wait(t, codeJSON); c != 143 || cj != 130 || s.stderr.String()+sj.stderr.String() != "" {
		t.Errorf("codes %d and %d, stderr %q %q", c, cj, s.stderr.String(), sj.stderr.String())
	}
}

func TestAViewThatIsOutOfDateIsPrinted(t *testing.T) {
	t.Parallel()
	var out text
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, json := range []bool{false, true} {
		p := &hostPrinter{to: &out, json: json, known: map[string]bool{}}
		for _, ev := range []coord.HostEvent{{Kind: coord.ViewStale, Err: errors.New("no\x1b answer")}, {Kind: coord.ViewFresh}} {
			if err := p.print(ev, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	const want = `2026-01-02T03:04:05Z  stale  (no\x1b answer)
2026-01-02T03:04:05Z  fresh
{"event":"stale","at":"2026-01-02T03:04:05Z","reason":"no\\x1b answer"}
{"event":"fresh","at":"2026-01-02T03:04:05Z"}
`
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}

func TestAWatchOfHostsEndsWhenNobodyReads(t *testing.T) {
	t.Parallel()
	label := etcdtest.Office(t)
	register(t, etcdtest.Shared(t).Client(t), label, "a", "")
	s := at(t)
	if code := wait(t, s.startTo(full{syscall.EPIPE}, "hosts", "--watch", "-l", "test="+label)); code != 0 || s.stderr.String() != "" {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
	s = at(t)
	if code := wait(t, s.startTo(full{errors.New("disk full")}, "hosts", "--watch", "-l", "test="+label)); code == 0 {
		t.Error("code 0")
	}
	s = at(t)
	if code := wait(t, s.startTo(full{errors.New("disk full")}, "hosts", "-l", "test="+label)); code == 0 {
		t.Error("code 0")
	}
}

// full is a stdout that takes nothing.
type full struct{ err error }

func (b full) Write([]byte) (int, error) { return 0, b.err }

func TestHostsRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	for args, why := range map[string]string{
		"hosts x":              `hosts takes no argument, got "x"`,
		"hosts -l zone":        `--selector "zone": want key=value`,
		"hosts -l zone=a,b":    "want key=value",
		"hosts --selektor a=b": "did you mean --selector?",
		"hosts -o yaml":        "want table or json",
	} {
		s := newShell("CONCH_ENDPOINTS=" + etcdtest.Untouched(t))
		if code := s.conch(strings.Fields(args)...); code != 64 || !strings.Contains(s.stderr.String(), why) {
			t.Errorf("%s: code %d, stderr %q", args, code, s.stderr.String())
		}
	}
	s := newShell()
	if code := s.conch("hosts", "-l", "a=\x1b[2J"); code != 64 || strings.Contains(s.stderr.String(), "\x1b") {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
}
