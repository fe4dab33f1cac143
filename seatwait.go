package coord

import (
	"context"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// await waits for what may let the seat go on, as v shows things.
func (c *seat) await(ctx context.Context, v seatView) error {
	if c.entitled(v) {
		return c.awaitSlot(ctx, v)
	}
	return c.awaitTurn(ctx, v)
}

// awaitTurn waits until fewer than max are older.
//
// Holders leave in any order, so it is not one predecessor that is waited for. Each waiter counts the ends of those who
// are older, and asks etcd nothing before enough of them have gone: a release is heard by all who wait and moves one. Of
// a long queue the youngest are counted; who comes early by that looks and waits again.
func (c *seat) awaitTurn(ctx context.Context, v seatView) error {
	max := c.m.opts.Max
	ahead := map[string]bool{}
	for _, kv := range v.older {
		ahead[string(kv.Key)] = true
	}
	c.tell(Waiting{Position: len(v.older) - max + 1})
	turn := c.s.peekRange(c.m.queue.own, v.rev+1, max, func(key string) bool {
		delete(ahead, key)
		return len(ahead) < max
	}, clientv3.WithMaxCreateRev(c.rev-1), clientv3.WithLimit(int64(max)))
	ask := func(context.Context) {}
	if len(v.older) < max+askers && c.m.opts.Settle.on() {
		ask = c.poll
	}
	return c.until(ctx, 0, ask, turn)
}

// awaitSlot waits until a slot or a record goes, or a slot is settled. Who is entitled finds no slot where a holder
// that has lost its place has not given its slot back yet, or where all that are free are to be settled.
func (c *seat) awaitSlot(ctx context.Context, v seatView) error {
	any := func(string) bool { return true }
	peeks := []*peek{c.s.peekRange(c.m.slots.own, v.rev+1, len(v.slots), any)}
	ask, deadline, told := func(context.Context) {}, time.Duration(0), Waiting{Position: 1}
	if c.m.opts.Settle.on() {
		peeks, ask = append(peeks, c.s.peekRange(c.m.open.own, v.rev+1, len(v.records), any)), c.poll
	}
	if slot, until, found := c.soonest(v); found {
		deadline, told = until, Waiting{Settling: until - c.s.clock(), Record: c.settlers[slot].rec}
	}
	c.tell(told)
	return c.until(ctx, deadline, ask, peeks...)
}

// What asking may cost. A host that dies can take several holds with it, so it is not the first waiter alone that has
// to have seen them run down; and of many slots not all can be asked for at once. Who has not asked settles in full.
const (
	askers   = 4  // waiters who ask
	askAbout = 16 // slots that one asks about in a fifth of a TTL
)

// poll asks how the leases of the recorded holds run down (R5), until ctx ends.
func (c *seat) poll(ctx context.Context) {
	next := time.NewTimer(c.s.bounds.TTL / 5)
	defer next.Stop()
	for from := 0; ; from += askAbout {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		pause := c.s.bounds.TTL / 5
		held := c.recorded(ctx)
		slots := slices.Sorted(maps.Keys(held))
		for i := range min(askAbout, len(slots)) {
			slot := slots[(from+i)%len(slots)]
			a, err := c.s.askTTL(ctx, held[slot], c.m.slots.at(slot))
			if err == nil {
				c.answers[slot] = a
			}
			pause = min(pause, held[slot].again(a))
		}
		next.Reset(pause)
	}
}

// recorded are the records of the holds whose slots' keys are there, as of now; none where etcd does not answer.
func (c *seat) recorded(ctx context.Context) map[int]Record {
	ctx, cancel := c.s.try(ctx)
	defer cancel()
	got, err := c.s.cli.Txn(ctx).Then(c.looks(c.rev)...).Commit()
	if err != nil {
		return nil
	}
	v, held := c.parse(got), map[int]Record{}
	for slot, kv := range v.records {
		if rec := DecodeRecord(kv, c.s.bounds.TTL); rec.Lease != 0 && holdsSlot(rec, v.slots[slot]) {
			held[slot] = rec
		}
	}
	return held
}
