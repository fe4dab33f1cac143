package coord

import (
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// queueLimit is how many older keys are listed to tell the place in the queue.
const queueLimit = 100

// view is one look at the queue, from one Txn.
type view struct {
	own    *mvccpb.KeyValue
	older  []*mvccpb.KeyValue // older than the own key, youngest first, at most queueLimit
	oldest *mvccpb.KeyValue   // of the whole prefix: the leader
	record *mvccpb.KeyValue
	rev    int64         // revision of the look
	at     time.Duration // clock when it arrived
}

// looks are the reads of a view. older lists keys only: their leases are not looked at. createdBefore 0
// lists the youngest keys whatever their age.
func (c *candidate) looks(createdBefore int64) []clientv3.Op {
	older := []clientv3.OpOption{
		clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(queueLimit),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend),
	}
	if createdBefore > 0 {
		older = append(older, clientv3.WithMaxCreateRev(createdBefore-1))
	}
	ops := []clientv3.Op{
		clientv3.OpGet(c.key),
		clientv3.OpGet(c.prefix, older...),
		clientv3.OpGet(c.prefix, clientv3.WithFirstCreate()...),
	}
	if c.settler.on() {
		ops = append(ops, clientv3.OpGet(c.settler.Open))
	}
	return ops
}

// parse reads the replies to looks, which are the last of the replies.
func (c *candidate) parse(got *clientv3.TxnResponse) view {
	r := got.Responses
	v := view{rev: got.Header.Revision, at: c.s.clock()}
	if c.settler.on() {
		v.record, r = first(r[len(r)-1]), r[:len(r)-1]
	}
	n := len(r)
	v.own, v.oldest = first(r[n-3]), first(r[n-1])
	for _, kv := range r[n-2].GetResponseRange().GetKvs() {
		if v.own == nil || kv.CreateRevision < v.own.CreateRevision {
			v.older = append(v.older, kv)
		}
	}
	rec := DecodeRecord(v.record, c.s.bounds.TTL)
	c.settler.see(rec, holds(rec, v.oldest, c.prefix), v.at)
	return v
}

// checkQueue refuses a queue in which the next key ahead, or the leader, is of a nested election.
func (c *candidate) checkQueue(v view) error {
	if len(v.older) > 0 {
		if err := c.checkNested(v.older[0]); err != nil {
			return err
		}
	}
	return c.checkNested(v.oldest)
}

func (c *candidate) checkNested(kv *mvccpb.KeyValue) error {
	if kv != nil && nested(c.prefix, string(kv.Key)) {
		return fmt.Errorf("%w: %q", ErrNestedKey, kv.Key)
	}
	return nil
}
