package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/cron/record"
)

// desk is a store on an etcd in memory, with a job and a session.
type desk struct {
	*testing.T
	*Store
	m     *coordtest.Medium
	cli   *clientv3.Client
	lease clientv3.LeaseID
	clock time.Duration
	rev   int64 // of the job
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	t.Parallel()
	d := &desk{T: t, m: coordtest.Start(t, coordtest.Options{})}
	d.cli = d.m.Client(t)
	d.Store = New(d.cli, func() time.Duration { return d.clock })
	var err error
	d.lease, err = d.m.Grant(0, 3600)
	d.must(err)
	d.rev, err = d.m.Put(record.JobKey("j"), "{}", 0)
	d.must(err)
	return d
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) ground() Ground {
	return Ground{Job: "j", SpecRev: d.rev, Keep: time.Hour, Retain: 72 * time.Hour}
}

// start is the claim of a tick.
func (d *desk) start(tick int64, change ...func(*Start)) Start {
	s := Start{
		Ground: d.ground(), ID: record.ID{Tick: tick}, Fire: record.Fire{Nonce: fmt.Sprint(tick), Decision: record.DecideRun},
		Open: record.Open{Host: "a"}, Host: "a", Lease: d.lease, Alone: true,
	}
	s.Cursor = &record.Cursor{Tick: tick, Host: "a"}
	for _, f := range change {
		f(&s)
	}
	return s
}

// claim claims, and says what is there then.
func (d *desk) claim(s Start) (int64, bool) {
	d.Helper()
	rev, won, err := d.Claim(d.Context(), s)
	d.must(err)
	return rev, won
}

// Everything that a claim rests on stops it when it has changed, each by itself.
func TestAClaimComparesAllThatItRestsOn(t *testing.T) {
	put := func(key string) func(*desk, *Start) {
		return func(d *desk, _ *Start) {
			_, err := d.m.Put(key, "x", 0)
			d.must(err)
		}
	}
	for name, before := range map[string]func(*desk, *Start){
		"claimed by another one": put(record.Key(record.Fires, "j", record.ID{Tick: 10})),
		"job edited":             put(record.JobKey("j")),
		"job removed":            func(d *desk, _ *Start) { d.m.Delete(record.JobKey("j")) },
		"cluster paused":         put(record.Pause),
		"node drained":           put(record.Drains + "a"),
		"cursor moved":           put(record.CursorKey("j", "")),
		"one is open":            put(record.OpenKey("j", record.ID{Tick: 5})),
		"request withdrawn":      func(_ *desk, s *Start) { s.Want, s.WantRev = record.ID{Tick: 10, N: 1}, 3 },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			s := d.start(10)
			before(d, &s)
			keys := d.m.Keys(record.Root)
			if _, won := d.claim(s); won {
				t.Error("claimed")
			}
			if got := d.m.Keys(record.Root); fmt.Sprint(got) != fmt.Sprint(keys) {
				t.Errorf("written: %q", got)
			}
		})
	}
}

func TestAClaimPutsAllAtOnce(t *testing.T) {
	d := newDesk(t)
	for _, key := range []string{record.Drains + "b", record.OpenKey("jj", record.ID{Tick: 5}), record.OpenKey("j", record.ID{Tick: 5, Host: "b"})} {
		_, err := d.m.Put(key, "x", 0) // of another node, another job, another host: none of its business
		d.must(err)
	}
	rev, won := d.claim(d.start(10))
	if !won || rev != d.m.Rev() {
		t.Errorf("revision %d, won %v", rev, won)
	}
	id := record.ID{Tick: 10}
	for key, lease := range map[string]bool{
		record.Key(record.Fires, "j", id): false, record.Key(record.Runs, "j", id): true, record.OpenKey("j", id): false, record.CursorKey("j", ""): false,
	} {
		kv := d.m.Get(key)
		if kv == nil || kv.ModRevision != rev || (clientv3.LeaseID(kv.Lease) == d.lease) != lease {
			t.Errorf("%s: %v", key, kv)
		}
	}
	if kv := d.m.Get(record.OpenKey("j", id)); kv.Lease != 0 {
		t.Error("what is open goes by itself")
	}
	if fire, at, err := d.Fired(t.Context(), "j", id); err != nil || at != rev || fire.Nonce != "10" {
		t.Errorf("%+v %d %v", fire, at, err)
	}
	if _, at, err := d.Fired(t.Context(), "j", record.ID{Tick: 11}); err != nil || at != 0 {
		t.Errorf("%d %v", at, err)
	}
	// Another one side by side, if the job allows it.
	if _, won := d.claim(d.start(20, func(s *Start) { s.Alone, s.CursorRev = false, rev })); !won {
		t.Error("not claimed")
	}
}

func TestAVerdict(t *testing.T) {
	d := newDesk(t)
	rev, _ := d.claim(d.start(10))
	id := record.ID{Tick: 20}
	v := Verdict{Ground: d.ground(), ID: id, Fire: record.Fire{Decision: record.DecideSkip}, Behind: record.ID{Tick: 10}, BehindRev: rev}
	v.Cursor, v.CursorRev = &record.Cursor{Tick: 20}, rev
	v.Result = &record.Result{RunID: "j/20", Status: record.Skipped}
	v.Ask, v.Kill = &record.Want{Kind: record.Replace}, &record.Kill{By: "a"}
	v.Superseded = &record.Result{RunID: "j/10.1", Status: record.Skipped}
	decided, won, err := d.Decide(t.Context(), &v)
	if err != nil || !won {
		t.Fatal(won, err)
	}
	for _, key := range []string{
		record.Results + "j/20", record.Results + "j/10.1", record.Key(record.Wants, "j", record.ID{Tick: 20, N: 1}), record.Key(record.Kills, "j", record.ID{Tick: 10}),
	} {
		if d.m.Get(key) == nil {
			t.Errorf("%s is not there; keys %q", key, d.m.Keys(record.Root))
		}
	}
	// What was in the way has gone: then it is no reason any more.
	v.ID, v.Cursor, v.CursorRev, v.BehindRev = record.ID{Tick: 30}, &record.Cursor{Tick: 30}, decided, rev+100
	if _, won, err := d.Decide(t.Context(), &v); err != nil || won {
		t.Error(won, err)
	}
	v.BehindRev = rev
	if _, won, err := d.Decide(t.Context(), &v); err != nil || !won {
		t.Error("all stands that it rests on:", won, err)
	}
}

func TestTheEndOfAStart(t *testing.T) {
	d := newDesk(t)
	rev, _ := d.claim(d.start(10))
	id := record.ID{Tick: 10}
	_, err := d.m.Put(record.Key(record.Kills, "j", id), "{}", 0)
	d.must(err)
	end := End{
		Job: "j", ID: id, OpenRev: rev, Result: &record.Result{RunID: "j/10", Status: record.Failed}, Retain: time.Hour,
		Again: &record.Want{Kind: record.Retry, Attempt: 2}, Next: Asked(id),
	}
	// Nobody settles it while its marker stands.
	settled := end
	settled.Settled = true
	if was, err := d.Finish(t.Context(), settled); was || err != nil {
		t.Error(was, err)
	}
	if d.m.Get(record.OpenKey("j", id)) == nil {
		t.Error("it was taken away")
	}
	if was, err := d.Finish(t.Context(), end); !was || err != nil {
		t.Fatal(was, err)
	}
	if left := append(d.m.Keys(record.Runs), append(d.m.Keys(record.Opens), d.m.Keys(record.Kills)...)...); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if d.m.Get(record.Results+"j/10") == nil || d.m.Get(record.Key(record.Wants, "j", Asked(id))) == nil {
		t.Errorf("keys %q", d.m.Keys(record.Root))
	}
	// Whoever comes later changes nothing.
	end.Result = &record.Result{RunID: "j/10", Status: record.Lost}
	if was, err := d.Finish(t.Context(), end); was || err != nil {
		t.Error(was, err)
	}
	if d.m.Get(record.OpenKey("j", id)) != nil {
		t.Error("it is open again")
	}
	if r, _ := record.Decode[record.Result](d.m.Get(record.Results + "j/10").Value); r.Status != record.Failed {
		t.Errorf("result %s", r.Status)
	}
	if _, won := d.claim(d.start(20, func(s *Start) { s.CursorRev = rev })); !won {
		t.Error("the next one is not claimed")
	}
}

// A request by hand may have the number that another attempt would have.
func TestANumberThatIsTakenIsLeftOut(t *testing.T) {
	d := newDesk(t)
	rev, _ := d.claim(d.start(10))
	for _, key := range []string{record.Key(record.Wants, "j", record.ID{Tick: 10, N: 1}), record.Key(record.Fires, "j", record.ID{Tick: 10, N: 2})} {
		_, err := d.m.Put(key, "x", 0)
		d.must(err)
	}
	end := End{
		Job: "j", ID: record.ID{Tick: 10}, OpenRev: rev, Result: &record.Result{RunID: "j/10"}, Retain: time.Hour,
		Again: &record.Want{Kind: record.Retry, Attempt: 2}, Next: record.ID{Tick: 10, N: 1},
	}
	if was, err := d.Finish(t.Context(), end); !was || err != nil {
		t.Fatal(was, err)
	}
	if d.m.Get(record.Key(record.Wants, "j", record.ID{Tick: 10, N: 3})) == nil || string(d.m.Get(record.Key(record.Wants, "j", record.ID{Tick: 10, N: 1})).Value) != "x" {
		t.Errorf("requests %q", d.m.Keys(record.Wants))
	}
	v := Verdict{Ground: d.ground(), ID: record.ID{Tick: 20}, Ask: &record.Want{Kind: record.Queued}}
	_, err := d.m.Put(record.Key(record.Wants, "j", record.ID{Tick: 20, N: 1}), "x", 0)
	d.must(err)
	if _, won, err := d.Decide(t.Context(), &v); !won || err != nil || v.AskID.N != 2 {
		t.Error(won, err, v.AskID)
	}
	// Not for ever.
	for n := range askTries + 2 {
		_, err := d.m.Put(record.Key(record.Fires, "j", record.ID{Tick: 30, N: n + 1}), "x", 0)
		d.must(err)
	}
	v.ID = record.ID{Tick: 30}
	if _, won, err := d.Decide(t.Context(), &v); won || err != nil {
		t.Error(won, err)
	}
}

func TestATestamentSaysThatAStartWasLost(t *testing.T) {
	d := newDesk(t)
	rev, _ := d.claim(d.start(10))
	raw := Testament(End{Job: "j", ID: record.ID{Tick: 10}, OpenRev: rev, Retain: time.Hour, Result: &record.Result{RunID: "j/10", Status: record.Lost}})
	e, ok := ReadTestament(raw)
	if !ok {
		t.Fatalf("%s", raw)
	}
	d.must(Execute(t.Context(), d.cli, e, time.Unix(100, 0)))
	r, _ := record.Decode[record.Result](d.m.Get(record.Results + "j/10").Value)
	if r.Status != record.Lost || r.EndedAt.Unix() != 100 {
		t.Errorf("%+v", r)
	}
	for _, other := range []string{"", "{}", `{"key":"/conch/v1/elect/x/1f"}`, `{"cron":{}}`, "nonsense"} {
		if _, ok := ReadTestament([]byte(other)); ok {
			t.Errorf("%s is one", other)
		}
	}
	d.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Refuse(rpctypes.ErrPermissionDenied)})
	if err := Execute(t.Context(), d.cli, e, time.Unix(100, 0)); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Error(err)
	}
}

// A start that went without its result would be one that nobody ever tells of: whoever executes a testament ends with it.
func TestWithoutSpaceATestamentLeavesTheStartToPeers(t *testing.T) {
	d := newDesk(t)
	rev, _ := d.claim(d.start(10))
	e := End{Job: "j", ID: record.ID{Tick: 10}, OpenRev: rev, Retain: time.Hour, Result: &record.Result{RunID: "j/10", Status: record.Lost}}
	d.m.NoSpace(true)
	if err := Execute(t.Context(), d.cli, e, time.Unix(100, 0)); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Error(err)
	}
	if len(d.m.Keys(record.Opens)) != 1 {
		t.Error("it was taken away, and nobody says how it ended")
	}
	d.m.NoSpace(false)
	d.must(Execute(t.Context(), d.cli, e, time.Unix(100, 0)))
	if d.m.Get(record.Results+"j/10") == nil || len(d.m.Keys(record.Opens)) > 0 {
		t.Error("it is not reported once there is space")
	}
}

func TestARefusalIsToldFromWhatNobodyKnows(t *testing.T) {
	d := newDesk(t)
	for err, want := range map[error]bool{rpctypes.ErrPermissionDenied: false, rpctypes.ErrTimeout: true, rpctypes.ErrNoLeader: true} {
		d.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Refuse(err)})
		_, won, got := d.Claim(t.Context(), d.start(10))
		if won || errors.Is(got, ErrUndecided) != want || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
	d.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.LoseReply(nil)})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := d.Claim(ctx, d.start(10)); !errors.Is(err, ErrUndecided) {
		t.Error(err)
	}
	for _, read := range []func() error{
		func() error { _, _, err := d.Fired(ctx, "j", record.ID{}); return err },
		func() error { return d.Prune(ctx, "j", 1, 1) },
	} {
		if err := read(); err == nil {
			t.Error("an answer though nobody waits")
		}
	}
}

func TestLeasesAreShared(t *testing.T) {
	d := newDesk(t)
	was := len(d.m.Leases())
	rev := int64(0)
	for i := range int64(5) {
		r, won := d.claim(d.start(10*i+10, func(s *Start) { s.Alone, s.CursorRev = false, rev }))
		if !won {
			t.Fatal(i)
		}
		rev = r
	}
	if n := len(d.m.Leases()) - was; n != 1 {
		t.Errorf("%d leases", n)
	}
	first := d.m.Get(record.Key(record.Fires, "j", record.ID{Tick: 10})).Lease
	if ttl := ttlOf(d.m, first); ttl < time.Hour || ttl > 68*time.Minute {
		t.Errorf("ttl %v", ttl)
	}
	// Not for ever; and another one where somebody revoked it.
	d.clock += 8 * time.Minute
	r, _ := d.claim(d.start(100, func(s *Start) { s.Alone, s.CursorRev = false, rev }))
	second := d.m.Get(record.Key(record.Fires, "j", record.ID{Tick: 100})).Lease
	if second == first {
		t.Error("the same lease")
	}
	d.must(d.m.Revoke(clientv3.LeaseID(second)))
	if _, won := d.claim(d.start(110, func(s *Start) { s.Alone, s.CursorRev = false, r })); !won {
		t.Error("not claimed")
	}
	d.m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: coordtest.Refuse(rpctypes.ErrPermissionDenied)})
	d.clock += time.Hour
	if _, _, err := d.Claim(t.Context(), d.start(120)); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Error(err)
	}
}

// While etcd does not answer whoever asks for a lease, others go when their time is over.
func TestNobodyWaitsForALeaseBeyondTheirTime(t *testing.T) {
	d := newDesk(t)
	asked := make(chan struct{})
	release := make(chan struct{})
	d.m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: func(c *coordtest.Call) (proto.Message, error) {
		close(asked)
		<-release
		return c.Commit(c.Context)
	}})
	first := make(chan bool)
	go func() {
		_, won, _ := d.Claim(t.Context(), d.start(10))
		first <- won
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, won, err := d.Claim(ctx, d.start(20)); won || !errors.Is(err, context.Canceled) || errors.Is(err, ErrUndecided) {
		t.Error(won, err)
	}
	d.buckets.forget([]clientv3.LeaseID{1}) // does not wait either
	close(release)
	if !<-first {
		t.Error("the first one was not claimed")
	}
}

func ttlOf(m *coordtest.Medium, id int64) time.Duration {
	for _, l := range m.Leases() {
		if int64(l.ID) == id {
			return time.Duration(l.TTL) * time.Second
		}
	}
	return 0
}

func TestTheOldestOfEachClassGo(t *testing.T) {
	d := newDesk(t)
	put := func(name string, tick int64, s record.Status) {
		r := record.Result{RunID: fmt.Sprintf("%s/%d", name, tick), Status: s}
		_, err := d.m.Put(record.Results+r.RunID, record.Encode(r), 0)
		d.must(err)
	}
	for i := range int64(450) {
		put("j", 1_000_000+i, []record.Status{record.Success, record.Failed, record.Skipped}[i%3])
	}
	put("jj", 1, record.Success)
	d.must(d.Prune(t.Context(), "j", 20, 5))
	left := map[record.Status]int{}
	for _, kv := range d.m.List(record.Range(record.Results, "j")) {
		r, _ := record.Decode[record.Result](kv.Value)
		left[r.Status]++
		if strings.TrimPrefix(string(kv.Key), record.Results+"j/") < "1000390" {
			t.Errorf("%s is left", kv.Key)
		}
	}
	if left[record.Success] != 20 || left[record.Failed] != 5 || left[record.Skipped] != 5 {
		t.Errorf("left: %v", left)
	}
	if d.m.Get(record.Results+"jj/1") == nil {
		t.Error("another job's are gone")
	}
	d.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Refuse(rpctypes.ErrPermissionDenied)})
	if err := d.Prune(t.Context(), "j", 1, 1); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Error(err)
	}
}
