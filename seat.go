package coord

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// seat is one attempt to hold a slot of a semaphore, from its first request until it holds or has left.
//
//	enter ───► queued: max or more are older     ◄──► await that fewer are
//	             │
//	             ▼
//	           entitled: fewer than max are older ◄──► await a slot that is free, and settled
//	             │
//	             ▼
//	           take ───► held ───► Term            each wake-up, whatever its reason, is followed by a look
//	any error: leave
//
// Its rules, beside those of a candidate (C1-C3) and of settling (R1-R5):
//
//	(M1) A slot is taken only after a linearizable reply has shown fewer than max older candidates. Revisions
//	     rise, so that stays true for as long as the own key stands with its create revision, which the Txn that
//	     takes the slot compares.
//	(M2) That one Txn puts the slot's key, where there is none, opens its record, and puts the own key again,
//	     which so far was never put again. So a slot has one owner, and a candidate one slot, whichever of its
//	     requests lands late.
//	(M3) The term needs both keys: renewals read and watches see the candidate's and the slot's, and the loss of
//	     either is a loss of the term.
//	(M4) Each key and the record are deleted under a guard of their own revision: a late release frees nobody else.
//	(M5) A Txn that puts a candidate or takes a slot compares that nothing of another max is there, unless that is
//	     to be ignored.
//	(M6) A try puts its key only if nobody has come since the read that showed room.
//	(M7) A slot is settled as an election is, the slot's key standing for the leader's, and not while another slot
//	     is free that needs no settling.
type seat struct {
	attempt
	m        *Semaphore
	settlers map[int]*settler  // of the slots with a record
	answers  map[int]ttlAnswer // the last of each slot (R5)

	slot    int    // held, or tried last; -1: none
	slotRev int64  // create revision of the slot's key; 0: not known to be held
	hold    *claim // of the slot's key
}

// acquire queues, waits and settles until the seat holds a slot.
func (c *seat) acquire(ctx context.Context) error {
	v, err := c.enter(ctx)
	return c.finish(ctx, v, err)
}

// enter is the first Txn of acquire: it puts the own key.
func (c *seat) enter(ctx context.Context) (seatView, error) {
	got, err := c.commitFirst(ctx, c.fresh(), append([]clientv3.Op{c.putKey()}, c.looks(0)...), c.looks(0))
	switch {
	case err != nil:
		if err := c.recover(ctx, err); err != nil {
			return seatView{}, err
		}
		return c.look(ctx)
	case !got.Succeeded:
		return seatView{}, c.refused(c.parse(got))
	}
	c.found(got.Header.Revision, got.Header.Revision)
	v := c.parse(got)
	return v, c.judge(v)
}

// fresh are the compares of a Txn that puts the own key: it is not there yet, and nothing is of another max (M5).
func (c *seat) fresh() []clientv3.Cmp {
	return append(c.m.alone(), clientv3.Compare(clientv3.CreateRevision(c.key), "=", 0))
}

// errStale says that the key of an earlier attempt of the same session stands in the way.
var errStale = errors.New("a key of an earlier attempt is still there")

// refused says why the own key could not be put; a key of the own name is left to whoever tidies up.
func (c *seat) refused(v seatView) error {
	if err := c.m.refusal(v); err != nil {
		return err
	}
	c.left = true
	return fmt.Errorf("%w: %w", ErrUndecided, errStale)
}

// try takes only what is free now, given the view v (apart from settling); it never queues.
func (c *seat) try(ctx context.Context, v seatView) (bool, error) {
	for c.m.room(v) {
		c.see(v)
		slot, expect, free := c.pick(v)
		clean := free && expect == 0
		cmps, puts := c.fresh(), []clientv3.Op{c.putKey()}
		cmps = append(cmps, clientv3.Compare(clientv3.CreateRevision(c.m.queue.own), "<", v.rev+1).WithPrefix()) // (M6)
		if clean {
			taking, ops := c.taking(slot, 0)
			cmps, puts = append(cmps, taking...), append(puts, ops...)
			c.slot = slot
		}
		got, err := c.commitFirst(ctx, cmps, append(puts, c.looks(0)...), c.looks(0))
		if err != nil {
			if err = c.recover(ctx, err); err == nil {
				v, err = c.look(ctx)
			}
			return true, c.finish(ctx, v, err)
		}
		v = c.parse(got)
		if got.Succeeded {
			c.found(v.rev, v.rev)
			return true, c.finish(ctx, v, c.judge(v))
		}
		if v.own != nil || c.m.refusal(v) != nil {
			return false, c.refused(v)
		}
	}
	return false, nil
}

// finish takes a seat to the end, held or left, from its first view, or from what went wrong before.
func (c *seat) finish(ctx context.Context, v seatView, err error) error {
	for err == nil && c.hold == nil {
		if slot, expect, free := c.pick(v); free {
			v, err = c.take(ctx, slot, expect)
		} else if err = c.await(ctx, v); err == nil {
			v, err = c.look(ctx)
		}
	}
	if err != nil {
		return c.leave(err)
	}
	return nil
}

// take is the Txn that takes a slot (M2), whose record has mod revision expect, 0 for none. Else it is a look. It may
// be repeated at will.
func (c *seat) take(ctx context.Context, slot int, expect int64) (seatView, error) {
	c.slot = slot
	c.announce()
	got, err := c.insist(ctx, func() (cmps []clientv3.Cmp, then, orElse []clientv3.Op) {
		cmps, then = c.taking(slot, expect)
		cmps = append(append(cmps, c.m.alone()...),
			clientv3.Compare(clientv3.ModRevision(c.key), "=", c.rev),
			clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.s.lease))
		then = append(then, c.putKey())
		return cmps, append(then, c.looks(c.rev)...), c.looks(c.rev)
	})
	if err != nil {
		return seatView{}, err
	}
	v := c.parse(got)
	return v, c.judge(v)
}

// taking are the compares and puts of a slot's key and record.
func (c *seat) taking(slot int, expect int64) (cmps []clientv3.Cmp, then []clientv3.Op) {
	m := c.m
	cmps = []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(m.slots.at(slot)), "=", 0)}
	then = []clientv3.Op{clientv3.OpPut(m.slots.at(slot), leaseName(c.s.lease), clientv3.WithLease(c.s.lease))}
	if m.opts.Settle.on() {
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(m.open.at(slot)), "=", expect))
		then = append(then, c.putRecord(m.open.at(slot)))
		if expect != 0 {
			rec := c.settlers[slot].rec
			then = append(then, clientv3.OpPut(m.last.at(slot), encodeEnd(rec.mod, embed(rec.Holder), EndExpired)))
		}
	}
	return cmps, then
}

// look reads how things are, until it is answered.
func (c *seat) look(ctx context.Context) (seatView, error) {
	got, err := c.insist(ctx, func() (cmps []clientv3.Cmp, then, orElse []clientv3.Op) { return nil, c.looks(c.rev), nil })
	if err != nil {
		return seatView{}, err
	}
	v := c.parse(got)
	return v, c.judge(v)
}

// judge reads a view against the seat: whether it lost its key, holds a slot, or may go on.
func (c *seat) judge(v seatView) error {
	if why := c.claim.mine(v.own); why != nil {
		c.claim.lose(why)
		return context.Cause(c.claim.ctx)
	}
	// The slot that was taken came with the last put of the own key (M2).
	for slot, kv := range v.slots {
		if c.mine(kv) && kv.CreateRevision == v.own.ModRevision {
			c.held(slot, v)
			return nil
		}
	}
	if v.own.ModRevision != c.rev { // it was taken, and the slot's key has gone since
		c.claim.lose(ErrKeyGone)
		return context.Cause(c.claim.ctx)
	}
	c.see(v)
	return c.m.refusal(v)
}

// held registers the slot's key: from here on it is watched and read as the own key is (M3).
func (c *seat) held(slot int, v seatView) {
	c.slot, c.slotRev = slot, v.slots[slot].CreateRevision
	if rec := DecodeRecord(v.records[slot], time.Second); rec.of(c.s.lease, c.n) {
		c.open = rec.mod
	}
	c.hold = c.s.holdUnder(c.claim.ctx, c.m.slots.at(slot), c.slotRev, v.rev)
}

// leave ends the attempt: what it owns goes, each under its own guard (M4).
func (c *seat) leave(why error) error {
	if c.claim == nil {
		return why
	}
	if c.hold != nil {
		c.hold.drop(why)
	}
	why = c.attempt.leave(why, c.keys())
	if c.doubt && !c.left {
		c.sweep()
	}
	return why
}

// sweep gives back a slot that a request without an answer took after all, though another was tried since: it is
// called when the own key has gone, so that none can land any more. What it does not reach goes with the lease.
func (c *seat) sweep() {
	ctx, cancel := c.s.cleanup()
	defer cancel()
	got, err := c.s.cli.Get(ctx, c.m.slots.own, clientv3.WithPrefix())
	if err != nil {
		return
	}
	for slot, kv := range c.m.slots.bySlot(got.Kvs, c.m.opts.Max) {
		if c.mine(kv) {
			c.slot, c.slotRev, c.open = slot, kv.CreateRevision, 0
			_ = c.s.release(ctx, c.keys(), EndReleased)
		}
	}
}

// keys is what the attempt owns in etcd.
func (c *seat) keys() TermKeys {
	k := TermKeys{Key: c.key, Rev: c.rev, Lease: c.s.lease, N: c.n, Holder: embed(c.identity)}
	if c.slot >= 0 {
		k.Slot, k.SlotRev = c.m.slots.at(c.slot), c.slotRev
		if c.m.opts.Settle.on() {
			k.Open, k.OpenRev, k.Last = c.m.open.at(c.slot), c.open, c.m.last.at(c.slot)
		}
	}
	return k
}
