package etcdlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordtest"
)

// world is one etcd in memory and a Locker on it, in a bubble of fake time.
type world struct {
	*testing.T
	m *coordtest.Medium
	l *Locker
}

func inBubble(t *testing.T, o coordtest.Options, f func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := coordtest.Start(t, o)
		f(&world{T: t, m: m, l: locker(t, m)})
	})
}

// peer is a Locker of another process.
func (w *world) peer() *Locker { return locker(w.T, w.m) }

// within bounds a call.
func (w *world) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), d)
	w.Cleanup(cancel)
	return ctx
}

// held acquires a key, which has to succeed.
func (w *world) held(l *Locker, key string, ttl time.Duration) coordination.Lease {
	w.Helper()
	lease, held, err := l.Acquire(w.Context(), key, "o", ttl)
	if !held || err != nil {
		w.Fatal(held, err)
	}
	return lease
}

// renewed renews a lease, which has to succeed.
func (w *world) renewed(l *Locker, lease coordination.Lease, ttl time.Duration) coordination.Lease {
	w.Helper()
	next, held, err := l.Renew(w.Context(), lease, ttl)
	if !held || err != nil || next.Token != lease.Token {
		w.Fatal(next, held, err)
	}
	return next
}

// released releases a lease, and returns when all of it is done.
func (w *world) released(l *Locker, lease coordination.Lease) {
	w.Helper()
	if err := l.Release(w.Context(), lease); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

// settle lets what goes on in the background come to its end.
func (w *world) settle() { synctest.Wait() }

// lasts is how long etcd keeps a lease yet that nobody renews, in whole seconds, by the key that is on it.
func (w *world) lasts(key string) int64 {
	w.Helper()
	for _, lease := range w.m.Leases() {
		for _, name := range lease.Keys {
			if name == w.l.name(key) {
				return lease.Remaining
			}
		}
	}
	w.Fatalf("%q is on no lease", key)
	return 0
}

// puts, deletes and reads pick requests.
var (
	puts    = coordtest.Puts(DefaultPrefix)
	deletes = coordtest.Deletes(DefaultPrefix)
)
