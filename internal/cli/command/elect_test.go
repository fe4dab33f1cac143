package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

func TestACommandRunsWhileItsOfficeIsHeld(t *testing.T) {
	t.Parallel()
	s, office := at(t), etcdtest.Office(t)
	dir := t.TempDir()
	out, status := filepath.Join(dir, "out"), filepath.Join(dir, "status")
	code := s.conch("elect", office, "--status-file", status, "--",
		"sh", "-c", `echo "$CONCH_NAME $CONCH_REV $CONCH_LEASE" >"$1"; exit 3`, "sh", out)
	if code != 3 {
		t.Errorf("code %d, want the child's 3; %s", code, s.stderr.String())
	}
	equal(t, s.messages(), []string{"acquired", "child-start", "child-exit", "released"})

	// The child, the status file and the log tell of the same hold.
	raw, err := os.ReadFile(status)
	if err != nil {
		t.Fatal(err)
	}
	var told struct {
		Outcome, Lease string
		Code, Rev      int
	}
	if err := json.Unmarshal(raw, &told); err != nil {
		t.Fatal(err)
	}
	seen, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(seen))
	if len(words) != 3 || words[0] != office || words[2] != told.Lease || told.Outcome != "child-exit" || told.Code != 3 {
		t.Errorf("the child saw %q, the status file says %s", words, raw)
	}
	contains(t, s.stderr.String(), "name="+office, "rev="+words[1], "lease="+told.Lease, "dur=", "code=3")

	// Nothing is left but the note how it ended.
	cli := etcdtest.Shared(t).Client(t)
	queue(t, cli, office, 0)
	lease, err := hold.ParseLease(told.Lease)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := cli.TimeToLive(t.Context(), clientv3.LeaseID(lease)); err != nil || left.TTL != -1 {
		t.Errorf("the lease was not revoked: %v, %v", left, err)
	}
	if open, err := cli.Get(t.Context(), settle(office).Open); err != nil || len(open.Kvs) != 0 {
		t.Errorf("the record is open: %v, %v", open, err)
	}
}

func TestQuietSaysNothingWhenAllGoesWell(t *testing.T) {
	t.Parallel()
	s := at(t)
	if code := s.conch("elect", etcdtest.Office(t), "--quiet", "--", "true"); code != 0 || s.stderr.String() != "" {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
}

func TestTheExecutableMayBeCalledElect(t *testing.T) {
	t.Parallel()
	s := at(t)
	code := Main(t.Context(), cli.Env{
		Name: "/usr/bin/elect", Args: []string{etcdtest.Office(t), "--", "sh", "-c", "exit 7"}, Environ: s.environ,
		Stdout: &s.stdout, Stderr: &s.stderr,
		Signals: func() (<-chan os.Signal, func()) { return s.signals, func() {} },
	})
	if code != 7 {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
}

func TestNonblockDoesNotWait(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--nonblock", "--wait=0"} {
		office := etcdtest.Office(t)
		s := at(t)
		if code := s.conch("elect", office, flag, "--", "true"); code != 0 {
			t.Errorf("%s on a free office: code %d, %s", flag, code, s.stderr.String())
		}
		lead(t, office, hold.Holder{Host: "host\x1b7", PID: 4242, Cmd: "job"}.Encode())
		s = at(t)
		witness := filepath.Join(t.TempDir(), "ran")
		if code := s.conch("elect", office, flag, "--", "touch", witness); code != hold.CodeNotAcquired {
			t.Errorf("%s on a held office: code %d, %s", flag, code, s.stderr.String())
		}
		if strings.Count(s.stderr.String(), "\n") != 1 || strings.Contains(s.stderr.String(), "\x1b") {
			t.Errorf("got %q, want one safe line", s.stderr.String())
		}
		contains(t, s.stderr.String(), office, `host\x1b7 pid 4242 (job)`, "token")
		queue(t, etcdtest.Shared(t).Client(t), office, 1)
		if exists(witness) {
			t.Error("the command ran")
		}
	}
}

func TestAWaitThatRunsOutLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, waits := range []string{"300ms", "1ns"} {
		office := etcdtest.Office(t)
		lead(t, office, "somebody else")
		s := at(t)
		dir := t.TempDir()
		code := s.conch("elect", office, "--wait", waits, "--status-file", filepath.Join(dir, "status"), "--", "touch", filepath.Join(dir, "ran"))
		if code != hold.CodeNotAcquired {
			t.Errorf("code %d, %s", code, s.stderr.String())
		}
		contains(t, s.stderr.String(), "conch: not acquired: "+office, "somebody else")
		queue(t, etcdtest.Shared(t).Client(t), office, 1)
		if exists(filepath.Join(dir, "ran")) {
			t.Error("the command ran")
		}
		raw, _ := os.ReadFile(filepath.Join(dir, "status"))
		contains(t, string(raw), `"outcome":"not-acquired"`, `"code":75`)
	}
}

func TestAFreeOfficeIsWonHoweverShortTheWait(t *testing.T) {
	t.Parallel()
	s := at(t)
	if code := s.conch("elect", etcdtest.Office(t), "--wait", "1ns", "--", "true"); code != 0 {
		t.Errorf("code %d, %s", code, s.stderr.String())
	}
}

func TestAWaiterTakesOverAndSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	el := lead(t, office, hold.Holder{Host: "elsewhere", PID: 7}.Encode())
	s := at(t)
	code := s.start("elect", office, "--", "true")
	queue(t, etcdtest.Shared(t).Client(t), office, 2)
	if err := el.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := wait(t, code); c != 0 {
		t.Errorf("code %d, %s", c, s.stderr.String())
	}
	equal(t, s.messages(), []string{"waiting", "acquired", "child-start", "child-exit", "released"})
	contains(t, s.stderr.String(), "position=1", `holder="elsewhere pid 7"`)
}

func TestASignalEndsAWaiterAndItsPlace(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	lead(t, office, "x")
	cli := etcdtest.Shared(t).Client(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		s := at(t)
		witness := filepath.Join(t.TempDir(), "ran")
		code := s.start("elect", office, "--", "touch", witness)
		queue(t, cli, office, 2)
		s.signals <- sig
		if c := wait(t, code); c != 128+int(sig) {
			t.Errorf("%v: code %d, %s", sig, c, s.stderr.String())
		}
		queue(t, cli, office, 1)
		if exists(witness) {
			t.Error("the command ran")
		}
	}
}

func TestAWaiterThatLosesItsPlaceQueuesAgain(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	for name, take := range map[string]func(t *testing.T, second string, lease int64){
		"lease revoked": func(t *testing.T, _ string, lease int64) {
			if _, err := cli.Revoke(t.Context(), clientv3.LeaseID(lease)); err != nil {
				t.Fatal(err)
			}
		},
		"key deleted": func(t *testing.T, key string, _ int64) {
			if _, err := cli.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			office := etcdtest.Office(t)
			el := lead(t, office, "first")
			s := at(t)
			code := s.start("elect", office, "--", "true")
			second := queue(t, cli, office, 2)[1]
			take(t, second.Key, int64(second.Lease))
			queue(t, cli, office, 1)
			again := queue(t, cli, office, 2)[1]
			if again.Lease == second.Lease {
				t.Error("the second place is on the old session")
			}
			if err := el.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c := wait(t, code); c != 0 {
				t.Errorf("code %d, %s", c, s.stderr.String())
			}
			contains(t, s.stderr.String(), "queueing again")
		})
	}
}

func TestALossEndsTheChildAndIsToldApartFromItsCode(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	cli := etcdtest.Shared(t).Client(t)
	s := at(t)
	dir := t.TempDir()
	status, ended := filepath.Join(dir, "status"), filepath.Join(dir, "ended")
	// The child answers SIGTERM with 0, which does not count: the hold was lost.
	code := s.start("elect", office, "--status-file", status, "--",
		"sh", "-c", `trap 'touch "$1"; exit 0' TERM; while :; do sleep 0.01; done`, "sh", ended)
	mine := queue(t, cli, office, 1)[0]
	if _, err := cli.Delete(t.Context(), mine.Key); err != nil {
		t.Fatal(err)
	}
	if c := wait(t, code); c != hold.CodeLost {
		t.Errorf("code %d, %s", c, s.stderr.String())
	}
	raw, _ := os.ReadFile(status)
	contains(t, string(raw), `"outcome":"lost"`, `"code":70`, "own key deleted")
	contains(t, strings.Join(s.messages(), " "), "lost", "released")
}

func TestAnUncleanEndIsSettledAloud(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	cli := etcdtest.Shared(t).Client(t)
	// A hold of which nothing is left but its record.
	record := `{"lease":"7b","ttl":2,"term_ms":700,"holder":{"host":"gone","pid":9,"started":"2026-01-01T00:00:00Z"},"at":"2026-01-01T00:00:00Z"}`
	if _, err := cli.Put(t.Context(), settle(office).Open, record); err != nil {
		t.Fatal(err)
	}
	s := at(t)
	if code := s.conch("elect", office, "--", "true"); code != 0 {
		t.Errorf("code %d, %s", code, s.stderr.String())
	}
	equal(t, s.messages(), []string{"settling", "acquired", "child-start", "child-exit", "released"})
	contains(t, s.stderr.String(), "gone pid 9", "at_most=", "child is gone")

	// Without settling it starts at once, and says what that risks.
	if _, err := cli.Put(t.Context(), settle(office).Open, record); err != nil {
		t.Fatal(err)
	}
	s = at(t)
	if code := s.conch("elect", office, "--settle", "off", "--quiet", "--", "true"); code != 0 {
		t.Errorf("code %d, %s", code, s.stderr.String())
	}
	contains(t, s.stderr.String(), "level=WARN", "settling is off", "may still run")
}

func TestTheHolderIsOneLineOfJSON(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	for _, noCmd := range []bool{false, true} {
		office := etcdtest.Office(t)
		args := []string{"elect", office}
		if noCmd {
			args = append(args, "--no-cmd")
		}
		s := at(t)
		code := s.start(append(args, "--", "sh", "-c", "while :; do sleep 0.01; done", "a \"quoted\"\nline\xff")...)
		value := queue(t, cli, office, 1)[0].Identity
		s.signals <- syscall.SIGTERM
		if c := wait(t, code); c != 143 {
			t.Errorf("code %d, %s", c, s.stderr.String())
		}
		h, ok := hold.DecodeHolder([]byte(value))
		host, _ := os.Hostname()
		if !ok || h.Host != host || h.PID != os.Getpid() || strings.Contains(value, "\n") {
			t.Errorf("got %q", value)
		}
		if strings.Contains(value, "cmd") == noCmd {
			t.Errorf("--no-cmd=%v: got %q", noCmd, value)
		}
	}
}

func TestUnreachableIsOneLine(t *testing.T) {
	t.Parallel()
	for name, endpoint := range map[string]string{"refused": etcdtest.Refused(t), "black hole": etcdtest.Silent(t), "not gRPC": etcdtest.NotGRPC(t)} {
		for _, args := range [][]string{{"--", "true"}, {"--wait", "200ms", "--", "true"}, {"--who"}} {
			s := newShell("CONCH_ENDPOINTS="+endpoint, "CONCH_DIAL_TIMEOUT=300ms")
			if code := s.conch(append([]string{"elect", "x"}, args...)...); code != hold.CodeUnreachable {
				t.Errorf("%s: code %d", name, code)
			}
			if strings.Count(s.stderr.String(), "\n") != 1 || s.stdout.String() != "" {
				t.Errorf("%s: got %q and %q, want one line", name, s.stderr.String(), s.stdout.String())
			}
			contains(t, s.stderr.String(), endpoint)
		}
	}
}

func TestEtcdThatRefusesIsToldApartFromEtcdThatIsNotThere(t *testing.T) {
	t.Parallel()
	server := etcdtest.One(t)
	cli := server.Client(t)
	s := newShell("CONCH_ENDPOINTS=" + server.Endpoint())

	// Out of space.
	alarm := etcdserverpb.NewMaintenanceClient(cli.ActiveConnection())
	full := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE}
	if _, err := alarm.Alarm(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	if code := s.conch("elect", "x", "--", "true"); code != hold.CodeUnreachable {
		t.Errorf("out of space: code %d", code)
	}
	contains(t, s.stderr.String(), "out of space")
	full.Action = etcdserverpb.AlarmRequest_DEACTIVATE
	if _, err := alarm.Alarm(t.Context(), full); err != nil {
		t.Fatal(err)
	}

	// Users are needed, and we have none.
	ctx := t.Context()
	if _, err := cli.UserAdd(ctx, "root", "secret"); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.UserGrantRole(ctx, "root", "root"); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.AuthEnable(ctx); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--", "true"}, {"--who"}} {
		s := newShell("CONCH_ENDPOINTS=" + server.Endpoint())
		if code := s.conch(append([]string{"elect", "x"}, args...)...); code != hold.CodePermission {
			t.Errorf("%q without a user: code %d, %s", args, code, s.stderr.String())
		}
		if strings.Count(s.stderr.String(), "\n") != 1 {
			t.Errorf("got %q, want one line", s.stderr.String())
		}
	}
}

func TestAStatusFileThatCannotBeWrittenInTheEndIsAWarning(t *testing.T) {
	t.Parallel()
	s, dir := at(t), filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	code := s.conch("elect", etcdtest.Office(t), "--quiet", "--status-file", filepath.Join(dir, "s"), "--", "sh", "-c", `rmdir "$1"; exit 5`, "sh", dir)
	if code != 5 {
		t.Errorf("code %d", code)
	}
	contains(t, s.stderr.String(), "level=WARN", "no status file", dir)
}

func TestTheEndOfTheContextIsASignal(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	s := at(t)
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- Main(ctx, cli.Env{
			Name: "conch", Args: []string{"elect", office, "--", "sh", "-c", "while :; do sleep 0.01; done"}, Environ: s.environ,
			Stdout: &s.stdout, Stderr: &s.stderr,
			Signals: func() (<-chan os.Signal, func()) { return s.signals, func() {} },
		})
	}()
	queue(t, etcdtest.Shared(t).Client(t), office, 1)
	cancel()
	if c := wait(t, code); c != 143 {
		t.Errorf("code %d, %s", c, s.stderr.String())
	}
	queue(t, etcdtest.Shared(t).Client(t), office, 0)
}
