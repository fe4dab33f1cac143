package compat

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// latecomer makes the store go on before the watch of what was listed is made.
type latecomer struct {
	first  func() // does so; nil: it was
	proven chan int64
}

func (l *latecomer) List([]*mvccpb.KeyValue, int64) {
	if l.first != nil {
		l.first()
		l.first = nil
	}
}
func (l *latecomer) Events([]*clientv3.Event, int64) {}
func (l *latecomer) Trouble(error)                   {}
func (l *latecomer) Fresh(_ time.Time, rev int64) {
	select {
	case l.proven <- rev:
	default:
	}
}

// etcd brings a watch that begins in the past up to date every 100 ms, and until then it does not say how far it is, nor
// does it once it could.
func TestFollowProvesAlsoWhereItsWatchBeganLate(t *testing.T) {
	t.Parallel()
	cli, prefix := client(t), etcdtest.Prefix(t)
	var rev int64
	l := &latecomer{proven: make(chan int64, 100)}
	l.first = func() {
		put, err := cli.Put(t.Context(), etcdtest.Prefix(t)+"another", "")
		if err != nil {
			t.Error(err)
			return
		}
		rev = put.Header.Revision
	}
	ctx, cancel := context.WithCancel(t.Context())
	ask, done := make(chan struct{}, 1), make(chan error, 1)
	go func() { done <- coord.Follow(ctx, cli, coord.FollowOptions{Prefix: prefix, Ask: ask}, l) }()
	<-l.proven // of the list; and so rev is known
	ask <- struct{}{}
	select {
	case got := <-l.proven:
		if got < rev {
			t.Errorf("revision %d is proven, want %d", got, rev)
		}
	case <-time.After(time.Minute):
		t.Error("nothing is proven any more")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
