//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

// settle is how long what a killed process left to its lease may stay: the longest TTL that is used, and that of whoever settles.
const settle = 25 * time.Second

// records is the least TTL, in seconds, of the leases of what cron has decided.
const records = 3600

// stays are the areas of keys that remain when all is over, by design: what was learned, not what is held.
func stays() []string {
	return []string{hold.AreaRange(hold.AreaLast), registerPrefix, record.Jobs, record.Cursors, record.Fires, record.Results, record.Wants}
}

// leaks waits until nothing of the run is left, and says what is left when the time is over.
func (a *arena) leaks(ctx context.Context) (found []violation, err error) {
	for end := time.Now().Add(settle); ; time.Sleep(100 * time.Millisecond) { // a poll of etcd and of the kernel
		if found, err = a.left(ctx); err != nil || len(found) == 0 || time.Now().After(end) || ctx.Err() != nil {
			return found, err
		}
	}
}

// left are the processes, keys and leases that are there now and should not be.
func (a *arena) left(ctx context.Context) (found []violation, err error) {
	there := remains{members: map[string]bool{}, processes: marked(a.mark())}
	for _, m := range a.members {
		there.members[fmt.Sprintf("%d etcd", m.process().pid())] = true
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	got, err := a.client.Get(ctx, "\x00", clientv3.WithFromKey())
	if err != nil {
		return nil, fmt.Errorf("read all keys: %w", err)
	}
	there.keys = got.Kvs
	leases, err := a.client.Leases(ctx)
	if err != nil {
		return nil, fmt.Errorf("read all leases: %w", err)
	}
	for _, l := range leases.Leases {
		about, err := a.client.TimeToLive(ctx, l.ID)
		if err != nil {
			return nil, fmt.Errorf("read lease %x: %w", int64(l.ID), err)
		}
		there.leases = append(there.leases, about)
	}
	return there.judge(), nil
}

// remains are what there is when all is over.
type remains struct {
	processes []string // with the mark of the run
	members   map[string]bool
	keys      []*mvccpb.KeyValue
	leases    []*clientv3.LeaseTimeToLiveResponse
}

// judge finds what should not be there.
func (r remains) judge() (found []violation) {
	for _, p := range r.processes {
		if !r.members[p] {
			found = append(found, violationf("leak", 0, "process %s", p))
		}
	}
	for _, kv := range r.keys {
		if !stay(string(kv.Key)) {
			found = append(found, violationf("leak", 0, "key %s, lease %x, value %s",
				hold.Escape(string(kv.Key)), kv.Lease, hold.EscapeCut(string(kv.Value), 100)))
		}
	}
	for _, l := range r.leases {
		if l.TTL >= 0 && l.GrantedTTL < records { // else it is gone by now, or of what is kept for a time and renewed by nobody
			found = append(found, violationf("leak", 0, "lease %x of %d s", int64(l.ID), l.GrantedTTL))
		}
	}
	return found
}

func stay(key string) bool {
	return slices.ContainsFunc(stays(), func(area string) bool { return strings.HasPrefix(key, area) })
}
