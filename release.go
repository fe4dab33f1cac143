package coord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TermKeys names what one term owns in etcd. It survives JSON, so that a second process can end the term
// of one that died; it holds no secrets.
type TermKeys struct {
	Key     string           `json:"key"`
	Rev     int64            `json:"rev"` // create revision of Key; of an election: the token
	Lease   clientv3.LeaseID `json:"lease"`
	N       int64            `json:"n"`                  // which attempt of its session: names the record, with Lease
	Open    string           `json:"open,omitempty"`     // open record; "" without settling
	OpenRev int64            `json:"open_rev,omitempty"` // its mod revision; 0: not known to be open
	Last    string           `json:"last,omitempty"`
	Holder  json.RawMessage  `json:"holder,omitempty"`
	Slot    string           `json:"slot,omitempty"`     // key of the slot; "" of an election
	SlotRev int64            `json:"slot_rev,omitempty"` // its create revision: then that is the token
}

// Token is the fencing token of the term; see [Term.Token].
func (k TermKeys) Token() uint64 { return uint64(cmp.Or(k.SlotRev, k.Rev)) }

// Release deletes the key, or both of a slot, and closes the record, each if it is still this term's, in
// one Txn; then it revokes the lease. It is called when the work done under the term is over,
// by whoever knows that. It may be repeated; it retries until the answer is definite or ctx ends.
func (k TermKeys) Release(ctx context.Context, cli *clientv3.Client, how End) error {
	if err := k.release(ctx, cli, how, true, releaseTry); err != nil {
		return err
	}
	try, cancel := context.WithTimeout(ctx, releaseTry)
	defer cancel()
	if _, err := cli.Revoke(try, k.Lease); err != nil && !definite(err) {
		return fmt.Errorf("revoke lease %x: %w", int64(k.Lease), err)
	}
	return nil
}

// CloseRecord closes the record alone, if it is still this term's, and leaves the keys to their owner.
func (k TermKeys) CloseRecord(ctx context.Context, cli *clientv3.Client, how End) error {
	return k.release(ctx, cli, how, false, releaseTry)
}

// releaseTry bounds one request of a release that has no session to take a bound from.
const releaseTry = 2500 * time.Millisecond

// releaseOn goes on releasing for as long as the session lives.
func (s *Session) releaseOn(k TermKeys, how End) {
	s.spawn(func() {}, func() { _ = k.release(s.ctx, s.cli, how, true, s.tryFor()) })
}

// release of a session's own keys: the context bounds it, but it is tried once even where that has ended.
func (s *Session) release(ctx context.Context, k TermKeys, how End) error {
	return k.release(ctx, s.cli, how, true, s.tryFor())
}

// giveUp releases what a term owned. One key without a record goes with those of other terms (partings.go), guarded by
// its mod revision: the term was proven on its own lease (C1), so a key that nobody has put since is still its own, and
// one that somebody has put is looked at by release, as is what was not deleted for any other reason.
func (s *Session) giveUp(ctx context.Context, k TermKeys, how End) error {
	if k.Slot == "" && k.Open == "" {
		gone, err := s.hub.parts.delete(k.Key, k.Rev, s.tryFor())
		switch {
		case gone:
			return nil
		case err != nil && !definite(err) && ctx.Err() != nil:
			return fmt.Errorf("release %q: %w: %w", k.Key, ErrUndecided, err) // that was the one try
		}
	}
	return s.release(ctx, k, how)
}

// release is the one Txn that ends a hold, repeated until nothing of the term is left, or ctx ends after
// the first try. A Txn whose reply was lost is found out by the next one.
func (k TermKeys) release(ctx context.Context, cli *clientv3.Client, how End, withKeys bool, bound time.Duration) error {
	pause := backoff{low: 20 * time.Millisecond, high: time.Second}
	left := leftover{record: k.OpenRev}
	if withKeys {
		left.key, left.slot = true, k.SlotRev
	}
	for {
		try, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
		now, err := k.releaseOnce(try, cli, how, withKeys, left)
		cancel()
		switch {
		case err == nil && now == (leftover{}):
			return nil
		case err == nil:
			left = now
		case errors.Is(err, rpctypes.ErrNoSpace) && k.Last != "":
			k.Last = "" // an etcd that is full deletes, but takes no word of how it ended
		case definite(err) || !pause.pause(ctx):
			return fmt.Errorf("release %q: %w: %w", k.Key, ErrUndecided, err)
		}
	}
}

// leftover is what is known to be left of a term, and is to go.
type leftover struct {
	key    bool
	slot   int64 // create revision of the slot's key; 0: gone, another hold's, or not to go
	record int64 // mod revision of the record; 0: closed, or another hold's
}

// releaseOnce deletes what is left of the term, guarded by what is known of it: the keys by their create revisions
// and lease, the record by its mod revision. Nothing waits for anything else: where the lease was revoked a moment
// before, one Txn still closes the record. What is not known to be gone then is looked at.
func (k TermKeys) releaseOnce(ctx context.Context, cli *clientv3.Client, how End, withKeys bool, left leftover) (leftover, error) {
	cmps, then := k.drops(how, left)
	look := []clientv3.Op{clientv3.OpGet(k.Key)}
	for _, key := range []string{k.Slot, k.Open} {
		if key != "" {
			look = append(look, clientv3.OpGet(key))
		}
	}
	// What may be there although it is not known of is looked at; the rest is gone with the Txn.
	unknown := withKeys && k.Slot != "" && left.slot == 0 || k.Open != "" && left.record == 0
	if unknown || len(then) == 0 {
		then = append(then, look...)
	}
	got, err := cli.Txn(ctx).If(cmps...).Then(then...).Else(look...).Commit()
	switch {
	case err != nil:
		return leftover{}, err
	case got.Succeeded && !unknown && len(cmps) > 0:
		return leftover{}, nil
	}

	// The look is the last of the replies.
	replies := got.Responses[len(got.Responses)-len(look):]
	var now leftover
	own := func(kv *mvccpb.KeyValue) bool { return withKeys && kv != nil && kv.Lease == int64(k.Lease) }
	if kv := first(replies[0]); own(kv) && kv.CreateRevision == k.Rev {
		now.key = true
	}
	if k.Slot != "" {
		// An attempt that left without an answer does not know whether it had the slot: its lease says so.
		if kv := first(replies[1]); own(kv) && (k.SlotRev == 0 || kv.CreateRevision == k.SlotRev) {
			now.slot = kv.CreateRevision
		}
	}
	if k.Open != "" {
		if rec := DecodeRecord(first(replies[len(replies)-1]), time.Second); rec.of(k.Lease, k.N) {
			now.record = rec.mod
		}
	}
	return now, nil
}

// guarded are operations that are done if their compares hold.
type guarded struct {
	cmps []clientv3.Cmp
	ops  []clientv3.Op
}

// drops are the deletes of what is left, each under its own guard: the last is that of the whole Txn, the others
// are nested in its branch.
func (k TermKeys) drops(how End, left leftover) (cmps []clientv3.Cmp, then []clientv3.Op) {
	var parts []guarded
	drop := func(key string, rev int64) {
		parts = append(parts, guarded{[]clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(key), "=", rev), clientv3.Compare(clientv3.LeaseValue(key), "=", k.Lease),
		}, []clientv3.Op{clientv3.OpDelete(key)}})
	}
	if left.key {
		drop(k.Key, k.Rev)
	}
	if left.slot != 0 {
		drop(k.Slot, left.slot)
	}
	if left.record != 0 {
		closing := guarded{[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(k.Open), "=", left.record)}, []clientv3.Op{clientv3.OpDelete(k.Open)}}
		if k.Last != "" {
			closing.ops = append(closing.ops, clientv3.OpPut(k.Last, encodeEnd(int64(k.Token()), k.Holder, how)))
		}
		parts = append(parts, closing)
	}
	for i, p := range parts {
		if i == len(parts)-1 {
			return p.cmps, append(then, p.ops...)
		}
		then = append(then, clientv3.OpTxn(p.cmps, p.ops, nil))
	}
	return nil, nil
}
