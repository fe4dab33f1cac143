package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

var planned = Plan{TTL: 10 * time.Second, KillAfter: 5 * time.Second, Margin: 500 * time.Millisecond}

func settings(endpoints ...string) cli.Settings {
	return cli.Settings{Endpoints: endpoints, DialTimeout: 5 * time.Second}
}

// into lets a visit reach etcds in memory, by the name of the endpoint; others are reached as they are.
func into(t *testing.T, media map[string]*coordtest.Medium) dial {
	return func(s cli.Settings) (*clientv3.Client, error) {
		if m := media[s.Endpoints[0]]; m != nil {
			return m.Client(t), nil
		}
		return s.Client()
	}
}

// told is what was found, a line each.
func told(found []Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s %s %s: %s\n", f.Level, f.Check, f.Target, f.Text)
	}
	return b.String()
}

func tells(t *testing.T, found []Finding, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(told(found), w) {
			t.Errorf("no %q in\n%s", w, told(found))
		}
	}
}

// worst is the gravest level of one check.
func worst(found []Finding, check string) Level {
	grave := map[Level]int{OK: 1, Note: 2, Warn: 3, Fail: 4}
	var level Level
	for _, f := range found {
		if f.Check == check && grave[f.Level] > grave[level] {
			level = f.Level
		}
	}
	return level
}

func put(t *testing.T, m *coordtest.Medium, key, value string, lease clientv3.LeaseID) {
	t.Helper()
	if _, err := m.Put(key, value, lease); err != nil {
		t.Fatal(err)
	}
}

// visited is what is found in an etcd in memory.
func visited(t *testing.T, m *coordtest.Medium) []Finding {
	t.Helper()
	found, err := visitBy(t.Context(), into(t, map[string]*coordtest.Medium{"m": m}), settings("m"), planned)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestASoundEtcd(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Cluster(t, 1)
	client := etcd.Client(t)
	before, err := client.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	found, err := Visit(t.Context(), settings(etcd.Endpoints()...), planned)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Level != OK && f.Check != "round-trip" && f.Check != "silence" { // a busy machine may be slow
			t.Errorf("%+v", f)
		}
	}
	tells(t, found,
		"ok endpoint "+etcd.Endpoint(0)+": etcd 3.", ", leader, answered in ",
		"round-trip : a linearizable read takes ",
		"ok lease : granted 10s; the shortest that it grants is ",
		"ok arithmetic : ttl 10s: renewed every 1s; etcd may be silent for 2.5s; SIGTERM 3.5s after the last renewal, SIGKILL after 8.5s",
		"silence : etcd may be silent for 2.5s",
		"ok alarms : none", "ok permission /conch/v1/elect/: may", "ok permission /conch/v1/open/elect/: may", "ok permission /conch/v1/last/elect/: may",
		"ok permission /conch/v1/evict/elect/: may read and write", "ok permission /conch/v1/sema/: may read and write", "ok permission /conch/v1/slot/: may read and write",
		"ok permission /conch/v1/open/sema/: may", "ok permission /conch/v1/last/sema/: may", "ok permission /conch/v1/evict/sema/: may",
		"ok permission /conch/v1/spread/: may", "ok permission /coord/hosts/: may read and write",
		"ok keys /conch/v1/: 0 keys seen", "ok hosts /coord/hosts/: 0 registered",
	)

	// It has changed nothing, and left no lease.
	after, err := client.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil || after.Header.Revision != before.Header.Revision {
		t.Errorf("revision %d, before %d; %v", after.Header.Revision, before.Header.Revision, err)
	}
	if leases, err := client.Leases(t.Context()); err != nil || len(leases.Leases) != 0 {
		t.Errorf("leases %v, %v", leases, err)
	}
}

func TestOddKeys(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	for _, key := range []string{
		"/conch/v1/elect/a/b/c", "/conch/v1/last/elect/a/b", "/conch/v1/\x1b[31mred", "/conch/v1/1", "/conch/v1/2", "/conch/v1/3", "/elsewhere",
	} {
		put(t, m, key, "", 0)
	}
	found := visited(t, m)
	tells(t, found, "ok keys /conch/v1/: 6 keys seen", "warn keys /conch/v1/1: is no key of ours, and in the way of none",
		"warn keys /conch/v1/elect/a/b/c: is no key of ours, and lies among those of a: it may keep others out of that", "warn keys /conch/v1/: 1 more such keys")
	if text := told(found); strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	for key, want := range map[string]string{
		"/conch/v1/sema/up/x/1": "among those of up:", "/conch/v1/slot/up/2/5": "among those of up:", "/conch/v1/open/sema/up/2": "among those of up:",
		"/conch/v1/elect/a/zz": "among those of a:", "/conch/v1/spread/up/h/zz": "among those of up:",
		"/conch/v1/spread/": "way of none", "/conch/v1/sema/\x1b/2/1": "way of none", "/conch/v1/last/sema/up/2/1/1": "way of none", "/conch/v1/evict/elect/a/zz": "way of none",
	} {
		if got := inTheWay(key); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %q", key, got, want)
		}
	}
}

// Each trouble is told by the check that is about it, and the others go on.
func TestTroubles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		trouble func(m *coordtest.Medium)
		check   string
		level   Level
		text    string
	}{
		"no quorum": {func(m *coordtest.Medium) { m.NoQuorum(true) }, "round-trip", Fail, "a linearizable read failed"},
		"full":      {func(m *coordtest.Medium) { m.NoSpace(true) }, "endpoint", Fail, "it says of itself"},
		"no lease": {func(m *coordtest.Medium) {
			m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: coordtest.Refuse(rpctypes.ErrGRPCNoSpace)})
		}, "lease", Fail, "out of space"},
		"no short lease": {func(m *coordtest.Medium) {
			m.Inject(coordtest.Rule{Method: coordtest.Grant, Skip: 1, Action: coordtest.Refuse(rpctypes.ErrGRPCNoSpace)})
		}, "lease", Fail, "out of space"},
		"no right to read": {func(m *coordtest.Medium) {
			m.Inject(coordtest.Rule{Method: coordtest.Range, Times: coordtest.Forever, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
		}, "keys", Note, "may not list all of it, nor /conch/v1/elect/, /conch/v1/open/elect/, /conch/v1/evict/elect/, /conch/v1/sema/"},
		"no reads": {func(m *coordtest.Medium) {
			m.Inject(coordtest.Rule{Method: coordtest.Range, Action: coordtest.Refuse(rpctypes.ErrGRPCCorrupt)})
		}, "round-trip", Fail, "failed"},
		"no listing": {func(m *coordtest.Medium) {
			m.Inject(coordtest.Rule{Method: coordtest.Range, Skip: roundTrips, Action: coordtest.Refuse(rpctypes.ErrGRPCCorrupt)})
		}, "keys", Fail, "cannot be listed"},
		"no right to write": {func(m *coordtest.Medium) {
			m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: coordtest.Forever, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
		}, "permission", Fail, "may neither read nor write; conch elect has to read and write"},
		"no transactions": {func(m *coordtest.Medium) {
			m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: coordtest.Forever, Action: coordtest.Refuse(rpctypes.ErrGRPCCorrupt)})
		}, "permission", Fail, "cannot be found out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := coordtest.Start(t, coordtest.Options{})
			tt.trouble(m)
			s := settings("m")
			s.DialTimeout = 300 * time.Millisecond
			found, err := visitBy(t.Context(), into(t, map[string]*coordtest.Medium{"m": m}), s, planned)
			if err != nil {
				t.Fatal(err)
			}
			if got := worst(found, tt.check); got != tt.level {
				t.Errorf("%s is %s, want %s", tt.check, got, tt.level)
			}
			tells(t, found, tt.text)
		})
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	one, other := coordtest.Start(t, coordtest.Options{}), coordtest.Start(t, coordtest.Options{})
	other.SetClusterID(77)
	dead := etcdtest.Refused(t)
	s := settings("one", dead, "other")
	s.DialTimeout = time.Second
	found, err := visitBy(t.Context(), into(t, map[string]*coordtest.Medium{"one": one, "other": other}), s, planned)
	if err != nil {
		t.Fatal(err)
	}
	tells(t, found, "fail endpoint "+dead+": etcd unreachable", "fail cluster : the endpoints belong to 2 different clusters")

	s.Endpoints = []string{dead}
	found, err = Visit(t.Context(), s, planned)
	if !errors.Is(err, hold.ErrUnreachable) || len(found) != 1 || found[0].Level != Fail {
		t.Errorf("%v, %v", found, err)
	}
}

// A member that has lost its cluster says so itself, at the latest when its election timeout is over.
func TestAMemberWithoutALeader(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Cluster(t, 3)
	etcd.Kill(1, 2)
	s := settings(etcd.Endpoint(0)) // with time: that there is no answer at all is another failure
	for {
		v := &visit{dial: cli.Settings.Client, settings: s}
		if v.endpoints(t.Context()); worst(v.found, "endpoint") == Fail {
			tells(t, v.found, "knows no leader")
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(told(v.found))
		}
	}
}

func TestVersionsAndQuota(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"3.7.3": "", "3.6.11": "", "3.6.10": "3.6.11", "3.5.30": "", "3.5.29": "3.5.30", "3.4.44": "", "3.4.43": "3.4.44",
		"3.3.27": "no updates", "4.0.0": "", "what": "no version",
	} {
		v := &visit{}
		v.version("e", version)
		if (len(v.found) > 0) != (want != "") || !strings.Contains(told(v.found), want) {
			t.Errorf("%s: %v, want %q", version, v.found, want)
		}
	}
	for used, want := range map[int64]Level{0: OK, 79: OK, 80: Warn} {
		v := &visit{}
		s := &clientv3.StatusResponse{DbSize: used << 20, DbSizeQuota: 100 << 20}
		v.quota("e", s)
		if got := worst(v.found, "quota"); got != want {
			t.Errorf("%d %%: %s, want %s", used, got, want)
		}
		s.DbSizeQuota = 0 // before etcd 3.6 it is not told
		v.found = nil
		if v.quota("e", s); len(v.found) > 0 {
			t.Errorf("%v", v.found)
		}
	}
}

func TestTheArithmeticIsJudged(t *testing.T) {
	t.Parallel()
	v := &visit{plan: Plan{TTL: 2 * time.Second, KillAfter: 5 * time.Second, Margin: 500 * time.Millisecond}, floor: 2 * time.Second}
	v.arithmetic(context.Background())
	tells(t, v.found, "warn arithmetic : on a loss a child gets 600ms, not the 5s", "--ttl 10s would fit", "warn silence : etcd may be silent for 500ms, and elects a leader in about 1s")
}

func TestShort(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"1m": time.Minute, "1.23s": 1234 * time.Millisecond, "1.2ms": 1234 * time.Microsecond, "1µs": 1234, "1h0m": time.Hour,
	} {
		if got := short(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
