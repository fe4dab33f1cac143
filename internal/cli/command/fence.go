package command

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/hold"
)

// fence marks the key of a hold that is left to its lease because on-lose failed: whoever asks must not take it for a hold
// at which somebody is at work. The key stays the same for all who queue behind it, on the same lease, and one that
// has gone stays gone. Where etcd does not take it nothing changes but what is told.
func (c *candidacy) fence() {
	won := c.won.Load()
	if won == nil || won.term.Check() != nil {
		return // lost: the key goes, or is gone
	}
	h, ours := hold.DecodeHolder([]byte(c.identity))
	if !ours {
		return
	}
	h.Fenced = true
	keys := won.term.Keys()
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	_, _ = c.client.Txn(ctx).
		If(won.term.Cmp(), clientv3.Compare(clientv3.LeaseValue(keys.Key), "=", keys.Lease)).
		Then(clientv3.OpPut(keys.Key, h.Encode(), clientv3.WithLease(keys.Lease))).Commit()
}
