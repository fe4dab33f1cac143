package command

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/hold"
)

// fence marks the key of a hold that is left to its lease because on-lose failed: whoever asks must not take it for a hold
// at which somebody is at work. The key stays the same for all who queue behind it, on the same lease, and one that
// has gone stays gone. Where etcd does not take it nothing changes but what is told.
func (o *office) fence() {
	won := o.won.Load()
	if won == nil {
		return
	}
	term := won.Term()
	if term == nil {
		return // lost: the key goes, or is gone
	}
	h, ours := hold.DecodeHolder([]byte(o.identity))
	if !ours {
		return
	}
	h.Fenced = true
	keys := term.Keys()
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	_, _ = o.client.Txn(ctx).
		If(term.Cmp(), clientv3.Compare(clientv3.LeaseValue(keys.Key), "=", keys.Lease)).
		Then(clientv3.OpPut(keys.Key, h.Encode(), clientv3.WithLease(keys.Lease))).Commit()
}
