package command

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/hold"
)

const (
	// listenAfter is how long a hold has lasted before it is listened for requests to leave: a short child is over by
	// then, and whoever asked before is heard all the same.
	listenAfter = 50 * time.Millisecond
	// listenPause and listenPauseMost are the pauses after a watch that has ended.
	listenPause     = 100 * time.Millisecond
	listenPauseMost = 3 * time.Second
	// listenWithin bounds a read, and how long a watch may take to come about.
	listenWithin = 3 * time.Second
)

// evictions hears of the request to leave, for one hold: a key of its own, on the hold's lease, whose being there is the
// request. A watch that is silent because its member was stopped is found out by the connection's keep-alive.
type evictions struct {
	asked  chan error // gets at most one
	client *clientv3.Client
	key    string
	cancel context.CancelFunc
	done   chan struct{}
}

// listen begins to listen. It ends with the first request, and with stop.
func listen(client *clientv3.Client, info hold.Info) *evictions {
	ctx, cancel := context.WithCancel(context.Background())
	e := &evictions{
		asked: make(chan error, 1), client: client, key: hold.EvictKey(info.Kind, info.Name, info.Lease).String(),
		cancel: cancel, done: make(chan struct{}),
	}
	go func() {
		defer close(e.done)
		e.run(ctx)
	}()
	return e
}

func (e *evictions) stop() {
	e.cancel()
	<-e.done
}

// run reads the key and watches it from there on, again and again: what etcd does is no reason to stop listening.
func (e *evictions) run(ctx context.Context) {
	next := time.NewTimer(listenAfter)
	defer next.Stop()
	pause := listenPause
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		if e.hear(ctx) {
			return
		}
		if time.Since(began) > listenPauseMost {
			pause = listenPause
		}
		next.Reset(pause)
		pause = min(2*pause, listenPauseMost)
	}
}

// hear reports whether the request came before the watch ended.
func (e *evictions) hear(ctx context.Context) bool {
	try, cancel := context.WithTimeout(ctx, listenWithin)
	defer cancel()
	got, err := e.client.Get(try, e.key)
	if err != nil {
		return false
	}
	for _, kv := range got.Kvs {
		e.asked <- hold.DecodeEviction(kv.Value)
		return true
	}

	// The client waits without bound for a watch to come about: giving up ends that.
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	late := time.AfterFunc(listenWithin, giveUp)
	events := e.client.Watch(clientv3.WithRequireLeader(ctx), e.key, clientv3.WithRev(got.Header.Revision+1), clientv3.WithFilterDelete())
	late.Stop()
	for response := range events {
		for _, ev := range response.Events {
			e.asked <- hold.DecodeEviction(ev.Kv.Value)
			return true
		}
	}
	return false
}
