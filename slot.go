package coord

import (
	"path"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// slotNumber is the number that a slot's key or record ends in; -1 where it is none.
func slotNumber(kv *mvccpb.KeyValue) int { return numberOf(path.Base(string(kv.Key))) }

// see takes in what a view shows of the records, and of the keys of their holds (M7).
func (c *seat) see(v seatView) {
	for slot := range c.settlers {
		if v.records[slot] == nil {
			delete(c.settlers, slot)
		}
	}
	for slot, kv := range v.records {
		t := c.settlers[slot]
		if t == nil {
			t = &settler{SettleOptions: c.m.opts.Settle}
			c.settlers[slot] = t
		}
		rec := DecodeRecord(kv, c.s.bounds.TTL)
		t.see(rec, holdsSlot(rec, v.slots[slot]), v.at)
		t.answer(c.answers[slot])
	}
}

// holdsSlot reports whether kv is the slot's key of the recorded hold. Of a record that cannot be read, any is.
func holdsSlot(rec Record, kv *mvccpb.KeyValue) bool {
	return kv != nil && (rec.Lease == 0 || kv.Lease == int64(rec.Lease) && kv.CreateRevision <= rec.mod)
}

// entitled reports whether fewer than max are older (M1).
func (c *seat) entitled(v seatView) bool { return len(v.older) < c.m.opts.Max }

// pick chooses a slot that the seat may take now, and says which mod revision its record has: 0 for none. Those who
// are entitled at the same time choose different ones, as far as they can know.
func (c *seat) pick(v seatView) (slot int, expect int64, ok bool) {
	if !c.entitled(v) {
		return 0, 0, false
	}
	var clean []int
	for slot := range c.m.opts.Max {
		if v.slots[slot] == nil && v.records[slot] == nil {
			clean = append(clean, slot)
		}
	}
	if len(clean) > 0 {
		return clean[c.ahead(v)%len(clean)], 0, true
	}
	slot, until, found := c.soonest(v)
	if !found || until > c.s.clock() {
		return 0, 0, false
	}
	return slot, c.settlers[slot].rec.mod, true
}

// ahead counts those who are older and have no slot yet.
func (c *seat) ahead(v seatView) int {
	seated := map[string]bool{}
	for _, kv := range v.slots {
		seated[candidateKey(c.m.queue.own, clientv3.LeaseID(kv.Lease))] = true
	}
	n := 0
	for _, kv := range v.older {
		if !seated[string(kv.Key)] {
			n++
		}
	}
	return n
}

// soonest is the free slot whose recorded hold is over first, and when that is.
func (c *seat) soonest(v seatView) (slot int, until time.Duration, found bool) {
	for s, t := range c.settlers {
		if over := t.until(); v.slots[s] == nil && (!found || over < until || over == until && s < slot) {
			slot, until, found = s, over, true
		}
	}
	return slot, until, found
}
