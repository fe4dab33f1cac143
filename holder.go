package coord

import (
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Holder is a candidate of a semaphore. Of one that holds, Token is the create revision of its slot's key.
type Holder struct {
	Candidate
	Max  int // under which it stands
	Slot int // that it holds; -1: none yet
}

// Holders reads who holds, linearizably, in the order of their slots.
func (m *Semaphore) Holders(ctx context.Context) ([]Holder, error) {
	all, err := ListHolders(ctx, m.cli, m.opts.Key, m.opts.Slots)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(h Holder) bool { return h.Max != m.opts.Max || h.Slot < 0 })
	slices.SortFunc(all, func(a, b Holder) int { return a.Slot - b.Slot })
	return all, nil
}

// ListHolders reads who holds and who waits, linearizably, under whatever max, in the order in which they came. A slot
// whose holder has lost its place in the queue, and has not given it back, is there too, with the Key of the slot. key
// and slots are those of [SemaphoreOptions]; slots may be empty for the default.
func ListHolders(ctx context.Context, cli *clientv3.Client, key, slots string) ([]Holder, error) {
	queue, seats := newWard(key, 0), newWard(slotsOf(key, slots), 0)
	got, err := cli.Txn(ctx).Then(
		clientv3.OpGet(queue.all, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
		clientv3.OpGet(seats.all, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
	).Commit()
	if err != nil {
		return nil, fmt.Errorf("read holders of %q: %w", key, err)
	}
	taken := got.Responses[1].GetResponseRange().Kvs
	var all []Holder
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		h := Holder{Candidate: CandidateOf(kv), Max: queue.maxOf(string(kv.Key)), Slot: -1}
		i := slices.IndexFunc(taken, func(slot *mvccpb.KeyValue) bool {
			return slot.Lease == kv.Lease && seats.maxOf(string(slot.Key)) == h.Max
		})
		if i >= 0 {
			h.Slot, h.Token = slotNumber(taken[i]), uint64(taken[i].CreateRevision)
			taken = slices.Delete(taken, i, i+1)
		}
		all = append(all, h)
	}
	for _, kv := range taken {
		h := Holder{Candidate: CandidateOf(kv), Max: seats.maxOf(string(kv.Key)), Slot: slotNumber(kv)}
		h.Identity = ""
		all = append(all, h)
	}
	return all, nil
}
