package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/hold"
)

// yard is an etcd in memory with nodes and jobs.
type yard struct {
	*coordtest.Medium
	t     *testing.T
	lease clientv3.LeaseID
}

func newYard(t *testing.T) *yard {
	m := coordtest.Start(t, coordtest.Options{})
	granted, err := m.Client(t).Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	return &yard{m, t, granted.ID}
}

func (y *yard) node(host string, labels map[string]string, c record.Card) {
	y.t.Helper()
	c.Host = host
	if c.Zones == "" {
		c.Zones = schedule.Version()
	}
	if c.Clock == 0 {
		c.Clock = time.Now().UnixMilli()
	}
	put(y.t, y.Medium, record.Nodes+host, record.Encode(coord.HostMetadata{HostUUID: host, Labels: labels}), y.lease)
	put(y.t, y.Medium, record.Cards+host, record.Encode(c), y.lease)
}

func (y *yard) job(name, spec string) {
	y.t.Helper()
	put(y.t, y.Medium, record.JobKey(name), spec, 0)
}

// troubles are the findings of the checks that look at distributed cron, but for the summary.
func troubles(found []Finding) (all []Finding) {
	for _, f := range found {
		if strings.HasPrefix(f.Target, record.Root) && f.Level != OK || !strings.HasPrefix(f.Target, "/") &&
			strings.Contains("tzdata clock node job paused unsettled request", f.Check) {
			all = append(all, f)
		}
	}
	return all
}

func TestNobodyWhoUsesNoCronHearsOfIt(t *testing.T) {
	t.Parallel()
	for _, f := range visited(t, coordtest.Start(t, coordtest.Options{})) {
		if f.Check == "cron" || strings.Contains(f.Target, record.Root) {
			t.Errorf("%+v", f)
		}
	}
}

func TestSoundNodesAndJobs(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.node("n1", map[string]string{"zone": "a"}, record.Card{User: "app"})
	// A card that is ten seconds old says nothing against a clock.
	y.node("n2", nil, record.Card{User: "app", Users: []string{"www"}, Clock: time.Now().Add(-10 * time.Second).UnixMilli()})
	y.job("a", `{"schedule":"@hourly","cmd":["true"],"select":{"zone":"a"},"user":"app"}`)
	y.job("b", `{"schedule":"@hourly","cmd":["true"],"user":"www"}`)
	id := record.ID{Tick: 1805007600}
	open := record.Encode(record.Open{Host: "n1", TTL: 10_000, At: 1})
	put(t, y.Medium, record.OpenKey("a", id), open, 0)
	put(t, y.Medium, record.Key(record.Runs, "a", id), open, y.lease)
	put(t, y.Medium, record.Key(record.Kills, "a", id), "{}", y.lease)
	put(t, y.Medium, record.OpenKey("b", id), record.Encode(record.Open{Host: "n1", TTL: 10_000, At: time.Now().UnixMilli()}), 0)
	put(t, y.Medium, record.Key(record.Wants, "b", record.ID{Tick: 1, N: 1}), "{}", 0)
	put(t, y.Medium, record.Pause, `{"by":"ann","resumed_ms":5}`, 0)
	for _, area := range []string{record.Fires, record.Results} {
		put(t, y.Medium, record.Key(area, "a", id), "", 0)
	}
	put(t, y.Medium, record.CursorKey("a", ""), "", 0)
	found := visited(t, y.Medium)
	tells(t, found, "ok cron /conch/v1/cron/: 2 jobs, 2 nodes, 2 runs\n", "ok keys /conch/v1/: 0 keys seen")
	if all := troubles(found); len(all) != 0 {
		t.Errorf("found %s", told(all))
	}
}

// Each trouble is told with its level.
func TestTroublesOfNodes(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	now := time.Now()
	y.node("first", nil, record.Card{})
	y.node("old-zones", nil, record.Card{Zones: "2020a\x1b"})
	y.node("ahead", nil, record.Card{Clock: now.Add(time.Hour).UnixMilli()})
	y.node("bit-ahead", nil, record.Card{Clock: now.Add(4 * time.Second).UnixMilli()})
	y.node("behind", nil, record.Card{Clock: now.Add(-time.Minute).UnixMilli()})
	y.node("unfit", nil, record.Card{Unfit: "clock is off by \x1b7s"})
	y.node("drained", nil, record.Card{})
	put(t, y.Medium, record.Drains+"drained", `{"by":"ann","why":"disk","at_ms":1767225600000,"until_ms":1767229200000}`, 0)
	put(t, y.Medium, record.Drains+"away", `{}`, 0)
	put(t, y.Medium, record.Cards+"ghost", record.Encode(record.Card{Host: "ghost"}), y.lease)
	put(t, y.Medium, record.Nodes+"mute", "{}", y.lease)
	put(t, y.Medium, record.Nodes+"garbled", "{}", y.lease)
	put(t, y.Medium, record.Cards+"garbled", "nonsense", y.lease)
	put(t, y.Medium, record.Nodes+"forever", "{}", 0)
	found := visited(t, y.Medium)
	tells(t, found,
		`fail tzdata /conch/v1/cron/node/: old-zones: time zones 2020a\x1b, so they leave jobs with a time zone to the others`,
		"fail tzdata /conch/v1/cron/node/: ahead, behind, bit-ahead, drained, first and 1 more: time zones "+schedule.Version()+", which counts",
		"fail clock ahead: its clock is 59m5", "or more ahead of this machine's: one of the two is wrong, and ticks are missed",
		"warn clock bit-ahead: its clock is ", "fail clock behind: its clock is 4", "or more behind this machine's",
		`warn node unfit: claims nothing: clock is off by \x1b7s`,
		"note node drained: is drained by ann since 2026-01-01T00:00:00Z until 2026-01-01T01:00:00Z: disk\n", "note node away: is drained, and is not registered",
		"warn node ghost: has a card and no registration", "warn node mute: is registered, and has not said how it is", "warn node garbled: its card cannot be read",
		"warn node forever: its registration or its card is on no lease")
	if strings.Contains(told(found), "\x1b") {
		t.Errorf("%q", told(found))
	}
	for _, f := range troubles(found) {
		if f.Target == "first" {
			t.Errorf("%+v", f)
		}
	}
}

func TestClocksAreJudgedByCards(t *testing.T) {
	t.Parallel()
	for off, want := range map[time.Duration]string{
		0: "", time.Second: "", 1100 * time.Millisecond: "warn", 5 * time.Second: "warn", 5100 * time.Millisecond: "fail",
		-cardAge: "", -12 * time.Second: "", -12100 * time.Millisecond: "warn", -16 * time.Second: "warn", -16100 * time.Millisecond: "fail",
	} {
		slow, wrong := pile{}, pile{}
		clock("n", off, &slow, &wrong)
		got := map[[2]int]string{{0, 0}: "", {1, 0}: "warn", {0, 1}: "fail"}[[2]int{len(slow.found), len(wrong.found)}]
		if got != want {
			t.Errorf("%v: %q, want %q", off, got, want)
		}
	}
}

func TestTroublesOfJobs(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.job("alone", `{"schedule":"@hourly","cmd":["true"]}`)
	tells(t, visited(t, y.Medium), "warn node /conch/v1/cron/node/: no node is registered: nothing is run")
	y.node("n1", map[string]string{"zone": "a"}, record.Card{User: "app"})
	y.node("n2", nil, record.Card{User: "root", Users: []string{"*"}})
	y.job("typo", "{\"shedule\":\"\x1b\",\"cmd\":[\"true\"]}")
	y.job("nowhere", `{"schedule":"@hourly","cmd":["true"],"select":{"zone":"b"}}`)
	y.job("nobody", `{"schedule":"@hourly","cmd":["true"],"select":{"zone":"a"},"user":"www"}`)
	y.job("paused", `{"schedule":"@hourly","cmd":["true"],"select":{"zone":"b"},"paused":{"by":"ann","at":"2026-01-01T00:00:00Z"}}`)
	y.job("was-paused", `{"schedule":"@hourly","cmd":["true"],"paused":{"by":"ann","at":"2026-01-01T00:00:00Z","until":"2026-01-01T00:00:01Z"}}`)
	y.job("ahead", `{"schedule":"@hourly","cmd":["true"]}`)
	put(t, y.Medium, record.CursorKey("ahead", ""), `{"tick":4102444800}`, 0)
	put(t, y.Medium, record.CursorKey("was-paused", ""), record.Encode(record.Cursor{Tick: time.Now().Unix()}), 0)
	put(t, y.Medium, record.CursorKey("gone", ""), `{"tick":4102444800}`, 0)
	put(t, y.Medium, record.Pause, `{"by":"bob","why":"upgrade"}`, 0)
	found := visited(t, y.Medium)
	tells(t, found, "fail job typo: cannot be read, and is not run: ", "schedule",
		"warn job nowhere: selects no node that is registered", "warn job nobody: no node that it selects runs jobs as www",
		"fail job ahead: starts nothing before 2100-01-01T00:00:00Z: ", "delete the key /conch/v1/cron/cursor/ahead",
		"note paused paused: is paused by ann since 2026-01-01T00:00:00Z\n", "note paused /conch/v1/cron/state/pause: nothing is claimed in the whole cluster: paused by bob: upgrade")
	if all := troubles(found); len(all) != 6 {
		t.Errorf("found %s", told(all))
	}
}

func TestTroublesOfRuns(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.job("a", `{"schedule":"@hourly","cmd":["true"]}`)
	id := func(n int) record.ID { return record.ID{Tick: 1805007600, N: n} }
	put(t, y.Medium, record.OpenKey("a", id(0)), record.Encode(record.Open{Host: "n1", TTL: 10_000, At: 1}), 0)
	tells(t, visited(t, y.Medium), "warn unsettled a/1805007600: its run marker is gone, and no node is there to say how it ended")
	y.node("n1", nil, record.Card{})
	put(t, y.Medium, record.Key(record.Runs, "a", id(1)), "{}", y.lease)
	put(t, y.Medium, record.Key(record.Wants, "gone", id(2)), "{}", 0)
	put(t, y.Medium, record.Key(record.Wants, "a", id(3)), `{"until_ms":1767225600000}`, 0)
	put(t, y.Medium, record.Key(record.Wants, "a", id(4)), fmt.Sprintf(`{"until_ms":%d}`, time.Now().UnixMilli()), 0)
	put(t, y.Medium, record.Key(record.Kills, "a", id(5)), "{}", 0)
	for _, key := range []string{
		record.Root + "x", record.Runs + "a/b", record.Jobs + "a/b", record.Nodes + "\x1b", record.State + "unknown/a", record.Root + "fires/a", "/conch/v1/cron",
	} {
		put(t, y.Medium, key, "", 0)
	}
	found := visited(t, y.Medium)
	tells(t, found,
		"warn unsettled a/1805007600: its run marker is gone, and nobody has said yet how it ended on n1: a node does, 10s at most after it saw that",
		"warn unsettled a/1805007600.1: has a run marker and no open record", "warn request gone/1805007600.2: asks for a start of a job that is gone",
		"warn request a/1805007600.3: asks for a start until 2026-01-01T00:00:00Z", "warn request a/1805007600.5: asks for the end of a start that is over",
		"warn cron /conch/v1/cron/: 1 more such keys", "warn keys /conch/v1/cron: is no key of ours")
	for _, key := range []string{"/conch/v1/cron/run/a/b", "/conch/v1/cron/job/a/b", `/conch/v1/cron/node/\x1b`, "/conch/v1/cron/state/unknown/a"} {
		tells(t, found, "warn cron "+key+": is no key of ours")
	}
	if got := len(troubles(found)); got != 5+6 {
		t.Errorf("%d findings: %s", got, told(troubles(found)))
	}
}

func TestWhoMayNotLookAtJobsIsToldSo(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"note cron /conch/v1/cron/: this user may not look at jobs": rpctypes.ErrGRPCPermissionDenied,
		"fail cron /conch/v1/cron/: cannot be listed":               rpctypes.ErrGRPCCorrupt,
	} {
		m := coordtest.Start(t, coordtest.Options{})
		m.Inject(coordtest.Rule{Method: coordtest.Range, Times: coordtest.Forever, Action: coordtest.Refuse(err)})
		v := &visit{cli: m.Client(t), settings: settings("m")}
		v.cron(t.Context())
		tells(t, v.found, want)
	}
}

// What is kept of runs is not read: a census of a cluster with long histories is as fast as one without, and judges what is held.
func TestHistoriesAreNotListed(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	client := y.Client(t)
	value := strings.Repeat("x", 1000)
	for i := range 20 {
		var ops []clientv3.Op
		for k := range 50 {
			id := record.ID{Tick: int64(i*100 + k)}
			ops = append(ops, clientv3.OpPut(record.Key(record.Results, "a", id), value), clientv3.OpPut(record.Key(record.Fires, "a", id), value))
		}
		if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	put(t, y.Medium, hold.ElectKey("o", int64(y.lease)).String(), "", y.lease)
	y.job("a", `{"schedule":"@hourly","cmd":["true"]}`)
	v := &visit{cli: client, settings: settings("m")}
	held, err := v.census(t.Context())
	if err != nil || held.seen != 1 {
		t.Errorf("%d keys of holds are listed, want 1; %v", held.seen, err)
	}
	c, err := v.crew(t.Context())
	if err != nil || c.seen != 1 {
		t.Errorf("%d keys of jobs are listed, want 1; %v", c.seen, err)
	}
}
