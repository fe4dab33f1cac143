package coord

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// seatView is one look at a semaphore, from one Txn.
type seatView struct {
	own     *mvccpb.KeyValue
	older   []*mvccpb.KeyValue // older than the own key, youngest first, at most max + queueLimit; without own key: all
	slots   map[int]*mvccpb.KeyValue
	records map[int]*mvccpb.KeyValue
	beside  []*mvccpb.KeyValue // keys of another max, of all kinds
	rev     int64              // revision of the look
	at      time.Duration      // clock when it arrived
}

// wards are the kinds of keys that are looked at.
func (m *Semaphore) wards() []ward {
	if m.opts.Settle.on() {
		return []ward{m.queue, m.slots, m.open}
	}
	return []ward{m.queue, m.slots}
}

// alone are the compares that nothing of another max is there (M5).
func (m *Semaphore) alone() (cmps []clientv3.Cmp) {
	if m.opts.IgnoreOtherMax {
		return nil
	}
	for _, w := range m.wards() {
		cmps = append(cmps, w.alone()...)
	}
	return cmps
}

// looks are the reads of a view. The queue is listed without leases: its keys' names tell them. createdBefore 0 lists
// the youngest keys whatever their age.
func (m *Semaphore) looks(key string, createdBefore int64) []clientv3.Op {
	older := []clientv3.OpOption{
		clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(int64(m.opts.Max) + queueLimit + 1),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend),
	}
	if createdBefore > 0 {
		older = append(older, clientv3.WithMaxCreateRev(createdBefore-1))
	}
	ops := []clientv3.Op{clientv3.OpGet(key), clientv3.OpGet(m.queue.own, older...), clientv3.OpGet(m.slots.own, clientv3.WithPrefix())}
	if m.opts.Settle.on() {
		ops = append(ops, clientv3.OpGet(m.open.own, clientv3.WithPrefix()))
	}
	if m.opts.IgnoreOtherMax {
		return ops
	}
	for _, w := range m.wards() {
		ops = append(ops, w.others()...)
	}
	return ops
}

func (c *seat) looks(createdBefore int64) []clientv3.Op { return c.m.looks(c.key, createdBefore) }

// parse reads the replies to looks, which are the last of the replies.
func (m *Semaphore) parse(got *clientv3.TxnResponse, at time.Duration) seatView {
	next := got.Responses[len(got.Responses)-len(m.looks(m.queue.own, 0)):]
	read := func() []*mvccpb.KeyValue {
		kvs := next[0].GetResponseRange().GetKvs()
		next = next[1:]
		return kvs
	}
	v := seatView{rev: got.Header.Revision, at: at, own: oneOf(read())}
	for _, kv := range read() {
		if v.own == nil || kv.CreateRevision < v.own.CreateRevision {
			v.older = append(v.older, kv)
		}
	}
	v.slots = m.slots.bySlot(read(), m.opts.Max)
	if m.opts.Settle.on() {
		v.records = m.open.bySlot(read(), m.opts.Max)
	}
	for len(next) > 0 {
		v.beside = append(v.beside, read()...)
	}
	return v
}

func (c *seat) parse(got *clientv3.TxnResponse) seatView { return c.m.parse(got, c.s.clock()) }

// surveyWithin bounds the read of who has no session yet to take a bound from.
const surveyWithin = 2500 * time.Millisecond

// survey looks at the semaphore without a session, and without a key. It is refused as an attempt would be.
func (m *Semaphore) survey(ctx context.Context) (seatView, error) {
	ctx, cancel := context.WithTimeout(ctx, surveyWithin)
	defer cancel()
	// The prefix alone is no candidate's key: there is no own one.
	got, err := m.cli.Txn(ctx).Then(m.looks(m.queue.own, 0)...).Commit()
	if err != nil {
		return seatView{}, err
	}
	v := m.parse(got, m.opts.Clock())
	return v, m.refusal(v)
}

// room reports whether a slot is free, and nobody waits for it.
func (m *Semaphore) room(v seatView) bool {
	return len(v.older) < m.opts.Max && len(v.slots) < m.opts.Max
}

// refusal says why nobody may enter or go on as things are: something of another max, or of another semaphore.
func (m *Semaphore) refusal(v seatView) error {
	if len(v.beside) > 0 {
		return m.otherMax(v.beside)
	}
	for _, kv := range v.older {
		if nested(m.queue.own, string(kv.Key)) {
			return fmt.Errorf("%w: %q", ErrNestedKey, kv.Key)
		}
	}
	return nil
}
