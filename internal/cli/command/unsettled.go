package command

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
)

// Whether the first in a queue leads is decided by the open record beside it: where another hold's stands, it settles.
// A follower watches the queue, and each change of leader is told with the record as it was at that revision. While
// somebody settles it watches the record as well, and tells of the same leader once more when that is over.

// unsettledBy is the open record that keeps first from leading; nil where it leads. kvs is what was read of the record.
// Nobody first has nobody to wait.
func unsettledBy(office string, first coord.Candidate, kvs []*mvccpb.KeyValue) *openHold {
	if first.Token == 0 || len(kvs) == 0 {
		return nil
	}
	if open := readOpen(kvs[0]); !open.of(office, first) {
		return open
	}
	return nil
}

// tell says who leads, unless that was said last. told is false where etcd did not answer what it takes to say it.
func (f *follower) tell(ctx context.Context) (told bool, err error) {
	leader := f.leader()
	if f.told && leader == f.last {
		return true, nil
	}
	// Who was said to settle may have led for a moment, before the change that is to be told.
	if f.unsettled != nil && leader.Token != f.last.Token {
		was, err := f.unsettledAt(ctx, f.last, f.rev-1)
		if err != nil {
			f.hear(ctx, err)
			return false, nil
		}
		if was == nil {
			if err := f.settled(); err != nil {
				return false, err
			}
		}
	}
	unsettled, err := f.unsettledAt(ctx, leader, f.rev)
	if err != nil {
		f.hear(ctx, err)
		return false, nil
	}
	f.told, f.last, f.unsettled = true, leader, unsettled
	return true, f.say(leader, unsettled)
}

// settled says that the leader that was told of waits for nothing any more.
func (f *follower) settled() error {
	f.unsettled = nil
	return f.say(f.last, nil)
}

// unsettledAt is what kept first from leading at a revision, or does now where that revision is compacted.
func (f *follower) unsettledAt(ctx context.Context, first coord.Candidate, rev int64) (*openHold, error) {
	if first.Token == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.within)
	defer cancel()
	open, _ := hold.OfficeKeys(f.office)
	got, err := f.client.Get(ctx, open.String(), clientv3.WithRev(rev))
	if errors.Is(err, rpctypes.ErrCompacted) {
		got, err = f.client.Get(ctx, open.String())
	}
	if err != nil {
		return nil, err
	}
	return unsettledBy(f.office, first, got.Kvs), nil
}
