package live

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
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// commit makes changes in one transaction.
func commit(t *testing.T, client *clientv3.Client, ops ...clientv3.Op) {
	t.Helper()
	if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
		t.Fatal(err)
	}
}

const startValue = `{"host":"n1","lease":"7","kind":"scheduled","attempt":1,"at_ms":1805007600000}`

var tick = record.ID{Tick: 1805007600}

// starts are the puts of a claim, and ends those of a result, as the daemon has them.
func starts(job string) []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpPut(record.Key(record.Fires, job, tick), "{}"), clientv3.OpPut(record.Key(record.Runs, job, tick), startValue),
		clientv3.OpPut(record.OpenKey(job, tick), startValue), clientv3.OpPut(record.CursorKey(job, ""), "{}"),
	}
}

func ends(job string) []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpPut(record.Key(record.Results, job, tick), "{}"), clientv3.OpDelete(record.Key(record.Runs, job, tick)),
		clientv3.OpDelete(record.OpenKey(job, tick)),
	}
}

// rosterWords is a roster in a few words.
func rosterWords(r *view.Roster) string {
	var words []string
	for _, run := range r.Runs() {
		words = append(words, run.Name()+" "+string(run.State)+" on "+run.Host)
	}
	for _, p := range r.Pauses(time.Now()) {
		words = append(words, "paused "+p.Job)
	}
	return strings.Join(words, ", ")
}

func TestALookAtJobs(t *testing.T) {
	t.Parallel()
	client := etcdtest.One(t).Client(t)
	all, err := LookJobs(t.Context(), client)
	if err != nil || rosterWords(all) != "" {
		t.Fatalf("got %q, %v", rosterWords(all), err)
	}
	const paused = `{"paused":{"by":"ann"}}`
	commit(t, client, append(starts("a"), starts("ab")...)...)
	commit(t, client, append(starts("gone"), clientv3.OpPut(record.JobKey("a"), paused), clientv3.OpPut(record.JobKey("b"), paused))...)
	commit(t, client, clientv3.OpDelete(record.Key(record.Runs, "gone", tick)))
	each := record.ID{Tick: 1805007600, Host: "n2"}
	commit(t, client, clientv3.OpPut(record.OpenKey("a", each), startValue), clientv3.OpPut(record.Key(record.Runs, "a", each), startValue))
	for jobs, want := range map[string]string{
		"":     "a/1805007600 running on n1, a/1805007600@n2 running on n1, ab/1805007600 running on n1, gone/1805007600 settling on n1, paused a, paused b",
		"a":    "a/1805007600 running on n1, a/1805007600@n2 running on n1, paused a",
		"b ab": "ab/1805007600 running on n1, paused b",
		"c":    "",
	} {
		all, err := LookJobs(t.Context(), client, strings.Fields(jobs)...)
		if err != nil || rosterWords(all) != want {
			t.Errorf("%q: got %q, %v", jobs, rosterWords(all), err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := LookJobs(ctx, client); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "below /conch/v1/cron/run/") {
		t.Errorf("got %v", err)
	}
}

func TestManyJobsAreReadPageByPage(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	client := m.Client(t)
	const many = 2*jobPage + 1
	for i := range many {
		if _, err := m.Put(record.JobKey(fmt.Sprintf("j%d", i)), `{"paused":{}}`, 0); err != nil {
			t.Fatal(err)
		}
	}
	all, err := LookJobs(t.Context(), client)
	if err != nil || len(all.Pauses(time.Now())) != many {
		t.Errorf("%d of %d jobs, %v", len(all.Pauses(time.Now())), many, err)
	}
}

func TestALookAtJobsBeginsAnewWhereItsRevisionIsCompacted(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	client := m.Client(t)
	commit(t, client, starts("a")...)
	compacted := coordtest.Rule{Method: coordtest.Range, Skip: 1, Times: 2, Action: coordtest.Refuse(rpctypes.ErrGRPCCompacted)}
	m.Inject(compacted)
	if all, err := LookJobs(t.Context(), client); err != nil || len(all.Runs()) != 1 {
		t.Errorf("got %v", err)
	}
	compacted.Skip, compacted.Times = 0, coordtest.Forever
	m.Inject(compacted)
	if _, err := LookJobs(t.Context(), client); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("got %v", err)
	}
}

// follows gives what a roster is told as, from turn to turn.
func follows(t *testing.T, client *clientv3.Client, by func(context.Context, *clientv3.Client, FollowOptions, RosterTurn) error) (next func() string) {
	t.Helper()
	told, ended := make(chan string, 99), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- by(ctx, client, FollowOptions{}, func(r *view.Roster) error { told <- rosterWords(r); return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return func() string {
		select {
		case words := <-told:
			return words
		case <-time.After(patience):
			t.Fatal("nothing is told")
			return ""
		}
	}
}

// That a marker and an open record come and go in one step is told in one: no run is settling that is not.
func TestRunsAreFollowedAsAWhole(t *testing.T) {
	t.Parallel()
	client := etcdtest.One(t).Client(t)
	commit(t, client, starts("a")...)
	next := follows(t, client, FollowRuns)
	want := func(words string) {
		t.Helper()
		if got := next(); got != words {
			t.Fatalf("told %q, want %q", got, words)
		}
	}
	want("a/1805007600 running on n1")
	commit(t, client, starts("b")...)
	want("a/1805007600 running on n1, b/1805007600 running on n1")
	commit(t, client, ends("a")...)
	want("b/1805007600 running on n1")
	// The cards of nodes come all the time, and are nothing to tell.
	commit(t, client, clientv3.OpPut(record.Cards+"n1", "{}"), clientv3.OpPut(record.Wants+"a/1", "{}"))
	commit(t, client, clientv3.OpPut(record.JobKey("a"), `{"paused":{}}`))
	commit(t, client, clientv3.OpDelete(record.Key(record.Runs, "b", tick)))
	want("b/1805007600 settling on n1")
	commit(t, client, clientv3.OpPut(record.Pause, `{"by":"ann"}`))
	want("b/1805007600 settling on n1, paused ")
	commit(t, client, clientv3.OpDelete(record.OpenKey("b", tick)))
	want("paused ")
	commit(t, client, clientv3.OpDelete(record.Pause))
	want("")
}

func TestPausesAreFollowed(t *testing.T) {
	t.Parallel()
	client := etcdtest.One(t).Client(t)
	next := follows(t, client, FollowPauses)
	for i, step := range []struct {
		op   clientv3.Op
		told string
	}{
		{clientv3.OpPut(record.JobKey("a"), `{"paused":{}}`), "paused a"},
		{clientv3.OpPut(record.JobKey("b"), `{}`), "paused a"},
		{clientv3.OpDelete(record.JobKey("a")), ""},
	} {
		if i == 0 && next() != "" {
			t.Error("told what is not there")
		}
		commit(t, client, step.op)
		if got := next(); got != step.told {
			t.Errorf("told %q, want %q", got, step.told)
		}
	}
}

// A status of a cluster with many jobs neither reads nor follows what their runs have left behind.
func TestNothingThatIsKeptOfRunsIsRead(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	client := m.Client(t)
	value := strings.Repeat("x", 1000)
	for i := range 100 {
		var ops []clientv3.Op
		for k := range 50 {
			id := record.ID{Tick: int64(i*100 + k)}
			ops = append(ops, clientv3.OpPut(record.Key(record.Results, "a", id), value), clientv3.OpPut(record.Key(record.Fires, "a", id), value))
		}
		commit(t, client, ops...)
	}
	commit(t, client, clientv3.OpPut(hold.ElectKey("o", 1).String(), identity("x")))
	for within, want := range map[span]int64{holds(): 1, runs(): 0} {
		got, err := client.Get(t.Context(), within.from, clientv3.WithRange(within.end), clientv3.WithCountOnly())
		if err != nil || got.Count != want {
			t.Errorf("%d keys lie in %v, want %d; %v", got.Count, within, want, err)
		}
	}
	enough := errors.New("enough")
	err := FollowAll(t.Context(), client, FollowOptions{}, func(_ *view.Book, names []view.Name) error {
		if fmt.Sprint(names) != "[{elect o}]" {
			t.Errorf("told of %v", names)
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// All that can be held is behind distributed cron: FollowAll begins there.
func TestEveryAreaOfHoldsIsFollowed(t *testing.T) {
	t.Parallel()
	within := holds()
	for _, kind := range []string{hold.KindElect, hold.KindSema} {
		for _, r := range view.KindRanges(kind) {
			if r <= within.from || r >= within.end {
				t.Errorf("%s is not followed", r)
			}
		}
	}
	for _, r := range []string{record.Fires, record.Results, record.Jobs, record.State} {
		if r >= within.from {
			t.Errorf("%s is followed with what is held", r)
		}
	}
}
