package coord

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
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
	s        *Session
	prefix   string
	key      string
	identity string
	settler  settler
	waiting  func(Waiting)
	began    time.Duration
	placed   func(TermKeys)

	n     int64 // which attempt of its session this is: names its record, with the lease
	rev   int64 // create revision of the own key; 0: not known to exist
	claim *claim
	open  int64 // mod revision of the own open record; 0: none
	left  bool  // the own key existed and may still
}

func (s *Session) candidate(e *Election, identity string) *candidate {
	s.mu.Lock()
	s.attempts++
	n := s.attempts
	s.mu.Unlock()
	return &candidate{
		s: s, n: n, prefix: e.prefix, key: candidateKey(e.prefix, s.lease), identity: identity,
		settler: settler{SettleOptions: e.opts.Settle}, waiting: e.opts.Waiting, placed: e.opts.Placed,
		began: s.clock(),
	}
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
	cmps := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(c.prefix), "=", 0).WithPrefix()}
	if settle {
		cmps = append(cmps, clientv3.Compare(clientv3.CreateRevision(c.settler.Open), "=", 0))
	}
	return cmps
}

func (c *candidate) putKey() clientv3.Op {
	return clientv3.OpPut(c.key, c.identity, clientv3.WithLease(c.s.lease))
}

func (c *candidate) putRecord() clientv3.Op {
	return clientv3.OpPut(c.settler.Open, encodeRecord(c.s, c.n, c.identity))
}

// place is the first Txn: if nobody holds, put the key (and open the record); else orElse. It registers a key
// that was put so.
func (c *candidate) place(ctx context.Context, open bool, orElse []clientv3.Op) (*clientv3.TxnResponse, error) {
	// A caller that gives up meanwhile gives it a moment to be answered: a reply makes an end that leaves
	// nothing, no reply a key whose fate is unknown.
	late, cancel := patient(ctx)
	defer cancel()

	then := []clientv3.Op{c.putKey()}
	if open {
		then = append(then, c.putRecord())
	}
	got, err := c.commit(late, c.free(open), then, orElse)
	if err != nil || !got.Succeeded {
		return got, err
	}
	c.found(got.Header.Revision, got.Header.Revision)
	if open {
		c.open = got.Header.Revision
	}
	return got, nil
}

// grab is the first Txn of try.
func (c *candidate) grab(ctx context.Context, open bool) (won bool, v view, err error) {
	got, err := c.place(ctx, open, c.looks(0))
	switch {
	case err != nil:
		return c.adopt(ctx, err)
	case got.Succeeded:
		return true, v, nil
	}
	v = c.parse(got)
	// A key of ours can only be left from a request that was given up on: it is adopted, not refused.
	if v.own != nil && c.mine(v.own) {
		c.found(v.own.CreateRevision, v.rev)
		return c.decide(ctx, 0)
	}
	return false, v, c.checkNested(v.oldest)
}

// enter is the first Txn of campaign: leader, settler or queued after one round trip.
func (c *candidate) enter(ctx context.Context) (won bool, v view, err error) {
	got, err := c.place(ctx, c.settler.on(), append([]clientv3.Op{c.putKey()}, c.looks(0)...))
	switch {
	case err != nil:
		return c.adopt(ctx, err)
	case got.Succeeded:
		return true, v, nil
	}
	v = c.parse(got)
	c.found(v.own.CreateRevision, v.rev)
	return false, v, c.checkQueue(v)
}

// decide is the deciding Txn: it wins if the own key stands, is the oldest, and (settling) the record has
// mod revision expect, 0 for none. Else it says how things are. It may be repeated at will.
func (c *candidate) decide(ctx context.Context, expect int64) (won bool, v view, err error) {
	// Each Cmp is built afresh: the client's With... functions change what they are given.
	pause := backoff{low: c.s.bounds.TTL / 100, high: c.s.bounds.Renew}
	for {
		cmps := []clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(c.key), "=", c.rev),
			clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.s.lease),
			clientv3.Compare(clientv3.CreateRevision(c.prefix), ">", c.rev-1).WithPrefix(),
		}
		// A Txn of compares alone is answered without a quorum: there is always an operation.
		then := []clientv3.Op{clientv3.OpGet(c.key)}
		if c.settler.on() {
			cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(c.settler.Open), "=", expect))
			then = []clientv3.Op{c.putRecord()}
			if rec := c.settler.rec; expect != 0 {
				then = append(then, clientv3.OpPut(c.settler.Last, encodeEnd(rec.mod, embed(rec.Holder), EndExpired)))
			}
		}
		got, err := c.commit(ctx, cmps, then, c.looks(c.rev))
		if err != nil {
			// Repeating is safe: it is guarded by the key and by the record that it replaces.
			if definite(err) || !pause.pause(ctx) || c.claim.ctx.Err() != nil {
				return false, v, c.why(ctx, err)
			}
			continue
		}
		if got.Succeeded {
			if c.settler.on() {
				c.open = got.Header.Revision
			}
			return true, v, nil
		}
		return c.judge(c.parse(got))
	}
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

// mine reports whether a key of the own name is on the own lease.
func (c *candidate) mine(kv *mvccpb.KeyValue) bool { return kv.Lease == int64(c.s.lease) }

// errNotSent says that nothing was asked of etcd: there is nothing to read back.
var errNotSent = errors.New("not sent")

// commit sends one Txn, bounded, and checks the reply's history.
func (c *candidate) commit(ctx context.Context, cmps []clientv3.Cmp, then, orElse []clientv3.Op) (*clientv3.TxnResponse, error) {
	if err := c.s.Check(); err != nil {
		return nil, errors.Join(errNotSent, err)
	}
	floor := c.s.floor()
	try, cancel := c.s.try(ctx)
	defer cancel()
	got, err := c.s.cli.Txn(try).If(cmps...).Then(then...).Else(orElse...).Commit()
	if err != nil {
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			c.s.lose(ErrLeaseGone)
		}
		return nil, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return got, c.s.note(got.Header, floor)
}

// found registers the own key, once it is known to exist. Whoever is told can take away the record as well, which
// the same step may have opened: it is found by its lease and number.
func (c *candidate) found(rev, at int64) {
	c.rev = rev
	c.claim = c.s.hold(c.key, rev, at)
	if c.placed != nil {
		c.placed(c.keys())
	}
}

// adopt follows a first Txn that failed with why: unless it surely had no effect, the own key is read
// back until the answer is definite, or the caller has given up (C3).
func (c *candidate) adopt(ctx context.Context, why error) (won bool, v view, err error) {
	if definite(why) || errors.Is(why, errNotSent) {
		return false, v, c.why(ctx, why)
	}
	kv, at, err := c.readBack(ctx)
	if kv == nil {
		// Absent now, or not to be read; but the request may still be under way, or have left its record.
		return false, v, fmt.Errorf("%w: %w", ErrUndecided, errors.Join(c.why(ctx, why), err))
	}
	c.found(kv.CreateRevision, at)
	if ctx.Err() != nil {
		return false, v, c.why(ctx, why)
	}
	return c.decide(ctx, 0)
}

// readBack reads the own key until there is an answer, for as long as the lease can live and the caller waits.
func (c *candidate) readBack(ctx context.Context) (kv *mvccpb.KeyValue, at int64, err error) {
	pause := backoff{low: c.s.bounds.TTL / 100, high: c.s.bounds.Renew}
	for {
		try, cancel := c.s.try(context.WithoutCancel(ctx))
		got, err := c.s.cli.Get(try, c.key)
		cancel()
		switch {
		case err == nil:
			return only(got), got.Header.Revision, nil
		case definite(err) || !pause.pause(ctx) || c.s.ctx.Err() != nil:
			return nil, 0, err
		}
	}
}

// why is the error to return: a loss explains a failed request better than the request does.
func (c *candidate) why(ctx context.Context, err error) error {
	if c.claim != nil && c.claim.ctx.Err() != nil {
		return context.Cause(c.claim.ctx)
	}
	if lost := c.s.Check(); lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// leave ends the attempt: the own key, if there is one, goes, and so does the own record (C2). It returns
// why, with what went wrong on the way out.
func (c *candidate) leave(why error) error {
	if c.claim == nil {
		return why
	}
	c.claim.drop(why)
	ctx, cancel := c.s.cleanup()
	defer cancel()
	if err := c.s.release(ctx, c.keys(), EndReleased); err != nil {
		c.left = true
		return fmt.Errorf("%w (and leaving the queue: %w)", why, err)
	}
	return why
}

// keys is what the attempt owns in etcd.
func (c *candidate) keys() TermKeys {
	return TermKeys{
		Key: c.key, Rev: c.rev, Lease: c.s.lease, N: c.n, Holder: embed(c.identity),
		Open: c.settler.Open, OpenRev: c.open, Last: c.settler.Last,
	}
}
