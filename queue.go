package coord

import (
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
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

// looks are the reads of a view: of the own key and of the queue.
func (c *candidate) looks(createdBefore int64) []clientv3.Op {
	return append([]clientv3.Op{clientv3.OpGet(c.key)}, c.lists(createdBefore)...)
}

// ahead are the reads of what stands in the way of a try: a key of the own name, the leader, and the record.
func (c *candidate) ahead() []clientv3.Op {
	return append([]clientv3.Op{clientv3.OpGet(c.key)}, c.heads()...)
}

// lists are the reads of the queue. older lists keys only: their leases are not looked at. createdBefore 0
// lists the youngest keys whatever their age.
func (c *candidate) lists(createdBefore int64) []clientv3.Op {
	older := []clientv3.OpOption{
		clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(queueLimit),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend),
	}
	if createdBefore > 0 {
		older = append(older, clientv3.WithMaxCreateRev(createdBefore-1))
	}
	return append([]clientv3.Op{clientv3.OpGet(c.prefix, older...)}, c.heads()...)
}

// heads are the reads of what comes first: the leader, and the record.
func (c *candidate) heads() []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpGet(c.prefix, clientv3.WithFirstCreate()...)}
	if c.settler.on() {
		ops = append(ops, clientv3.OpGet(c.settler.Open))
	}
	return ops
}

// parse reads the replies to looks.
func (c *candidate) parse(got *clientv3.TxnResponse) view {
	r := got.Responses
	return c.view(got, first(r[0]), r[1].GetResponseRange().GetKvs(), r[2:])
}

// view is made of the own key, the list of older ones, and the replies to heads.
func (c *candidate) view(got *clientv3.TxnResponse, own *mvccpb.KeyValue, older []*mvccpb.KeyValue, heads []*pb.ResponseOp) view {
	v := view{own: own, oldest: first(heads[0]), rev: got.Header.Revision, at: c.s.clock()}
	if c.settler.on() {
		v.record = first(heads[1])
	}
	for _, kv := range older {
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
