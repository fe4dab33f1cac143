package wire

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// account is a handler that counts what it is told, revision by revision.
type account struct {
	listed  chan struct{} // closed when the list is there
	behind  chan struct{} // nothing is heard of events until it is closed
	sizes   chan int      // how many events a revision had
	wrong   error
	highest int64
}

func (a *account) List(all []*mvccpb.KeyValue, rev int64) {
	if a.highest = rev; len(all) != 0 {
		a.wrong = fmt.Errorf("%d keys at first", len(all))
	}
	close(a.listed)
	<-a.behind
}

func (a *account) Events(events []*clientv3.Event, rev int64) {
	for _, ev := range events {
		if ev.Kv.ModRevision != rev || rev <= a.highest {
			a.wrong = fmt.Errorf("%s of revision %d, told as %d after %d", ev.Kv.Key, ev.Kv.ModRevision, rev, a.highest)
		}
	}
	a.highest = rev
	a.sizes <- len(events)
}

func (a *account) Fresh(time.Time, int64) {}
func (a *account) Trouble(error)          {}

// TestEtcdTellsEachRevisionWhole is what coord.Follow stands on. etcd sends what a watch has missed a thousand
// revisions at a time, and splits none of them; nor one that deletes more keys than a Txn can name.
func TestEtcdTellsEachRevisionWhole(t *testing.T) {
	t.Parallel()
	cli, prefix := etcdtest.Shared(t).Client(t), etcdtest.Prefix(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := &account{listed: make(chan struct{}), behind: make(chan struct{}), sizes: make(chan int, 10_000)}
	ended := make(chan error, 1)
	go func() { ended <- coord.Follow(ctx, cli, coord.FollowOptions{Prefix: prefix}, a) }()
	select {
	case <-a.listed:
	case err := <-ended:
		t.Fatal(err)
	}

	const revisions, each = 2500, 3
	txn := func(ops ...clientv3.Op) {
		_, err := cli.Txn(ctx).Then(ops...).Commit()
		must(t, err)
	}
	for i := range revisions {
		var ops []clientv3.Op
		for j := range each {
			ops = append(ops, clientv3.OpPut(fmt.Sprint(prefix, i, "/", j), ""))
		}
		txn(ops...)
	}
	close(a.behind)
	told := func() int {
		select {
		case n := <-a.sizes:
			return n
		case err := <-ended:
			t.Fatal(err)
			return 0
		}
	}
	for i := range revisions {
		if n := told(); n != each {
			t.Fatalf("revision %d is told in parts: %d events, want %d", i, n, each)
		}
	}
	txn(clientv3.OpDelete(prefix, clientv3.WithPrefix()))
	if n := told(); n != revisions*each {
		t.Errorf("a deletion of %d keys is told as one of %d", revisions*each, n)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || a.wrong != nil || len(a.sizes) != 0 {
		t.Error(err, a.wrong, len(a.sizes))
	}
}
