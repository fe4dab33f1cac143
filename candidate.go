package coord

import (
	"context"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// candidate is one attempt to lead, from the first Txn until it leads or has left. All its state changes
// in the goroutine of the caller that campaigns.
//
//	enter ──────────────► won ──► Term
//	  │ else: queued, or first with another hold's record open
//	  ▼
//	await predecessor ◄──► settle        each wake-up, whatever its reason, is followed by
//	  └─────► decide ──► won             the deciding Txn: no event is believed by itself
//	any error: leave (the own key is deleted, guarded by its create revision)
//
// Invariants:
//
//	(C1) won means: one Txn saw the own key with its create revision, on its own lease, the oldest of the
//	     prefix, and (settling) opened the record in the same step.
//	(C2) Whatever is returned but won, no key of this attempt stays: it is deleted, or its fate is told to
//	     the session (burn), or the lease is dead.
//	(C3) A Txn without a reply is a maybe: it is read back, and adopted or deleted, never guessed.
type candidate struct {
	attempt
	prefix  string
	refused *atomic.Bool // a try of the election was refused, and no nested key was why
	settler settler
}

func (s *Session) candidate(e *Election, identity string) *candidate {
	c := &candidate{
		attempt: s.attempt(candidateKey(e.prefix, s.lease), identity, e.opts.Waiting),
		prefix:  e.prefix, refused: &e.refused, settler: settler{SettleOptions: e.opts.Settle},
	}
	if placed := e.opts.Placed; placed != nil {
		c.placed = func() { placed(c.keys()) }
	}
	return c
}

// campaign queues, waits and settles until the candidate has won.
func (c *candidate) campaign(ctx context.Context) error {
	won, v, err := c.enter(ctx)
	if err != nil {
		return c.leave(err)
	}
	return c.finish(ctx, won, v)
}

// try wins only what is free now (apart from settling); it never queues.
func (c *candidate) try(ctx context.Context) (bool, error) {
	won, v, err := c.grab(ctx, c.settler.on())
	if err == nil && !won && v.oldest == nil && v.record != nil {
		// Only another hold's record stood in the way: win the key alone, and settle.
		won, v, err = c.grab(ctx, false)
		if err == nil && won {
			won, v, err = c.decide(ctx, 0)
		}
	}
	switch {
	case err != nil:
		return false, c.leave(err)
	case !won && c.rev == 0:
		return false, nil
	}
	if err := c.finish(ctx, won, v); err != nil {
		return false, err
	}
	return true, nil
}

// finish takes a candidate whose key exists to the end: won, or left.
func (c *candidate) finish(ctx context.Context, won bool, v view) (err error) {
	for !won {
		expect := int64(0)
		switch {
		case len(v.older) > 0:
			err = c.await(ctx, v)
		case c.settler.rec.mod != 0:
			expect, err = c.settle(ctx, v)
		}
		if err == nil {
			won, v, err = c.decide(ctx, expect)
		}
		if err != nil {
			return c.leave(err)
		}
	}
	return nil
}

// free are the compares that nobody holds: no key under the prefix and, settling, no open record.
func (c *candidate) free(settle bool) []clientv3.Cmp {
	cmps := []clientv3.Cmp{noneUnder(c.prefix)}
	if settle {
		cmps = append(cmps, clientv3.Compare(clientv3.CreateRevision(c.settler.Open), "=", 0))
	}
	return cmps
}

// place is the first Txn: if nobody holds, put the key (and open the record); else orElse. It registers a key
// that was put so.
func (c *candidate) place(ctx context.Context, open bool, orElse []clientv3.Op) (*clientv3.TxnResponse, error) {
	then := []clientv3.Op{c.putKey()}
	if open {
		then = append(then, c.putRecord(c.settler.Open))
	}
	got, err := c.commitFirst(ctx, c.free(open), then, orElse)
	if err != nil || !got.Succeeded {
		return got, err
	}
	c.found(got.Header.Revision, got.Header.Revision)
	if open {
		c.open = got.Header.Revision
	}
	return got, nil
}

// grab is the first Txn of try. Where it is refused, what stands in the way is asked for, and not who queues: nobody will
// wait for them. Settling has to know, so it asks in the same Txn. Else only the first refusal of an election asks, and in
// a request of its own: most tries win, and a branch that is not taken is a sixth of what a Txn costs.
func (c *candidate) grab(ctx context.Context, open bool) (won bool, v view, err error) {
	var orElse []clientv3.Op
	if c.settler.on() {
		orElse = c.ahead()
	}
	got, err := c.place(ctx, open, orElse)
	switch {
	case err != nil:
		return c.adopt(ctx, err)
	case got.Succeeded:
		return true, v, nil
	case orElse == nil && c.refused.Load():
		return false, v, nil
	case orElse == nil:
		if got, err = c.commit(ctx, nil, c.ahead(), nil); err != nil {
			return false, v, c.why(ctx, err)
		}
	}
	v = c.view(got, first(got.Responses[0]), nil, got.Responses[1:])
	// A key of ours can only be left from a request that was given up on: it is adopted, not refused.
	if v.own != nil && c.mine(v.own) {
		c.found(v.own.CreateRevision, v.rev)
		return c.decide(ctx, 0)
	}
	if err := c.checkNested(v.oldest); err != nil {
		return false, v, err
	}
	c.refused.Store(true)
	return false, v, nil
}

// enter is the first Txn of campaign: leader, settler or queued after one round trip.
func (c *candidate) enter(ctx context.Context) (won bool, v view, err error) {
	got, err := c.place(ctx, c.settler.on(), append([]clientv3.Op{c.putKey(clientv3.WithPrevKV())}, c.lists(0)...))
	switch {
	case err != nil:
		return c.adopt(ctx, err)
	case got.Succeeded:
		return true, v, nil
	}
	// The own key was made by that put, unless it was there.
	r, own := got.Responses, &mvccpb.KeyValue{CreateRevision: got.Header.Revision}
	if prev := r[0].GetResponsePut().GetPrevKv(); prev != nil {
		own.CreateRevision = prev.CreateRevision
	}
	v = c.view(got, own, r[1].GetResponseRange().GetKvs(), r[2:])
	c.found(own.CreateRevision, v.rev)
	return false, v, c.checkQueue(v)
}

// decide is the deciding Txn: it wins if the own key stands, is the oldest, and (settling) the record has
// mod revision expect, 0 for none. Else it says how things are. It may be repeated at will: it is guarded by the
// key and by the record that it replaces.
func (c *candidate) decide(ctx context.Context, expect int64) (won bool, v view, err error) {
	got, err := c.insist(ctx, func() (cmps []clientv3.Cmp, then, orElse []clientv3.Op) {
		cmps = []clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(c.key), "=", c.rev),
			clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.s.lease),
			clientv3.Compare(clientv3.CreateRevision(c.prefix), ">", c.rev-1).WithPrefix(),
		}
		// A Txn of compares alone is answered without a quorum: there is always an operation.
		then = []clientv3.Op{clientv3.OpGet(c.key)}
		if c.settler.on() {
			cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(c.settler.Open), "=", expect))
			then = []clientv3.Op{c.putRecord(c.settler.Open)}
			if rec := c.settler.rec; expect != 0 {
				then = append(then, clientv3.OpPut(c.settler.Last, encodeEnd(rec.mod, embed(rec.Holder), EndExpired)))
			}
		}
		return cmps, then, c.looks(c.rev)
	})
	switch {
	case err != nil:
		return false, v, err
	case !got.Succeeded:
		return c.judge(c.parse(got))
	case c.settler.on():
		c.open = got.Header.Revision
	}
	return true, v, nil
}

// judge reads a look after a decision against the candidate.
func (c *candidate) judge(v view) (won bool, _ view, err error) {
	if why := c.claim.mine(v.own); why != nil {
		c.claim.lose(why)
		return false, v, context.Cause(c.claim.ctx)
	}
	// An own record says that an earlier decision, whose reply was lost, was for the candidate.
	if len(v.older) == 0 && c.settler.rec.of(c.s.lease, c.n) {
		c.open = v.record.ModRevision
		return true, v, nil
	}
	return false, v, c.checkQueue(v)
}

// adopt follows a first Txn that failed with why (C3).
func (c *candidate) adopt(ctx context.Context, why error) (won bool, v view, err error) {
	if err := c.recover(ctx, why); err != nil {
		return false, v, err
	}
	return c.decide(ctx, 0)
}

// leave ends the attempt: the own key, if there is one, goes, and so does the own record (C2).
func (c *candidate) leave(why error) error {
	if c.claim == nil {
		return why
	}
	return c.attempt.leave(why, c.keys())
}

// keys is what the attempt owns in etcd.
func (c *candidate) keys() TermKeys {
	k := TermKeys{
		Key: c.key, Rev: c.rev, Lease: c.s.lease, N: c.n, Open: c.settler.Open, OpenRev: c.open, Last: c.settler.Last,
	}
	if c.settler.on() {
		k.Holder = embed(c.identity) // for the last record
	}
	return k
}
