package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordination/internal/contract"
)

// errTooLate is why an Acquire ends when etcd answers again after the lease has run out that it has.
var errTooLate = errors.New("etcd took longer than the lease lasts")

// Acquire grants key, unless it is there. After an error nothing is held for longer than the ttl.
func (l *Locker) Acquire(ctx context.Context, key, owner string, ttl time.Duration) (coordination.Lease, bool, error) {
	if err := contract.Acquire(key, owner, ttl); err != nil {
		return coordination.Lease{}, false, err
	}
	lease, err := l.acquire(ctx, key, owner, ttl)
	if err != nil {
		return coordination.Lease{}, false, fmt.Errorf("acquire %q: %w", key, err)
	}
	return lease, lease.Token != 0, nil
}

// acquire gives the zero Lease where the key is held.
func (l *Locker) acquire(ctx context.Context, key, owner string, ttl time.Duration) (coordination.Lease, error) {
	if err := l.open(); err != nil {
		return coordination.Lease{}, err
	}
	if ctx.Err() != nil {
		return coordination.Lease{}, context.Cause(ctx)
	}
	a := l.asking(ctx, ttl)

	// Most who ask are refused: that costs no lease, and no entry in etcd's log.
	kv, _, err := a.read(l.name(key))
	if err != nil || kv != nil {
		return coordination.Lease{}, err
	}

	g := l.useSpare(whole(ttl))
	if g == nil {
		if g, err = a.grant(whole(ttl)); err != nil {
			return coordination.Lease{}, err
		}
	}
	lease := coordination.Lease{Key: key, Owner: owner, ExpiresAt: contract.ExpiresAt(g.sent, ttl, g.ttl)}
	h := hold{lease: g.id, ttl: g.ttl, until: lease.ExpiresAt}
	if h.token, h.late, err = a.take(l.name(key), owner, g, h.until); err != nil || h.token == 0 {
		return coordination.Lease{}, err
	}
	l.holds.put(l.name(key), h)
	lease.Token = h.token
	return lease, nil
}

// take puts the key on the lease, if it is absent, and gives its token, 0 if somebody else was faster. Where the answer
// to a Txn was lost, the next one finds the key on this lease: it was done.
//
// A Txn that was given up may be done at any time later, when the key is free again, and would hold it for nobody: see
// refused. Where the key is held, late says which lease has to be gone before a release is done.
func (a *asking) take(name, owner string, g *grant, until time.Time) (token uint64, late clientv3.LeaseID, err error) {
	ctx, cancel := context.WithDeadlineCause(a.ctx, until, errTooLate)
	defer cancel()
	a.ctx = ctx
	got, sent, err := a.commit(func() ([]clientv3.Cmp, clientv3.Op, clientv3.Op) {
		return []clientv3.Cmp{is(name, 0)}, clientv3.OpPut(name, owner, clientv3.WithLease(g.id)), clientv3.OpGet(name)
	})
	if sent > 1 {
		late = g.id
	}
	switch {
	case err != nil:
		a.l.revoke(g.id)
		return 0, 0, err
	case got.Succeeded:
		return uint64(got.Header.Revision), late, nil
	case found(got).Lease == int64(g.id):
		return uint64(found(got).CreateRevision), late, nil
	case sent > 1:
		return 0, 0, a.refused(name, g, found(got).CreateRevision)
	}
	a.l.keepSpare(g)
	return 0, 0, nil
}

// refused makes sure that a put on g that may still be under way is never done. It needs its lease: once that is gone, it
// cannot come any more; and if the key is then still the other's that it was before, it did not come meanwhile. Where
// that is not so, nobody knows: the key may have been held for a moment, by nobody.
func (a *asking) refused(name string, g *grant, other int64) error {
	if err := a.revoke(g.id); err != nil {
		a.l.revoke(g.id)
		return err
	}
	kv, _, err := a.read(name)
	if err == nil && (kv == nil || kv.CreateRevision != other) {
		err = fmt.Errorf("%w: a request that was not answered may have been done", coord.ErrUndecided)
	}
	return err
}
