package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
	"github.com/go-coord/coord/internal/view/live"
)

// evictNeeds are what it takes to ask a holder to leave, or to take its keys away. A put on a lease takes permission to write
// every key that is on it, so whoever asks may write the holder's own keys as well.
func evictNeeds(n view.Name, force bool) (all []cli.Need) {
	for _, key := range n.Ranges() {
		all = append(all, cli.Need{Key: key, Writes: false})
	}
	writes := []string{hold.ElectRange(n.Name)}
	if n.Kind == hold.KindSema {
		writes = []string{hold.SemaRange(n.Name), hold.SlotPrefix(n.Name) + "/"}
	}
	if !force {
		writes = append(writes, hold.EvictRange(n.Kind, n.Name))
		if n.Kind == hold.KindSema {
			writes = append(writes, hold.AreaRange(hold.AreaSpread)+n.Name+"/")
		}
	}
	for _, key := range writes {
		all = append(all, cli.Need{Key: key, Writes: true})
	}
	return all
}

// request asks the holder to leave, or takes its keys away, in one transaction that does nothing unless the hold is there as
// it was seen: by then it may be somebody else's.
func (e *eviction) request(ctx context.Context, seat view.Seat) error {
	then, guards := e.ask(seat)
	if e.force {
		then, guards = takeAway(e.name, seat)
	}
	there, err := e.commit(ctx, guards, then)
	switch {
	case err != nil:
		return lacking(e.client, e.Settings, evictNeeds(e.name, e.force), err)
	case !there:
		return e.missed(ctx, seat)
	}
	return nil
}

// ask is the request, on the lease of the hold, so that it goes with it.
func (e *eviction) ask(seat view.Seat) (then []clientv3.Op, guards []clientv3.Cmp) {
	by := hold.Eviction{Host: hostname(), PID: os.Getpid(), At: time.Now(), Cooldown: e.cooldown}
	key := hold.EvictKey(e.name.Kind, e.name.Name, seat.Lease).String()
	for k, create := range keysOf(e.name, seat) {
		guards = append(guards,
			clientv3.Compare(clientv3.CreateRevision(k), "=", create), clientv3.Compare(clientv3.LeaseValue(k), "=", seat.Lease))
	}
	return []clientv3.Op{clientv3.OpPut(key, by.Encode(), clientv3.WithLease(clientv3.LeaseID(seat.Lease)))}, guards
}

// takeAway deletes the keys of a hold, each guarded by its own create revision, and leaves the record of it: who comes next
// waits until nothing of the child is left.
func takeAway(n view.Name, seat view.Seat) (then []clientv3.Op, guards []clientv3.Cmp) {
	for k, create := range keysOf(n, seat) {
		guards = append(guards, clientv3.Compare(clientv3.CreateRevision(k), "=", create))
		then = append(then, clientv3.OpDelete(k))
	}
	return then, guards
}

// keysOf are the keys that a hold consists of, with their create revisions.
func keysOf(n view.Name, seat view.Seat) map[string]int64 {
	keys := map[string]int64{seat.Key: seat.Create}
	if seat.Slot >= 0 {
		keys[hold.SlotKey(n.Name, seat.Max, seat.Slot).String()] = int64(seat.Token)
	}
	return keys
}

// requestTry bounds one attempt at the transaction. An attempt without an answer may have been made all the same, so it is
// repeated, which changes nothing.
const requestTry = 2 * time.Second

// commit makes the transaction. there is false where the hold was not as it had been seen; where an earlier attempt may have
// come in between, it counts as made.
func (e *eviction) commit(ctx context.Context, guards []clientv3.Cmp, then []clientv3.Op) (there bool, err error) {
	maybe := false
	err = e.Reach(ctx, e.client, func(ctx context.Context) error {
		for {
			try, cancel := context.WithTimeout(ctx, requestTry)
			got, err := e.client.Txn(try).If(guards...).Then(then...).Commit()
			late := try.Err() != nil && ctx.Err() == nil
			cancel()
			if err == nil {
				there = got.Succeeded || maybe
				return nil
			}
			if maybe = maybe || late || cli.Undecided(err); !late {
				return err
			}
		}
	})
	if maybe && errors.Is(err, hold.ErrUnreachable) {
		err = fmt.Errorf("%w; whether the request has arrived is not known", err)
	}
	return there, err
}

// missed says who holds, where the hold that was meant ended before it could be asked.
func (e *eviction) missed(ctx context.Context, seat view.Seat) error {
	is, err := live.Look(ctx, e.client, e.name)
	if err != nil {
		return cli.Classify(err)
	}
	return notEvicted("%s, left before it was asked; %s", tokenText(seat), holdersText(is))
}
