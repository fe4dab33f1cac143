package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordination/internal/contract"
)

var (
	// errGone says that the key is not this lease's any more.
	errGone = errors.New("not held")
	// errAgain says that a renewal is not proven yet: the next one may be.
	errAgain = errors.New("not proven")
)

// Renew extends the lease by ttl, if its key is still there. For a ttl that is longer than what etcd granted, the key is
// moved to a new lease in one step; its create revision, and so the token, stays.
func (l *Locker) Renew(ctx context.Context, lease coordination.Lease, ttl time.Duration) (coordination.Lease, bool, error) {
	if err := contract.Renew(lease, ttl); err != nil {
		return coordination.Lease{}, false, err
	}
	r := &renewal{asking: l.asking(ctx, ttl), name: l.name(lease.Key), owner: lease.Owner, token: lease.Token, ttl: ttl}
	switch err := r.renew(); {
	case errors.Is(err, errGone):
		l.holds.drop(r.name, r.token)
		return coordination.Lease{}, false, nil
	case err != nil:
		return coordination.Lease{}, false, fmt.Errorf("renew %q: %w", lease.Key, err)
	}
	lease.ExpiresAt = contract.ExpiresAt(r.sent, ttl, r.on.ttl)
	r.on.until = lease.ExpiresAt
	l.holds.put(r.name, r.on)
	return lease, true, nil
}

// renewal is one Renew.
type renewal struct {
	*asking
	name, owner string
	token       uint64
	ttl         time.Duration // asked for

	on   hold      // what is believed of the key
	sent time.Time // before the renewal that is proven
}

// renew asks until it is proven that the key is held, on a lease that is long enough and was renewed after sent.
func (r *renewal) renew() error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.on = r.l.holds.get(r.name, r.token)
	if r.on.lease == clientv3.NoLease {
		// Granted by another process, or long ago.
		kv, _, err := r.read(r.name)
		if err == nil {
			err = r.found(kv)
		}
		if err != nil && !errors.Is(err, errAgain) {
			return err
		}
	}
	for {
		err := r.attempt()
		if !errors.Is(err, errAgain) {
			return err
		}
		if !r.rest() {
			return r.ended(err)
		}
	}
}

// attempt is one renewal, of either kind.
func (r *renewal) attempt() error {
	short := r.on.ttl != 0 && r.on.ttl < seconds(whole(r.ttl))
	if short || r.on.lease == 0 {
		return r.move()
	}
	return r.prolong()
}

// found looks at the key as read: errGone, or errAgain where it is on another lease than was believed, which it is from
// then on.
func (r *renewal) found(kv *mvccpb.KeyValue) error {
	if kv == nil || uint64(kv.CreateRevision) != r.token {
		return errGone
	}
	if on := clientv3.LeaseID(kv.Lease); on != r.on.lease {
		r.on.lease, r.on.ttl = on, 0
		return fmt.Errorf("%w: the key is on another lease", errAgain)
	}
	return nil
}

// prolong renews the lease, and then reads the key.
func (r *renewal) prolong() error {
	ack, sent, err := r.keepAlive(r.on.lease)
	if err != nil {
		return err
	}
	// Only now: a renewal may be younger than the header of its answer.
	kv, header, err := r.read(r.name)
	if err != nil {
		return err
	}
	switch err := r.found(kv); {
	case err != nil:
		return err
	case ack.TTL <= 0:
		return fmt.Errorf("%w: a member does not know the lease of a key that is there", errAgain)
	case ack.Header.GetRaftTerm() != header.RaftTerm:
		return fmt.Errorf("%w: renewed in raft term %d, read in %d", errAgain, ack.Header.GetRaftTerm(), header.RaftTerm)
	}
	r.on.ttl, r.sent = seconds(ack.TTL), sent
	if r.on.ttl < seconds(whole(r.ttl)) {
		return r.move() // it was not known how long that lease is
	}
	return nil
}

// move puts the key on a new lease, if it is still on the old one. Where that is not known, both leases have to stay: the
// key is on one of them.
func (r *renewal) move() error {
	g, err := r.grant(whole(r.ttl))
	if err != nil {
		return err
	}
	old := r.on.lease
	got, _, err := r.commit(func() ([]clientv3.Cmp, clientv3.Op, clientv3.Op) {
		return []clientv3.Cmp{is(r.name, r.token), clientv3.Compare(clientv3.LeaseValue(r.name), "=", old)},
			clientv3.OpPut(r.name, r.owner, clientv3.WithLease(g.id)), clientv3.OpGet(r.name)
	})
	if err != nil {
		r.on.lease = clientv3.NoLease // the next one looks
		r.l.holds.put(r.name, r.on)
		return err
	}
	if !got.Succeeded {
		err := r.found(found(got))
		if r.on.lease != g.id { // else an answer was lost: it was done
			r.l.revoke(g.id)
			return cmp.Or(err, errAgain)
		}
	}
	r.on.lease, r.on.ttl, r.sent = g.id, g.ttl, g.sent
	if old != clientv3.NoLease {
		r.l.revoke(old)
	}
	return nil
}

// keepAlive renews a lease once, over a stream of its own. A TTL of 0 says that it is gone.
func (a *asking) keepAlive(lease clientv3.LeaseID) (ack *pb.LeaseKeepAliveResponse, sent time.Time, err error) {
	_, err = a.ask(func(ctx context.Context) (*pb.ResponseHeader, error) {
		sent = time.Now()
		stream, err := pb.NewLeaseClient(a.l.cli.ActiveConnection()).LeaseKeepAlive(ctx)
		if err != nil {
			return nil, err
		}
		_ = stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(lease)}) // where it fails, Recv says why
		ack, err = stream.Recv()
		return nil, err // what it says of the revision is that member's own view
	})
	return ack, sent, err
}
