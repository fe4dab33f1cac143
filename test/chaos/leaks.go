//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// left are the processes, keys and leases that are there now.
func (a *arena) left(ctx context.Context) (found []violation, err error) {
	ours := map[string]bool{}
	for _, m := range a.members {
		ours[fmt.Sprintf("%d etcd", m.process().pid())] = true
	}
	for _, p := range marked(a.mark()) {
		if !ours[p] {
			found = append(found, violationf("leak", 0, "process %s", p))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	got, err := a.client.Get(ctx, "\x00", clientv3.WithFromKey())
	if err != nil {
		return nil, fmt.Errorf("read all keys: %w", err)
	}
	for _, kv := range got.Kvs {
		if !stay(string(kv.Key)) {
			found = append(found, violationf("leak", 0, "key %s, lease %x, value %s", kv.Key, kv.Lease, hold.EscapeCut(string(kv.Value), 100)))
		}
	}
	leases, err := a.client.Leases(ctx)
	if err != nil {
		return nil, fmt.Errorf("read all leases: %w", err)
	}
	for _, l := range leases.Leases {
		kept, err := a.client.TimeToLive(ctx, l.ID)
		if err != nil {
			return nil, fmt.Errorf("read lease %x: %w", int64(l.ID), err)
		}
		if kept.TTL < 0 || kept.GrantedTTL >= records {
			continue // it is gone by now, or one that nobody renews, of what is kept for a time
		}
		found = append(found, violationf("leak", 0, "lease %x", int64(l.ID)))
	}
	return found, nil
}

func stay(key string) bool {
	for _, area := range stays() {
		if strings.HasPrefix(key, area) {
			return true
		}
	}
	return false
}
