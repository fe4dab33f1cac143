package etcdlock

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordination"
)

// Release deletes the key if it is this lease's, and has its lease revoked in the background. It is tried once where ctx
// has ended, for 2 s at most. After an error it may be called again, or the key goes with its lease.
func (l *Locker) Release(ctx context.Context, lease coordination.Lease) error {
	if err := lease.Validate(); err != nil {
		return err
	}
	got, err := l.release(ctx, l.name(lease.Key), lease.Token)
	if err != nil {
		return fmt.Errorf("release %q: %w", lease.Key, err)
	}
	l.holds.drop(l.name(lease.Key), lease.Token)
	if got.Succeeded {
		// The lease that it was on in the end, whoever put it there.
		for _, kv := range got.Responses[0].GetResponseDeleteRange().GetPrevKvs() {
			if kv.Lease != 0 {
				l.revoke(clientv3.LeaseID(kv.Lease))
			}
		}
	}
	return nil
}

// release deletes the key. A put of it that may still be under way comes first: it must not come after.
func (l *Locker) release(ctx context.Context, name string, token uint64) (got *clientv3.TxnResponse, err error) {
	a := l.asking(ctx, patient*mostTry)
	a.once = true
	if on := l.holds.get(name, token); on.late != clientv3.NoLease {
		if err := a.revoke(on.late); err != nil {
			return nil, err
		}
	}
	_, err = a.ask(func(ctx context.Context) (_ *pb.ResponseHeader, err error) {
		if got, err = l.cli.Txn(ctx).If(is(name, token)).Then(clientv3.OpDelete(name, clientv3.WithPrevKV())).Commit(); err != nil {
			return nil, err
		}
		return got.Header, nil
	})
	return got, err
}
