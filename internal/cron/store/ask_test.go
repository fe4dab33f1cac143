package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/cron/record"
)

// asks is an etcd in memory, with a job that has a mod revision.
func asks(t *testing.T) (m *coordtest.Medium, client *clientv3.Client, a Asking) {
	t.Helper()
	m = coordtest.Start(t, coordtest.Options{})
	rev, err := m.Put(record.JobKey("x"), "{}", 0)
	if err != nil {
		t.Fatal(err)
	}
	return m, m.Client(t), Asking{Job: "x", Tick: 1000, SpecRev: rev, Want: record.Want{Kind: record.Manual, Attempt: 1, By: "me@desk"}}
}

// writing picks the transactions that would write.
func writing(c *coordtest.Call) bool {
	r, ok := c.Request.(*pb.TxnRequest)
	return ok && len(r.Success) > 0 && r.Success[0].GetRequestPut() != nil
}

func TestAskTakesTheFirstFreeNumber(t *testing.T) {
	t.Parallel()
	m, client, a := asks(t)
	for _, taken := range []string{
		record.Fires + "x/1000", record.Fires + "x/1000.1", record.Wants + "x/1000.2", record.Results + "x/1000.3", record.Fires + "x/10000.4", record.Wants + "x/1000.4@a",
		record.Wants + "y/1000.4",
	} {
		if _, err := m.Put(taken, "{}", 0); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"1000.4", "1000.5"} {
		if id, err := Ask(t.Context(), client, a); err != nil || id.String() != want {
			t.Errorf("%d: %v %v, want %s", i, id, err, want)
		}
	}
	a.Host = "a"
	if id, err := Ask(t.Context(), client, a); err != nil || id.String() != "1000.1@a" {
		t.Errorf("%v %v", id, err)
	}
	if w, ok := record.Decode[record.Want](m.Get(record.Wants + "x/1000.5").Value); !ok || w != a.Want {
		t.Errorf("%+v", w)
	}
}

// A retry takes the next number, whoever has it: so nobody else may. Red when a block is not looked at as a whole, or not left to the tick.
func TestAskLeavesRoomForRetries(t *testing.T) {
	t.Parallel()
	m, client, a := asks(t)
	a.Room = 2
	if _, err := m.Put(record.Fires+"x/1000.8", "{}", 0); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"1000.3", "1000.9", "1000.12"} {
		if id, err := Ask(t.Context(), client, a); err != nil || id.String() != want {
			t.Errorf("%d: %v %v, want %s", i, id, err, want)
		}
	}
}

// Red when a number that somebody else took meanwhile is not given up, and when a change of the job or of the pause is not noticed.
func TestAskLosesARace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		key  string
		want string // id; "": it has changed
	}{
		"the number": {record.Wants + "x/1000.1", "1000.2"}, "a claim": {record.Fires + "x/1000.1", "1000.2"},
		"the job": {record.JobKey("x"), ""}, "the pause": {record.Pause, ""},
	} {
		m, client, a := asks(t)
		m.Inject(coordtest.Rule{Method: coordtest.Txn, When: writing, Action: coordtest.Before(func() { _, _ = m.Put(tt.key, "{}", 0) })})
		id, err := Ask(t.Context(), client, a)
		if tt.want == "" && !errors.Is(err, ErrChanged) || tt.want != "" && (err != nil || id.String() != tt.want) {
			t.Errorf("%s: %v %v", name, id, err)
		}
	}
	// Somebody else is faster each time.
	m, client, a := asks(t)
	n := 0
	m.Inject(coordtest.Rule{Method: coordtest.Txn, When: writing, Times: coordtest.Forever, Action: coordtest.Before(func() {
		n++
		_, _ = m.Put(fmt.Sprintf("%sx/1000.%d", record.Wants, n), "{}", 0)
	})})
	if _, err := Ask(t.Context(), client, a); !errors.Is(err, ErrChanged) || n != askTries {
		t.Errorf("%v after %d", err, n)
	}
}

// A request whose answer was lost stands or does not: it is never put twice.
func TestAskWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	gone := coordtest.Unavailable("")
	for name, tt := range map[string]struct {
		action    coordtest.Action
		id        string
		undecided bool
	}{
		"it stands":       {coordtest.LoseReply(gone), "1000.1", false},
		"it did not come": {coordtest.Refuse(gone), "", true},
		"it was refused":  {coordtest.Refuse(rpctypes.ErrGRPCNoSpace), "", false},
	} {
		m, client, a := asks(t)
		m.Inject(coordtest.Rule{Method: coordtest.Txn, When: writing, Action: tt.action})
		id, err := Ask(t.Context(), client, a)
		if tt.id != "" && (err != nil || id.String() != tt.id) || tt.id == "" && (err == nil || errors.Is(err, ErrUndecided) != tt.undecided) {
			t.Errorf("%s: %v %v", name, id, err)
		}
		if n := len(m.Keys(record.Wants)); n > 1 || (n == 1) != (tt.id != "") {
			t.Errorf("%s: %d requests", name, n)
		}
	}
	m, client, a := asks(t)
	m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
	if _, err := Ask(t.Context(), client, a); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Error(err)
	}
}

func TestKillIsOnTheLeaseOfTheDaemon(t *testing.T) {
	t.Parallel()
	m, client, _ := asks(t)
	lease, err := client.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	id := record.ID{Tick: 7}
	rev, err := m.Put(record.OpenKey("x", id), "{}", 0)
	if err != nil {
		t.Fatal(err)
	}
	k := Killing{Job: "x", ID: id, OpenRev: rev, Lease: int64(lease.ID), Kill: record.Kill{By: "me"}}
	if there, err := k.Ask(t.Context(), client); !there || err != nil {
		t.Errorf("%v %v", there, err)
	}
	if kv := m.Get(record.Kills + "x/7"); kv == nil || kv.Lease != int64(lease.ID) {
		t.Errorf("%v", kv)
	}
	other := k
	other.OpenRev++
	if there, err := other.Ask(t.Context(), client); there || err != nil {
		t.Errorf("another start was asked to end: %v", err)
	}
	k.Lease++
	if _, err := k.Ask(t.Context(), client); !errors.Is(err, ErrNoDaemon) {
		t.Error(err)
	}
	m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
	if _, err := k.Ask(t.Context(), client); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Error(err)
	}
}

// change is an edit that appends a letter.
func change(value []byte) (string, bool, error) { return string(value) + "x", false, nil }

func TestChangeIsMadeOnceWhateverHappens(t *testing.T) {
	t.Parallel()
	const key = record.Pause
	gone := coordtest.Unavailable("")
	for name, tt := range map[string]struct {
		rule coordtest.Rule
		want string
		err  error
	}{
		"nothing happens":     {coordtest.Rule{Method: coordtest.Compact}, "x", nil},
		"the answer is lost":  {coordtest.Rule{Method: coordtest.Txn, Action: coordtest.LoseReply(gone)}, "x", nil},
		"the request is lost": {coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Refuse(gone)}, "", ErrUndecided},
		"it is refused":       {coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)}, "", rpctypes.ErrPermissionDenied},
		"it cannot be read":   {coordtest.Rule{Method: coordtest.Range, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)}, "", rpctypes.ErrPermissionDenied},
	} {
		m := coordtest.Start(t, coordtest.Options{})
		m.Inject(tt.rule)
		rev, err := Change(t.Context(), m.Client(t), key, change)
		if !errors.Is(err, tt.err) || tt.err == nil && (err != nil || rev != m.Rev()) {
			t.Errorf("%s: %d %v", name, rev, err)
		}
		value := ""
		if kv := m.Get(key); kv != nil {
			value = string(kv.Value)
		}
		if value != tt.want {
			t.Errorf("%s: %q, want %q", name, value, tt.want)
		}
	}
}

func TestChangeGoesByWhatStands(t *testing.T) {
	t.Parallel()
	const key = record.Pause
	m := coordtest.Start(t, coordtest.Options{})
	client := m.Client(t)
	other := m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Before(func() { _, _ = m.Put(key, "a", 0) })})
	if _, err := Change(t.Context(), client, key, change); err != nil || string(m.Get(key).Value) != "ax" || other.Hits() != 1 {
		t.Errorf("%s %v", m.Get(key).Value, err)
	}
	before := m.Rev()
	if rev, err := Change(t.Context(), client, key, func([]byte) (string, bool, error) { return "", true, nil }); rev != before || err != nil || m.Rev() != before {
		t.Errorf("%d %v: nothing was to be changed", rev, err)
	}
	mine := errors.New("mine")
	if _, err := Change(t.Context(), client, key, func([]byte) (string, bool, error) { return "", false, mine }); !errors.Is(err, mine) {
		t.Error(err)
	}
	m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: coordtest.Forever, Action: coordtest.Before(func() { _, _ = m.Put(key, "b", 0) })})
	if _, err := Change(t.Context(), client, key, change); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
}

func TestUndrainSaysWhatThereWas(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	client := m.Client(t)
	stop := record.Stop{By: "me", Why: "so", At: 7}
	if _, err := m.Put(record.Drains+"a", record.Encode(stop), 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		was, ok, err := Undrain(t.Context(), client, "a")
		if ok != want || err != nil || want && was != stop {
			t.Errorf("%+v %v %v", was, ok, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Undrain(ctx, client, "a"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestLookPutsTogetherWhatBelongsTogether(t *testing.T) {
	t.Parallel()
	m, client, a := asks(t)
	open := record.Encode(record.Open{Host: "a", Attempt: 1})
	for key, value := range map[string]string{
		record.OpenKey("x", record.ID{Tick: 7}):            open,
		record.OpenKey("x", record.ID{Tick: 8, Host: "b"}): open,
		record.OpenKey("xy", record.ID{Tick: 7}):           open,
		record.Runs + "x/7":                                open,
		record.Kills + "x/7":                               record.Encode(record.Kill{By: "me"}),
		record.Wants + "x/9.1":                             record.Encode(record.Want{Kind: record.Manual}),
		record.Wants + "x/8.1":                             record.Encode(record.Want{Kind: record.Retry}),
		record.Wants + "x/nonsense":                        "{}",
		record.Wants + "xy/9.1":                            record.Encode(record.Want{Kind: record.Manual}),
		record.CursorKey("x", ""):                          record.Encode(record.Cursor{Tick: 5}),
		record.CursorKey("x", "b"):                         record.Encode(record.Cursor{Tick: 6}),
		record.CursorKey("xy", ""):                         record.Encode(record.Cursor{Tick: 7}),
		record.Nodes + "b":                                 `{"host_uuid":"b","version":"1","labels":{"zone":"a"}}`,
		record.Nodes + "a":                                 `no host`,
		record.Cards + "b":                                 record.Encode(record.Card{Host: "b", MaxRunning: 3}),
		record.Cards + "a":                                 "no card",
		record.Drains + "b":                                record.Encode(record.Stop{By: "me"}),
		record.Drains + "c":                                "",
		record.Pause:                                       "no pause",
		record.Nodes + "no/name":                           "{}",
		record.Opens + "no name/7":                         "{}",
	} {
		if _, err := m.Put(key, value, 0); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Look(t.Context(), client, "x")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Starts {
		got = append(got, fmt.Sprintf("%s/%s alive=%v killed=%v", s.Job, s.ID, s.Alive, s.Kill != nil))
	}
	for _, w := range p.Asked {
		got = append(got, fmt.Sprintf("%s/%s %s", w.Job, w.ID, w.Kind))
	}
	for _, one := range p.Peers {
		got = append(got, fmt.Sprintf("%s %s %v %d %v %s", one.Host, one.Version, one.Carded, one.Card.MaxRunning, one.Drained, one.Drain.By))
	}
	want := []string{
		"x/7 alive=true killed=true", "x/8@b alive=false killed=false", "x/8.1 retry", "x/9.1 manual", "a  false 0 false ", "b 1 true 3 true me",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
	if p.SpecRev != a.SpecRev || string(p.Spec) != "{}" || p.Rev != m.Rev() || p.Cursors[""].Tick != 5 || p.Cursors["b"].Tick != 6 || len(p.Cursors) != 2 || len(p.Drains) != 2 {
		t.Errorf("%+v", p)
	}
	if p.Pause.By != "?" || p.PauseRev == 0 {
		t.Errorf("%+v: a pause that cannot be read is one", p.Pause)
	}
	all, err := Look(t.Context(), client, "")
	if err != nil || len(all.Starts) != 3 || len(all.Asked) != 3 || all.SpecRev != 0 {
		t.Errorf("%+v %v", all, err)
	}
	m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
	if _, err := Look(t.Context(), client, "x"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Error(err)
	}
}

func TestHistoryIsReadPageByPage(t *testing.T) {
	t.Parallel()
	m, client, _ := asks(t)
	const n = 2*historyPage + 5
	for i := range n {
		r := record.Result{Status: record.Success}
		if i%100 == 0 {
			r.Status = record.Failed
		}
		if _, err := m.Put(fmt.Sprintf("%sx/%d", record.Results, 1805007600+i), record.Encode(r), 0); err != nil {
			t.Fatal(err)
		}
	}
	all := func(*record.Result) bool { return true }
	got, err := History(t.Context(), client, "x", n+1, all)
	if err != nil || len(got) != n || got[0].Tick != 1805007600 || got[n-1].RunID != fmt.Sprintf("x/%d", 1805007600+n-1) || got[0].Job != "x" {
		t.Errorf("%d results, %v", len(got), err)
	}
	failed, err := History(t.Context(), client, "x", 3, func(r *record.Result) bool { return r.Status == record.Failed })
	if err != nil || len(failed) != 3 || failed[2].Tick != 1805007600+400 || failed[0].Tick != 1805007600+200 {
		t.Errorf("%+v %v", failed, err)
	}

	// A range that ends far behind what was asked for since.
	if _, err := m.Put(record.Results+"x/1805010000", record.Encode(record.Result{From: 1805007000, Ticks: 9}), 0); err != nil {
		t.Fatal(err)
	}
	about, err := About(t.Context(), client, "x", 1805007600)
	if err != nil || len(about) != 2 || about[0].Tick != 1805007600 || about[1].Ticks != 9 {
		t.Errorf("%+v %v", about, err)
	}
	if about, err = About(t.Context(), client, "x", 1805010001); err != nil || len(about) != 0 {
		t.Errorf("%+v %v", about, err)
	}
	if r, ok, err := ResultOf(t.Context(), client, "x", record.ID{Tick: 1805007600}); !ok || err != nil || r.Status != record.Failed {
		t.Errorf("%+v %v %v", r, ok, err)
	}
	if _, ok, err := ResultOf(t.Context(), client, "x", record.ID{Tick: 1}); ok || err != nil {
		t.Error(ok, err)
	}
	m.Inject(coordtest.Rule{Method: coordtest.Range, Times: 3, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
	_, err1 := History(t.Context(), client, "x", 1, all)
	_, err2 := About(t.Context(), client, "x", 1)
	_, _, err3 := ResultOf(t.Context(), client, "x", record.ID{})
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, rpctypes.ErrPermissionDenied) {
			t.Error(err)
		}
	}
}

// About gives up at some point: a tick that nothing covers costs no more than that.
func TestAboutLooksAtSoManyAndNoMore(t *testing.T) {
	t.Parallel()
	m, client, _ := asks(t)
	for i := range coveringMost + historyPage + 1 {
		if _, err := m.Put(fmt.Sprintf("%sx/%d", record.Results, 1805007600+i), "{}", 0); err != nil {
			t.Fatal(err)
		}
	}
	before := m.Calls(coordtest.Range)
	if _, err := About(t.Context(), client, "x", 1805007599); err != nil || m.Calls(coordtest.Range)-before != coveringMost/historyPage {
		t.Errorf("%d reads, %v", m.Calls(coordtest.Range)-before, err)
	}
}
