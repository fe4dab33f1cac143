package coord_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
)

// shelf is what stands under a prefix.
type shelf struct {
	books map[string]string
	ready chan struct{} // closed after the first list
	empty func()        // called when nothing is left
}

func (s *shelf) List(all []*mvccpb.KeyValue, _ int64) {
	first := s.books == nil
	s.books = map[string]string{}
	for _, kv := range all {
		s.books[string(kv.Key)] = string(kv.Value)
	}
	fmt.Println("listed:", s.books)
	if first {
		close(s.ready)
	}
}

func (s *shelf) Events(events []*clientv3.Event, _ int64) {
	for _, ev := range events {
		if ev.Type == clientv3.EventTypeDelete {
			delete(s.books, string(ev.Kv.Key))
		} else {
			s.books[string(ev.Kv.Key)] = string(ev.Kv.Value)
		}
	}
	fmt.Println(len(events), "changed:", s.books)
	if len(s.books) == 0 {
		s.empty()
	}
}

// Fresh is where a program notes how old what it shows may be.
func (s *shelf) Fresh(time.Time, int64) {}

// Trouble is where it logs.
func (s *shelf) Trouble(err error) { fmt.Println("trouble:", err) }

// A program keeps its own picture of all keys under a prefix. What one transaction did to them is one change.
func ExampleFollow() {
	etcd, cli, done := connect()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// The following may end before what ended it has been answered, so it has a context of its own.
	following, end := context.WithCancel(ctx)
	defer end()
	if _, err := etcd.Put("/shelf/a", "Lamport", 0); err != nil {
		fmt.Println(err)
		return
	}

	s := &shelf{ready: make(chan struct{}), empty: end}
	ended := make(chan error, 1)
	go func() { ended <- coord.Follow(following, cli, coord.FollowOptions{Prefix: "/shelf/"}, s) }()
	select {
	case <-s.ready:
	case err := <-ended: // etcd refused, or did not answer
		fmt.Println(err)
		return
	}
	for _, txn := range [][]clientv3.Op{
		{clientv3.OpPut("/shelf/b", "Lynch"), clientv3.OpPut("/shelf/c", "Gray")},
		{clientv3.OpDelete("/shelf/", clientv3.WithPrefix())},
	} {
		if _, err := cli.Txn(ctx).Then(txn...).Commit(); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("ended:", errors.Is(<-ended, context.Canceled))
	// Output:
	// listed: map[/shelf/a:Lamport]
	// 2 changed: map[/shelf/a:Lamport /shelf/b:Lynch /shelf/c:Gray]
	// 3 changed: map[]
	// ended: true
}
