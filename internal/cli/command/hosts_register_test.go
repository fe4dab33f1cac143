package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// hostKey waits until the key of a host is there, or is not, and gives it (nil: not there). but is a lease that it
// must not be on.
func hostKey(t *testing.T, client *clientv3.Client, uuid string, there bool, but int64) *mvccpb.KeyValue {
	t.Helper()
	key := coord.HostsPrefix + uuid
	for {
		got, err := client.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case len(got.Kvs) == 0 && !there:
			return nil
		case len(got.Kvs) == 1 && there && got.Kvs[0].Lease != but:
			return got.Kvs[0]
		}
		<-client.Watch(t.Context(), key, clientv3.WithRev(got.Header.Revision+1))
	}
}

// said waits until a log line with this message stands on stderr.
func (s *shell) said(t *testing.T, message string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if slices.Contains(s.messages(), message) {
			return
		}
		time.Sleep(2 * time.Millisecond) // a buffer tells nobody that it was written to
	}
	t.Fatalf("nothing says %q: %s", message, s.stderr.String())
}

func TestAHostIsRegisteredUntilASignalComes(t *testing.T) {
	t.Parallel()
	client := etcdtest.Shared(t).Client(t)
	uuid := etcdtest.Office(t)
	s := at(t)
	notes := make(chan string, 100)
	code := s.startNotifying(func(state string) { notes <- state }, "hosts", "register",
		"--uuid", uuid, "--label", "rack=r1", "--label", "zone=", "--version", "1.2", "--hostname", "elsewhere")
	kv := hostKey(t, client, uuid, true, 0)
	var m coord.HostMetadata
	if err := json.Unmarshal(kv.Value, &m); err != nil {
		t.Fatal(err)
	}
	if m.HostUUID != uuid || m.Hostname != "elsewhere" || m.Version != "1.2" || fmt.Sprint(m.Labels) != "map[rack:r1 zone:]" || m.StartedAt == 0 {
		t.Errorf("%+v", m)
	}
	ready, beats := false, 0
	for beats == 0 || !ready {
		switch got := <-notes; got {
		case "WATCHDOG=1":
			beats++
		case "READY=1\nSTATUS=registered as " + uuid:
			ready = true
		default:
			t.Error(got)
		}
	}

	// What is lost is put again, with a line for each step.
	if _, err := client.Revoke(t.Context(), clientv3.LeaseID(kv.Lease)); err != nil {
		t.Fatal(err)
	}
	hostKey(t, client, uuid, true, kv.Lease)
	s.said(t, "host registered again")
	for got := ""; got != "STATUS=registered as "+uuid; {
		got = <-notes // between it and the loss there are beats, and the state of the healing
	}
	s.signals <- syscall.SIGUSR1 // means nothing
	s.signals <- syscall.SIGTERM
	if c := wait(t, code); c != 0 {
		t.Errorf("code %d: %s", c, s.stderr.String())
	}
	hostKey(t, client, uuid, false, 0)
	equal(t, s.messages(), []string{"registered", "host lost", "host registered again", "released"})
	var all []string
	for len(notes) > 0 {
		all = append(all, <-notes)
	}
	contains(t, strings.Join(all, "\n"), "STOPPING=1")
}

// startNotifying is start with a service manager that wants to hear from the command.
func (s *shell) startNotifying(notify func(string), args ...string) <-chan int {
	code := make(chan int, 1)
	env := s.env(args...)
	env.Notify, env.Watchdog = notify, 20*time.Millisecond
	go func() { code <- Main(context.Background(), env) }()
	return code
}

func TestAnotherLiveProcessOfAHostIsNamed(t *testing.T) {
	t.Parallel()
	client := etcdtest.Shared(t).Client(t)
	uuid := etcdtest.Office(t)
	h, err := coord.RegisterHostLiveness(t.Context(), client, coord.HostMetadata{HostUUID: uuid, Hostname: "first\x1b[31m"},
		coord.LivenessOptions{LeaseTTLSec: 60, Refresh: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Stop(t.Context()) }()
	for _, argv := range [][]string{nil, {"--", "true"}} {
		s := at(t)
		if code := s.conch(append([]string{"hosts", "register", "--uuid", uuid}, argv...)...); code != hold.CodeNotAcquired {
			t.Errorf("code %d: %s", code, s.stderr.String())
		}
		line := s.stderr.String()[strings.LastIndex(strings.TrimSuffix(s.stderr.String(), "\n"), "\n")+1:]
		contains(t, line, "conch: not acquired", uuid, `first\x1b`, "it is renewed")
	}
	if kv := hostKey(t, client, uuid, true, 0); kv.Lease != int64(h.LeaseID()) {
		t.Error("the other's key was taken")
	}
}

// While the key of a process that was killed is waited for, a signal ends the wait, in both forms.
func TestASignalEndsTheWaitForAFormerKey(t *testing.T) {
	t.Parallel()
	client := etcdtest.Shared(t).Client(t)
	for name, argv := range map[string][]string{"without command": nil, "with command": {"--", "true"}} {
		t.Run(name, func(t *testing.T) {
			uuid := etcdtest.Office(t)
			lease, err := client.Grant(t.Context(), 600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Put(t.Context(), coord.HostsPrefix+uuid, "{}", clientv3.WithLease(lease.ID)); err != nil {
				t.Fatal(err)
			}
			s := at(t)
			code := s.start(append([]string{"hosts", "register", "--uuid", uuid}, argv...)...)
			s.said(t, "waiting for the key of an earlier process to expire")
			s.signals <- syscall.SIGINT
			if c := wait(t, code); c != 130 {
				t.Errorf("code %d: %s", c, s.stderr.String())
			}
			if kv := hostKey(t, client, uuid, true, 0); kv.Lease != int64(lease.ID) {
				t.Error("the key was taken")
			}
		})
	}
}

func TestACommandRunsWhileItsHostIsRegistered(t *testing.T) {
	t.Parallel()
	client := etcdtest.Shared(t).Client(t)
	uuid := etcdtest.Office(t)
	s := at(t)
	out := filepath.Join(t.TempDir(), "out")
	code := s.conch("hosts", "register", "--uuid", uuid, "--", "sh", "-c", `echo "$CONCH_NAME $CONCH_REV $CONCH_LEASE" >"$1"; exit 7`, "sh", out)
	if code != 7 {
		t.Errorf("code %d: %s", code, s.stderr.String())
	}
	raw, _ := os.ReadFile(out)
	if !regexp.MustCompile(`^` + regexp.QuoteMeta(uuid) + ` \d+ [0-9a-f]+\n$`).Match(raw) {
		t.Errorf("the child saw %q", raw)
	}
	equal(t, s.messages(), []string{"acquired", "child-start", "child-exit", "released"})
	hostKey(t, client, uuid, false, 0)
}

// The host is lost: the command is ended, and nothing is put again meanwhile.
func TestALostHostEndsItsCommand(t *testing.T) {
	t.Parallel()
	client := etcdtest.Shared(t).Client(t)
	uuid := etcdtest.Office(t)
	s := at(t)
	dir := t.TempDir()
	status, told := filepath.Join(dir, "status"), filepath.Join(dir, "told")
	code := s.start("hosts", "register", "--uuid", uuid, "--status-file", status, "--",
		"sh", "-c", `trap 'touch "$1"; sleep 0.3; exit 0' TERM; while :; do sleep 0.01; done`, "sh", told)
	s.said(t, "child-start")
	gone, err := client.Delete(t.Context(), coord.HostsPrefix+uuid)
	if err != nil {
		t.Fatal(err)
	}
	if c := wait(t, code); c != hold.CodeLost || !exists(told) {
		t.Errorf("code %d, %s", c, s.stderr.String())
	}
	// Nothing was put between that and the end.
	end := coord.HostsPrefix + uuid + ".end"
	if _, err := client.Put(t.Context(), end, ""); err != nil {
		t.Fatal(err)
	}
	watch := client.Watch(t.Context(), coord.HostsPrefix+uuid, clientv3.WithPrefix(), clientv3.WithRev(gone.Header.Revision+1))
	if got := <-watch; len(got.Events) != 1 || string(got.Events[0].Kv.Key) != end {
		t.Errorf("events %v", got.Events)
	}
	if _, err := client.Delete(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	hostKey(t, client, uuid, false, 0)
	raw, _ := os.ReadFile(status)
	contains(t, string(raw), `"outcome":"lost"`, `"code":70`, "own key deleted")
	contains(t, strings.Join(s.messages(), " "), "lost", "released")
}

func TestARegistrationThatCannotBeIsOneLine(t *testing.T) {
	t.Parallel()
	for name, endpoint := range map[string]string{"refused": etcdtest.Refused(t), "black hole": etcdtest.Silent(t)} {
		for _, argv := range [][]string{nil, {"--", "true"}} {
			s := newShell("CONCH_ENDPOINTS="+endpoint, "CONCH_DIAL_TIMEOUT=300ms")
			if code := s.conch(append([]string{"hosts", "register", "--uuid", "h"}, argv...)...); code != hold.CodeUnreachable {
				t.Errorf("%s: code %d", name, code)
			}
			if strings.Count(s.stderr.String(), "\n") != 1 || s.stdout.String() != "" {
				t.Errorf("%s: got %q and %q, want one line", name, s.stderr.String(), s.stdout.String())
			}
		}
	}
	s := newShell("CONCH_ENDPOINTS=" + etcdtest.Untouched(t))
	if code := s.conch("hosts", "register", "--uuid", "h", "--", "no-such-command"); code != hold.CodeNotFound {
		t.Errorf("code %d", code)
	}
	// A signal while nobody answers.
	s = newShell("CONCH_ENDPOINTS="+etcdtest.Silent(t), "CONCH_DIAL_TIMEOUT=60s")
	s.signals <- syscall.SIGTERM
	if code := wait(t, s.start("hosts", "register", "--uuid", "h")); code != 143 {
		t.Errorf("code %d: %s", code, s.stderr.String())
	}
}

func TestPermissionsOfARegistrationAreNamed(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	key := coord.HostsPrefix + "h1"
	addUser(t, root, "host", grants{key: readWrite})
	addUser(t, root, "looker", grants{key: readOnly})
	s := as(server, "host")
	if code := s.conch("hosts", "register", "--uuid", "h1", "--", "true"); code != 0 {
		t.Errorf("code %d: %s", code, s.stderr.String())
	}
	for _, argv := range [][]string{nil, {"--", "true"}} {
		s = as(server, "looker")
		if code := s.conch(append([]string{"hosts", "register", "--uuid", "h1"}, argv...)...); code != hold.CodePermission {
			t.Errorf("code %d", code)
		}
		contains(t, s.stderr.String(), `user "looker" may not write `+key)
	}
}

// A host that etcd does not let go of is left to its TTL, with a line that says so.
func TestAHostThatCannotBeTakenBackIsLeftToItsTTL(t *testing.T) {
	t.Parallel()
	server := etcdtest.Cluster(t, 1)
	client := server.Client(t)
	s := newShell("CONCH_ENDPOINTS=" + server.Endpoint(0))
	code := s.start("hosts", "register", "--uuid", "h1")
	hostKey(t, client, "h1", true, 0)
	s.said(t, "registered")
	server.Stop(0)
	s.signals <- syscall.SIGTERM
	if c := wait(t, code); c != 0 {
		t.Errorf("code %d: %s", c, s.stderr.String())
	}
	contains(t, s.stderr.String(), "left to its ttl")
	server.Cont(0)
}

func TestTheUUIDOfAMachine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "machine-id")
	// As systemd-id128 makes it, of this id and appID.
	if err := os.WriteFile(file, []byte("3d1219c7c4c5404aaa1f6d2a48adfda4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := machineUUID(file); err != nil || got != "3f2c841f-b478-417c-93c7-48e90f4a1715" {
		t.Error(got, err)
	}
	for _, bad := range []string{"", "uninitialized\n", "3d12"} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := machineUUID(file); hold.ExitCode(err) != hold.CodeUsage || !strings.Contains(err.Error(), "--uuid is missing") {
			t.Error(err)
		}
	}
	if _, err := machineUUID(file + ".not"); hold.ExitCode(err) != hold.CodeUsage || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}

	// The variable goes before it.
	for environ, want := range map[string]string{"": "--uuid is missing", "CONCH_HOST_UUID=h7": ""} {
		c := &call{env: cli.Env{Environ: []string{environ}}, machineFile: file, began: time.Now()}
		f, cmd := &registerFlags{}, &cobra.Command{}
		f.declare(cmd)
		m, _, err := f.check(cmd, c, nil)
		if want == "" && (err != nil || m.HostUUID != "h7" || m.Hostname == "") || want != "" && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: %+v, %v", environ, m, err)
		}
	}
}
