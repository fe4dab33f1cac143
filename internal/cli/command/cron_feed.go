package command

import (
	"context"
	"log/slog"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
)

// staleAfter is how long etcd may say nothing before that is worth a warning.
const staleAfter = 10 * time.Second

// feed hands over what is below a prefix, and each change of it. It ends with its context.
type feed struct {
	news  chan []*mvccpb.KeyValue // all of one revision, or of a list; what was deleted has no value
	ended chan error              // gets one
	ctx   context.Context
	fresh chan struct{}
}

// follow begins a feed. stop ends it, and returns when it has ended.
func followBelow(ctx context.Context, client *clientv3.Client, prefix string, log *slog.Logger) (f *feed, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	f = &feed{news: make(chan []*mvccpb.KeyValue), ended: make(chan error, 1), ctx: ctx, fresh: make(chan struct{}, 1)}
	warned := make(chan struct{})
	go func() { defer close(warned); f.warn(log) }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.ended <- coord.Follow(ctx, client, coord.FollowOptions{Prefix: prefix, StaleAfter: staleAfter}, f)
	}()
	return f, func() { cancel(); <-done; <-warned }
}

// warn says when what is known may be out of date, and when that is over.
func (f *feed) warn(log *slog.Logger) {
	late := time.NewTimer(staleAfter)
	defer late.Stop()
	stale := false
	for {
		select {
		case <-f.fresh:
			if stale {
				log.Warn("etcd answers again")
			}
			stale = false
			late.Reset(staleAfter)
		case <-late.C:
			stale = true
			log.Warn(staleText, "reason", staleReason(nil))
		case <-f.ctx.Done():
			return
		}
	}
}

func (f *feed) tell(kvs []*mvccpb.KeyValue) {
	select {
	case f.news <- kvs:
	case <-f.ctx.Done():
	}
}

// List is coord.FollowHandler's, as are Events, Fresh and Trouble.
func (f *feed) List(all []*mvccpb.KeyValue, _ int64) { f.tell(all) }

// Events tells what a revision did.
func (f *feed) Events(events []*clientv3.Event, _ int64) {
	var kvs []*mvccpb.KeyValue
	for _, ev := range events {
		kvs = append(kvs, ev.Kv)
	}
	f.tell(kvs)
}

// Fresh says that nothing was missed.
func (f *feed) Fresh(time.Time, int64) {
	select {
	case f.fresh <- struct{}{}:
	default:
	}
}

// Trouble is waited out: if it lasts there is a warning.
func (f *feed) Trouble(error) {}
