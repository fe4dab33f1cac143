package cron

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron/record"
)

// followed are the areas that a node keeps a picture of, each with how old the proof may become that nothing was missed in it. Claims
// and results are none: nothing is decided by them. A member that stops without a word shows within 10 s by what runs, what is
// wanted and who is there, where it would hurt. Jobs and cursors are compared again by whoever claims, so being late with them costs
// a transaction that comes to nothing, or a new job its first ticks; and a proof costs two messages each time.
func followed() map[string]time.Duration {
	return map[string]time.Duration{
		record.Runs: 10 * time.Second, record.State: 10 * time.Second, record.Nodes: 10 * time.Second,
		record.Jobs: 30 * time.Second, record.Cursors: 30 * time.Second,
	}
}

// area is what is known of one of them. Each is followed by itself; that they do not show the same moment costs a transaction
// that comes to nothing, and no more.
type area struct {
	prefix string
	listed bool
	rev    int64               // all up to here is known
	keys   map[string]struct{} // that are there
}

// listed reports whether each area was seen once: before, an absent key says nothing.
func (n *node) listed() bool {
	for _, a := range n.areas {
		if !a.listed {
			return false
		}
	}
	return true
}

func (n *node) followAll(ctx context.Context) <-chan error {
	n.areas = map[string]*area{}
	failed := make(chan error, len(followed()))
	for prefix, old := range followed() {
		a := &area{prefix: prefix, keys: map[string]struct{}{}}
		n.areas[prefix] = a
		n.work.Go(func() {
			err := coord.Follow(ctx, n.Client, coord.FollowOptions{Prefix: prefix, StaleAfter: old}, &follower{node: n, area: a})
			failed <- fmt.Errorf("follow %s: %w", prefix, err)
		})
	}
	return failed
}

// follower is told of one area.
type follower struct {
	node *node
	area *area
}

// List is coord.FollowHandler's: what is not among all is gone.
func (f *follower) List(all []*mvccpb.KeyValue, rev int64) {
	f.node.post(func() {
		there := make(map[string]struct{}, len(all))
		for _, kv := range all {
			there[string(kv.Key)] = struct{}{}
		}
		for key := range f.area.keys {
			if _, ok := there[key]; !ok {
				f.gone(key)
			}
		}
		for _, kv := range all {
			f.put(kv)
		}
		first := !f.area.listed
		f.area.listed, f.area.rev = true, rev
		if first && f.node.listed() {
			f.node.begin()
		}
	})
}

// Events is coord.FollowHandler's.
func (f *follower) Events(events []*clientv3.Event, rev int64) {
	f.node.post(func() {
		f.area.rev = rev
		for _, ev := range events {
			if ev.Type == clientv3.EventTypeDelete {
				f.gone(string(ev.Kv.Key))
			} else {
				f.put(ev.Kv)
			}
		}
	})
}

// Fresh is coord.FollowHandler's.
func (f *follower) Fresh(_ time.Time, rev int64) {
	f.node.post(func() {
		f.area.rev = max(f.area.rev, rev)
		if f.area.prefix != record.Runs {
			return
		}
		// That a marker does not stand is known only now.
		for _, e := range f.node.jobs {
			if len(e.state.Opens) > 0 {
				f.node.consider(e)
			}
		}
	})
}

// Trouble is coord.FollowHandler's. That etcd is away is told by the registration.
func (f *follower) Trouble(err error) {
	f.node.Logger.Debug("following", slog.String("prefix", f.area.prefix), slog.String("reason", err.Error()))
}

func (f *follower) put(kv *mvccpb.KeyValue) {
	key := string(kv.Key)
	f.area.keys[key] = struct{}{}
	f.node.learn(f.area.prefix, key, kv)
}

func (f *follower) gone(key string) {
	delete(f.area.keys, key)
	f.node.learn(f.area.prefix, key, nil)
}

// begin is called once all is known that there was at the start.
func (n *node) begin() {
	n.everything()
	if n.Registered != nil && (n.proof != nil || n.ReadOnly) {
		n.Registered()
		n.Registered = nil
	}
}
