package etcdlock

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordination"
)

// DefaultPrefix is where the keys stand unless Options say otherwise.
const DefaultPrefix = "/coord/locks/"

// Options configure a Locker. The zero value is usable.
type Options struct {
	// Prefix is what the keys begin with. Default DefaultPrefix. A "/" is added where it does not end in one.
	Prefix string
}

// Locker grants leases by keys in etcd. Lockers with the same prefix exclude each other, in any process.
type Locker struct {
	cli    *clientv3.Client
	prefix string
	seen   history
	holds  holds

	mu     sync.Mutex
	spare  *grant // nil: none
	expire *time.Timer
	closed bool
	wg     sync.WaitGroup // revokes that nobody waits for
}

var _ coordination.Locker = (*Locker)(nil)

// New makes a Locker. It asks etcd nothing; the client stays the caller's.
func New(cli *clientv3.Client, o Options) *Locker {
	prefix := strings.TrimSuffix(cmp.Or(o.Prefix, DefaultPrefix), "/") + "/"
	return &Locker{cli: cli, prefix: prefix, holds: holds{of: map[string]hold{}, sweep: sweepAt}}
}

// Close gives back the spare lease and waits for the revokes under way, 5 s at most. What is held stays so, and can still
// be renewed and released; Acquire fails with coord.ErrClosed. It is idempotent. Without it, what nobody waited for ends
// by itself, soon.
func (l *Locker) Close() error {
	l.mu.Lock()
	l.closed = true
	g := l.takeSpare()
	l.mu.Unlock()
	var err error
	if g != nil {
		err = l.revokeNow(g.id)
	}
	l.wg.Wait()
	return err
}

// name is where a key stands: one path element below the prefix, whatever bytes it has.
func (l *Locker) name(key string) string {
	if key == "." || key == ".." { // legal in etcd, and a trap for whoever makes paths of keys
		return l.prefix + strings.ReplaceAll(key, ".", "%2E")
	}
	return l.prefix + url.PathEscape(key)
}

// revokeMost bounds a revoke. Where it is not answered, the lease goes after its ttl.
const revokeMost = 5 * time.Second

// revoke revokes a lease in the background, or leaves it to its ttl once the Locker is closed.
func (l *Locker) revoke(lease clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.wg.Go(func() { _ = l.revokeNow(lease) })
	}
}

// revokeNow revokes a lease. One that is gone already is no error worth telling: nobody depends on it.
func (l *Locker) revokeNow(lease clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(context.Background(), revokeMost)
	defer cancel()
	_, err := l.cli.Revoke(ctx, lease)
	return err
}

// grant is a lease of etcd's that no key is on, as far as this Locker knows.
type grant struct {
	id    clientv3.LeaseID
	asked int64         // seconds
	ttl   time.Duration // granted
	sent  time.Time     // before it was asked for
}

// freshFor is the part of its time for which a lease is as good as a new one: a tenth.
const freshFor = 10

// fresh is how long g can be used for another key.
func (g *grant) fresh() time.Duration {
	return coordination.Lease{ExpiresAt: g.sent.Add(g.ttl / freshFor)}.Remaining()
}

// keepSpare keeps a lease that was granted and not needed for the next Acquire. There is one at most: others are revoked.
func (l *Locker) keepSpare(g *grant) {
	l.mu.Lock()
	other := l.takeSpare()
	if !l.closed {
		l.spare = g
		l.expire = time.AfterFunc(g.fresh(), func() { l.dropSpare(g) })
	}
	l.mu.Unlock()
	if other != nil {
		l.revoke(other.id)
	}
}

// takeSpare takes the spare lease, if there is one (mu held).
func (l *Locker) takeSpare() *grant {
	g := l.spare
	if g != nil {
		l.expire.Stop()
		l.spare = nil
	}
	return g
}

// dropSpare revokes the spare lease if it is still g.
func (l *Locker) dropSpare(g *grant) {
	l.mu.Lock()
	mine := l.spare == g
	if mine {
		l.spare = nil
	}
	l.mu.Unlock()
	if mine {
		l.revoke(g.id)
	}
}

// useSpare gives the spare lease if it is one of so many seconds, and young enough.
func (l *Locker) useSpare(asked int64) *grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spare == nil || l.spare.asked != asked || l.spare.fresh() <= 0 {
		return nil
	}
	return l.takeSpare()
}

// open reports whether anything may be acquired.
func (l *Locker) open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return coord.ErrClosed
	}
	return nil
}
