package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
)

// Asking is a request for a start, as the command line puts it.
type Asking struct {
	Job  string
	Tick int64
	Host string // of a job that runs on all hosts: on which one
	Want record.Want
	// Room is how many starts may follow this one under the next numbers, each in the place of the one before: retries, and what is queued. They
	// are not given to anybody else.
	Room    int
	SpecRev int64 // mod revision of the job that was read
	// PauseRev is the mod revision of the cluster's pause that was read; 0: there was none.
	PauseRev int64
}

// ErrChanged is returned when what a request rests on has changed since it was read: read again.
var ErrChanged = errors.New("cron: changed meanwhile")

// askTries is how many numbers are tried: who loses one lost it to another request for the same tick.
const askTries = 10

// Ask puts a request under the first number of its tick that is free, with room for what may follow it, and gives its id. It is put only if the job and the cluster's
// pause are those that were read, so that none comes in behind a pause that was acknowledged. An error that wraps ErrUndecided says that
// nobody knows whether it stands.
func Ask(ctx context.Context, client *clientv3.Client, a Asking) (record.ID, error) {
	for range askTries {
		id, err := a.free(ctx, client)
		if err != nil {
			return record.ID{}, err
		}
		want, fire := record.Key(record.Wants, a.Job, id), record.Key(record.Fires, a.Job, id)
		ground := []clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(record.JobKey(a.Job)), "=", a.SpecRev),
			clientv3.Compare(clientv3.ModRevision(record.Pause), "=", a.PauseRev),
		}
		got, err := client.Txn(ctx).If(append(ground, absent(want), absent(fire))...).
			Then(clientv3.OpPut(want, record.Encode(a.Want))).
			Else(clientv3.OpGet(record.JobKey(a.Job), clientv3.WithKeysOnly()), clientv3.OpGet(record.Pause, clientv3.WithKeysOnly())).Commit()
		switch {
		case err != nil:
			return a.readBack(id, client, err)
		case got.Succeeded:
			return id, nil
		case modOf(got.Responses[0].GetResponseRange()) != a.SpecRev, modOf(got.Responses[1].GetResponseRange()) != a.PauseRev:
			return record.ID{}, ErrChanged
		}
	}
	return record.ID{}, ErrChanged
}

// free is the first number of the tick that nobody has claimed or asked for. Numbers go by blocks, of one start and what may follow it; the
// first block is that of the tick itself.
func (a *Asking) free(ctx context.Context, client *clientv3.Client) (record.ID, error) {
	var ops []clientv3.Op
	areas := []string{record.Fires, record.Wants, record.Results}
	for _, area := range areas {
		ops = append(ops, clientv3.OpGet(record.Range(area, a.Job)+strconv.FormatInt(a.Tick, 10), clientv3.WithPrefix(), clientv3.WithKeysOnly()))
	}
	got, err := client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return record.ID{}, fmt.Errorf("read claims: %w", err)
	}
	taken := map[record.ID]bool{}
	for i, area := range areas {
		for _, kv := range got.Responses[i].GetResponseRange().Kvs {
			if _, id, err := record.ParseKey(area, string(kv.Key)); err == nil {
				taken[id] = true
			}
		}
	}
	id := record.ID{Tick: a.Tick, N: 1 + a.Room, Host: a.Host}
	for a.blocked(taken, id) {
		id.N += 1 + a.Room
	}
	return id, nil
}

// blocked reports whether anything of a block is taken.
func (a *Asking) blocked(taken map[record.ID]bool, id record.ID) bool {
	for range 1 + a.Room {
		if taken[id] {
			return true
		}
		id = Asked(id)
	}
	return false
}

// readBack finds out whether a request stands whose answer was lost.
func (a *Asking) readBack(id record.ID, client *clientv3.Client, lost error) (record.ID, error) {
	if err := decided(lost); !errors.Is(err, ErrUndecided) {
		return record.ID{}, fmt.Errorf("put request: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), readBackWithin)
	defer cancel()
	got, err := client.Get(ctx, record.Key(record.Wants, a.Job, id))
	if err == nil && len(got.Kvs) > 0 && string(got.Kvs[0].Value) == record.Encode(a.Want) {
		return id, nil
	}
	return record.ID{}, fmt.Errorf("put request: %w", decided(lost))
}

// Killing asks for the end of a start.
type Killing struct {
	Job     string
	ID      record.ID
	OpenRev int64 // create revision of its open record
	Lease   int64 // of the daemon that runs it: the request goes with it
	Kill    record.Kill
}

// ErrNoDaemon is returned when the session of the daemon that runs something is over: there is nobody to ask.
var ErrNoDaemon = errors.New("cron: the daemon is gone")

// Ask puts the request. there is false where the start has ended meanwhile.
func (k Killing) Ask(ctx context.Context, client *clientv3.Client) (there bool, err error) {
	got, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(record.OpenKey(k.Job, k.ID)), "=", k.OpenRev)).
		Then(clientv3.OpPut(record.Key(record.Kills, k.Job, k.ID), record.Encode(k.Kill), clientv3.WithLease(clientv3.LeaseID(k.Lease)))).
		Commit()
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return false, ErrNoDaemon
	case err != nil:
		return false, fmt.Errorf("ask for the end: %w", err)
	}
	return got.Succeeded, nil
}
