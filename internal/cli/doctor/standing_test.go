package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// key is one that is put, on a lease of 1 to 9 unless that is 0.
type key struct {
	key   string
	value string
	lease clientv3.LeaseID
}

func who(host string) string { return hold.NewHolder(host, 7, time.Time{}, nil).Encode() }

func candidate(name string, lease clientv3.LeaseID) key {
	return key{hold.ElectKey(name, int64(lease)).String(), who(fmt.Sprintf("h%d", lease)), lease}
}

func contender(name string, max int, lease clientv3.LeaseID) key {
	return key{hold.SemaKey(name, max, int64(lease)).String(), who(fmt.Sprintf("h%d", lease)), lease}
}

func slot(name string, max, n int, lease clientv3.LeaseID) key {
	return key{hold.SlotKey(name, max, n).String(), hold.FormatLease(int64(lease)), lease}
}

// record is the open record of the hold of a lease.
func recordOf(k hold.Key, lease int) key {
	return key{k.String(), fmt.Sprintf(`{"lease":"%x","n":1,"ttl":10,"term_ms":3500,"holder":%s,"at":"2026-01-01T00:00:00Z"}`, lease, who(fmt.Sprintf("h%d", lease))), 0}
}

func opened(name string, lease int) key {
	open, _ := hold.OfficeKeys(name)
	return recordOf(open, lease)
}

func openedSlot(name string, max, n, lease int) key {
	open, _ := hold.SlotKeys(name, max, n)
	return recordOf(open, lease)
}

// asked is a request to leave.
func asked(kind, name string, lease clientv3.LeaseID, ago time.Duration) key {
	e := hold.Eviction{Host: "desk", PID: 9, At: time.Now().Add(-ago)}
	return key{hold.EvictKey(kind, name, int64(lease)).String(), e.Encode(), lease}
}

// in is an etcd in memory with these keys, put in that order.
func in(t *testing.T, keys []key) *coordtest.Medium {
	t.Helper()
	m := coordtest.Start(t, coordtest.Options{})
	for lease := range clientv3.LeaseID(9) {
		if _, err := m.Grant(lease+1, 3600); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range keys {
		put(t, m, k.key, k.value, k.lease)
	}
	return m
}

// about are the lines of these checks.
func about(found []Finding, checks ...string) (lines []string) {
	for _, f := range found {
		for _, check := range checks {
			if f.Check == check {
				lines = append(lines, fmt.Sprintf("%s %s %s: %s", f.Level, f.Check, f.Target, f.Text))
			}
		}
	}
	return lines
}

func TestHowThingsStandIsJudged(t *testing.T) {
	t.Parallel()
	_, last := hold.OfficeKeys("o")
	open, _ := hold.OfficeKeys("o")
	for name, tt := range map[string]struct {
		keys []key
		want []string // how each line begins; all there are
	}{
		"all is well": {[]key{
			candidate("o", 1), opened("o", 1), candidate("o", 2), {last.String(), `{"rev":1,"how":"expired"}`, 0},
			contender("s", 2, 3), contender("s", 2, 4), slot("s", 2, 0, 3), openedSlot("s", 2, 0, 3), slot("s", 2, 1, 4), openedSlot("s", 2, 1, 4), contender("s", 2, 5),
			contender("t", 3, 6), slot("t", 3, 2, 6), candidate("foreign", 7),
		}, nil},

		"an office without a word":    {[]key{opened("o", 1)}, []string{"warn unsettled o: the last hold did not say that its child is gone: whoever comes next waits for that, 10s at most; it was that of h1 pid 7"}},
		"and without one to be read":  {[]key{{open.String(), "\x1b", 0}}, []string{"warn unsettled o: the last hold did not say that its child is gone: whoever comes next waits for that, for its own TTL at most; it was that of somebody"}},
		"somebody waits for it":       {[]key{opened("o", 1), candidate("o", 2)}, nil},
		"a slot without a word":       {[]key{openedSlot("s", 2, 1, 1)}, []string{"warn unsettled s slot 1 of 2: the last hold did not say that its child is gone: whoever finds no other slot waits for that, 10s at most, and nobody enters with another max; it was that of h1 pid 7"}},
		"and others go round it":      {[]key{openedSlot("s", 2, 1, 1), contender("s", 2, 2), slot("s", 2, 0, 2), openedSlot("s", 2, 0, 2)}, []string{"warn unsettled s slot 1 of 2"}},
		"somebody waits for the slot": {[]key{openedSlot("s", 1, 0, 1), contender("s", 1, 2)}, nil},
		"the slot is another's":       {[]key{openedSlot("s", 1, 0, 1), contender("s", 1, 2), slot("s", 1, 0, 2)}, nil},
		"many": {[]key{opened("a", 1), opened("b", 1), opened("c", 1), opened("d", 1), openedSlot("s", 9, 3, 1), openedSlot("s", 9, 4, 1), openedSlot("s", 9, 5, 1)},
			[]string{"warn unsettled a", "warn unsettled b", "warn unsettled c", "warn unsettled d", "warn unsettled s slot 3 of 9", "warn unsettled /conch/v1/: 2 more such offices and slots"}},

		"two maxima hold": {[]key{
			contender("s", 2, 1), slot("s", 2, 0, 1), contender("s", 3, 2), slot("s", 3, 0, 2), contender("s", 3, 3), slot("s", 3, 1, 3), contender("s", 3, 4),
		}, []string{"fail max s: max 2 and max 3 are in use at once, and 3 hold: nobody else enters with any of them"}},
		"one waits with another": {[]key{contender("s", 1, 1), slot("s", 1, 0, 1), contender("s", 20, 2)}, []string{"fail max s: max 1 and max 20 are in use at once, and 1 hold: "}},
		"a record of another":    {[]key{contender("s", 2, 1), slot("s", 2, 0, 1), openedSlot("s", 3, 0, 9)}, []string{"fail max s: max 2 and max 3 are in use", "warn unsettled s slot 0 of 3"}},
		"many maxima": {[]key{contender("s", 1, 1), contender("s", 2, 2), contender("s", 3, 3), contender("s", 4, 4), contender("s", 5, 5), contender("s", 6, 6), contender("s", 7, 7)},
			[]string{"fail max s: max 1, max 2, max 3, max 4, max 5 and 2 more are in use at once, and 0 hold"}},

		"a slot without a place": {[]key{slot("s", 2, 1, 1)}, []string{"warn slot s slot 1 of 2: the holder on lease 1 has lost its place in the queue, and has not left yet"}},
		"whose record is known":  {[]key{slot("s", 2, 1, 1), openedSlot("s", 2, 1, 1)}, []string{"warn slot s slot 1 of 2: h1 pid 7 on lease 1 has lost its place in the queue"}},
		"a place under another":  {[]key{slot("s", 2, 1, 1), contender("s", 3, 1)}, []string{"fail max s", "warn slot s slot 1 of 2: the holder on lease 1 has lost its place"}},
		"two slots for one":      {[]key{contender("s", 3, 1), slot("s", 3, 0, 1), slot("s", 3, 2, 1)}, []string{"warn slot s slot 2 of 3: the holder on lease 1 has slot 0 as well: nobody can be in two"}},
		"a place without its slot": {[]key{contender("s", 2, 1), contender("s", 2, 1)},
			[]string{"warn slot s: h1 pid 7 on lease 1 has lost its slot of max 2, and has not left yet"}},
		"more than may": {[]key{contender("s", 1, 1), contender("s", 1, 1), contender("s", 1, 2), slot("s", 1, 0, 2)},
			[]string{"fail holders s: 2 hold, or have not left yet, where max 1 are to", "warn slot s: h1 pid 7 on lease 1 has lost its slot"}},

		"no lease": {[]key{{hold.ElectKey("o", 1).String(), who("x\x1b"), 0}, {hold.SemaKey("s", 2, 1).String(), "foreign", 0}}, []string{
			`warn stale /conch/v1/elect/o/1: of x\x1b pid 7 is on no lease: it never goes by itself, and keeps others out of o until somebody deletes it`,
			"warn stale /conch/v1/sema/s/2/1: of foreign is on no lease",
		}},

		"asked a moment ago": {[]key{candidate("o", 1), opened("o", 1), asked("elect", "o", 1, 20*time.Second)}, nil},
		"asked long ago": {[]key{candidate("o", 1), opened("o", 1), asked("elect", "o", 1, time.Hour)}, []string{
			"warn evict o: h1 pid 7 on lease 1 was asked to leave 1h0m",
		}},
		"a slot asked for": {[]key{contender("s", 2, 1), slot("s", 2, 0, 1), asked("sema", "s", 1, 5*time.Minute)}, []string{
			"warn evict s: h1 pid 7 on lease 1 was asked to leave 5m",
		}},
		"asked by nobody knows who": {[]key{candidate("o", 1), {hold.EvictKey("elect", "o", 1).String(), "\x1b", 1}}, []string{
			"warn evict o: h1 pid 7 on lease 1 was asked to leave nobody knows when, and has not",
		}},
		"asked who is gone": {[]key{candidate("o", 1), asked("elect", "o", 2, 2*time.Minute), asked("sema", "s", 3, 0)}, []string{
			"warn evict /conch/v1/evict/elect/o/2: asks a holder that is gone to leave, 2m",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := about(visited(t, in(t, tt.keys)), "max", "holders", "slot", "stale", "unsettled", "evict")
			ok := len(got) == len(tt.want)
			for i := range min(len(got), len(tt.want)) {
				ok = ok && strings.HasPrefix(got[i], tt.want[i])
			}
			if !ok {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}

	found := visited(t, in(t, []key{candidate("o", 1), asked("elect", "o", 1, time.Hour)}))
	tells(t, found, " ago, and has not: it is busy or frozen, or does not listen; conch evict elect o --force --rev 2 takes away what it holds")
}

// TestWhatIsNotSeenWholeIsNotJudged: a slot whose candidate may not be seen is no slot without a place.
func TestWhatIsNotSeenWholeIsNotJudged(t *testing.T) {
	t.Parallel()
	m := in(t, []key{opened("o", 1), slot("s", 2, 0, 1), openedSlot("s", 2, 1, 2), asked("sema", "s", 1, time.Hour), asked("elect", "o", 2, time.Hour)})
	m.Inject(coordtest.Rule{Method: coordtest.Range, Times: coordtest.Forever, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied), When: func(c *coordtest.Call) bool {
		from := string(c.Request.(*etcdserverpb.RangeRequest).Key)
		return from == hold.Root || from == hold.AreaRange(hold.AreaSema)
	}})
	found := visited(t, m)
	tells(t, found, "note keys /conch/v1/: this user may not list all of it, nor /conch/v1/sema/: what stands there is not judged", "ok keys /conch/v1/: 5 keys seen")
	if got := about(found, "max", "slot", "unsettled", "evict"); len(got) != 2 || !strings.HasPrefix(got[0], "warn unsettled o") || !strings.HasPrefix(got[1], "warn evict /conch/v1/evict/elect/o/2") {
		t.Errorf("%q", got)
	}
}

// TestAListIsOfOneMoment: a hold that begins while keys are listed is not one that did not end.
func TestAListIsOfOneMoment(t *testing.T) {
	t.Parallel()
	m := in(t, nil)
	for i := range scanPage + 1 {
		put(t, m, fmt.Sprintf("/conch/v1/aa/%d", i), "", 0)
	}
	v := &visit{settings: settings("m"), cli: m.Client(t)}
	seen := 0
	rev, cut, err := v.pages(t.Context(), hold.Root, clientv3.GetPrefixRangeEnd(hold.Root), 0, &seen, func(kv *mvccpb.KeyValue) {
		if seen == 1 {
			put(t, m, opened("o", 1).key, "", 0)
		}
	})
	if err != nil || cut || seen != scanPage+1 || rev != m.Rev()-1 {
		t.Errorf("%d keys at %d of %d, %v, %v", seen, rev, m.Rev(), cut, err)
	}
}

// TestAListThatIsCompactedIsBegunAnew, and not for ever.
func TestAListThatIsCompactedIsBegunAnew(t *testing.T) {
	t.Parallel()
	for times, want := range map[int]string{1: "ok keys /conch/v1/: 1 keys seen", listTries: "fail keys /conch/v1/: cannot be listed: "} {
		m := in(t, []key{opened("o", 1)})
		m.Inject(coordtest.Rule{Method: coordtest.Range, Skip: roundTrips, Times: times, Action: coordtest.Refuse(rpctypes.ErrGRPCCompacted)})
		found := visited(t, m)
		tells(t, found, want)
	}
}

func TestTooMuchIsNotJudged(t *testing.T) {
	t.Parallel()
	c := &census{book: view.NewBook(nil, 0), seen: scanMost, cut: true}
	v := &visit{}
	v.tell(c)
	tells(t, v.found, fmt.Sprintf("ok keys /conch/v1/: %d keys seen, and there are more", scanMost), "note keys /conch/v1/: these are too many to say how offices and semaphores stand")
}
