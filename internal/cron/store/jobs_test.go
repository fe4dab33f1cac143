package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

func put(t *testing.T, client *clientv3.Client, keys ...string) {
	t.Helper()
	for batch := range slices.Chunk(keys, 100) {
		var ops []clientv3.Op
		for _, key := range batch {
			ops = append(ops, clientv3.OpPut(key, "v"))
		}
		if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

// below are the keys of cron that are there.
func below(t *testing.T, client *clientv3.Client) (keys []string) {
	t.Helper()
	got, err := client.Get(t.Context(), record.Root, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range got.Kvs {
		keys = append(keys, strings.TrimPrefix(string(kv.Key), record.Root))
	}
	return keys
}

func TestAJobIsWrittenWhereTheOneStandsThatWasRead(t *testing.T) {
	t.Parallel()
	client := etcdtest.One(t).Client(t)
	none, err := store.Job(t.Context(), client, "x")
	if err != nil || none.Rev != 0 || none.Name != "x" {
		t.Fatalf("%+v, %v", none, err)
	}
	write := func(was store.Stored, value string) bool {
		t.Helper()
		ok, err := store.WriteJob(t.Context(), client, was, []byte(value))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !write(none, "1") {
		t.Fatal("a job is not written where there is none")
	}
	one, err := store.Job(t.Context(), client, "x")
	if err != nil || one.Rev == 0 || string(one.Value) != "1" {
		t.Fatalf("%+v, %v", one, err)
	}
	if write(none, "2") {
		t.Error("a job was written over one that nobody had read")
	}
	if !write(one, "2") {
		t.Error("a job is not written over the one that was read")
	}
	if !write(one, "2") {
		t.Error("to write the same again, as after a lost answer, is refused")
	}
	if write(one, "3") {
		t.Error("a job was written over a later one")
	}
	two, err := store.Job(t.Context(), client, "x")
	if err != nil || string(two.Value) != "2" {
		t.Fatalf("%+v, %v", two, err)
	}
	if ok, err := store.RemoveJob(t.Context(), client, one); ok || err != nil {
		t.Errorf("a later job than the one that was read is removed: %v, %v", ok, err)
	}
}

func TestWhatGoesWithAJob(t *testing.T) {
	t.Parallel()
	client := etcdtest.One(t).Client(t)
	stay := []string{
		"cursor/x.y", "cursor/xy", "fire/x/100", "job/x.y", "result/x/100", "run/x/100", "state/open/x/100", "state/want/x.y/100.1",
	}
	keys := []string{"job/x", "cursor/x", "cursor/x@h1", "cursor/x@h2"}
	for i := range 250 {
		keys = append(keys, fmt.Sprintf("state/want/x/100.%d", i+1))
	}
	var all []string
	for _, key := range slices.Concat(stay, keys) {
		all = append(all, record.Root+key)
	}
	put(t, client, all...)
	was, err := store.Job(t.Context(), client, "x")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time as after a lost answer
		if ok, err := store.RemoveJob(t.Context(), client, was); !ok || err != nil {
			t.Fatalf("%v, %v", ok, err)
		}
		if got := below(t, client); !slices.Equal(got, stay) {
			t.Fatalf("there are still %q, want %q", got, stay)
		}
	}
}

func TestJobsAreReadAsTheyWereAtOneMoment(t *testing.T) {
	t.Parallel()
	client := etcdtest.One(t).Client(t)
	var want, keys []string
	for i := range 1001 {
		want = append(want, fmt.Sprintf("x%04d", i))
		keys = append(keys, record.JobKey(want[i]))
	}
	put(t, client, append(keys, record.Jobs+"x/y", record.Jobs+"-", record.Root+"jobs/x")...)
	all, err := store.Jobs(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range all {
		got = append(got, s.Name)
		if string(s.Value) != "v" || s.Rev == 0 {
			t.Fatalf("%+v", s)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d jobs, want %d", len(got), len(want))
	}
}

func TestTheLastResultIsTheNewest(t *testing.T) {
	t.Parallel()
	client := etcdtest.One(t).Client(t)
	var names []string
	for i := range 150 {
		name := fmt.Sprintf("x%03d", i)
		names = append(names, name)
		for _, id := range []string{"1805007600", "1805007600.2", "1805007500"} {
			value := record.Encode(record.Result{Job: name, RunID: name + "/" + id})
			if _, err := client.Put(t.Context(), record.Range(record.Results, name)+id, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(t, client, record.Results+"broken/1805007600")
	last, err := store.LastResults(t.Context(), client, append(names, "broken", "none"))
	if err != nil || len(last) != len(names) {
		t.Fatalf("%d results, %v", len(last), err)
	}
	for _, name := range names {
		if last[name].RunID != name+"/1805007600.2" {
			t.Errorf("of %s: %s", name, last[name].RunID)
		}
	}
}

func TestWithoutAnAnswerThereIsAnError(t *testing.T) {
	t.Parallel()
	client := etcdtest.One(t).Client(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, job := store.Job(ctx, client, "x")
	_, jobs := store.Jobs(ctx, client)
	_, write := store.WriteJob(ctx, client, store.Stored{Name: "x"}, nil)
	_, remove := store.RemoveJob(ctx, client, store.Stored{Name: "x"})
	_, last := store.LastResults(ctx, client, []string{"x"})
	for i, err := range []error{job, jobs, write, remove, last} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}
