package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
)

// End is the end of a start.
type End struct {
	Job     string
	ID      record.ID
	OpenRev int64 // create revision of its open record
	Result  *record.Result
	Retain  time.Duration
	// Settled: somebody else's start, whose run marker must not stand.
	Settled bool
	// Again, if not nil, asks for another attempt, under the number Next or a later one.
	Again *record.Want
	Next  record.ID
}

// Finish writes the result and takes the start away, in one transaction: a start never goes without a word of how it ended. was is
// false where somebody else said before how it ended: then that counts, and nothing is written.
func (s *Store) Finish(ctx context.Context, e End) (was bool, err error) {
	for range askTries {
		if was, err = s.finish(ctx, e); was || err != nil || e.Again == nil {
			return was, err
		}
		// Perhaps it was only the number.
		free, err := s.free(ctx, e.Job, e.Next)
		if free || err != nil {
			return false, err
		}
		e.Next.N++
	}
	return false, nil
}

func (s *Store) finish(ctx context.Context, e End) (was bool, err error) {
	cmps := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(record.OpenKey(e.Job, e.ID)), "=", e.OpenRev)}
	if e.Settled {
		cmps = append(cmps, absent(record.Key(record.Runs, e.Job, e.ID)))
	}
	_, was, err = s.commit(ctx, e.Job, []time.Duration{e.Retain}, func(leases []clientv3.LeaseID) ([]clientv3.Cmp, []clientv3.Op) {
		ops := []clientv3.Op{
			clientv3.OpDelete(record.OpenKey(e.Job, e.ID)),
			clientv3.OpDelete(record.Key(record.Runs, e.Job, e.ID)),
			clientv3.OpDelete(record.Key(record.Kills, e.Job, e.ID)),
			putResult(e.Result, leases[0]),
		}
		if e.Again == nil {
			return cmps, ops
		}
		again := clientv3.OpPut(record.Key(record.Wants, e.Job, e.Next), record.Encode(e.Again))
		return append(slices.Clone(cmps), unused(e.Job, e.Next)...), append(ops, again)
	})
	return was, err
}

func putResult(r *record.Result, lease clientv3.LeaseID) clientv3.Op {
	return clientv3.OpPut(record.Results+r.RunID, record.Encode(r), clientv3.WithLease(lease))
}

// historyPage is how many results are read at once.
const historyPage = 200

// Prune deletes the oldest results of a job beyond a number for each class: those that succeeded, and each other status by itself.
func (s *Store) Prune(ctx context.Context, job string, ok, other int) error {
	from, end := record.Range(record.Results, job), clientv3.GetPrefixRangeEnd(record.Range(record.Results, job))
	seen := map[record.Status]int{}
	// From the newest to the oldest: keys are ticks with as many digits until the year 2286.
	for {
		got, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(historyPage),
			clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
		if err != nil {
			return fmt.Errorf("read results: %w", err)
		}
		var over []clientv3.Op
		for _, kv := range got.Kvs {
			r, _ := record.Decode[record.Result](kv.Value)
			seen[r.Status]++
			if most := map[bool]int{true: ok, false: other}[r.Status == record.Success]; seen[r.Status] > most {
				over = append(over, clientv3.OpDelete(string(kv.Key)))
			}
			end = string(kv.Key)
		}
		for batch := range slices.Chunk(over, txnMost) {
			if _, err := s.client.Txn(ctx).Then(batch...).Commit(); err != nil {
				return fmt.Errorf("delete results: %w", err)
			}
		}
		if !got.More {
			return nil
		}
	}
}

// txnMost is how many operations a transaction may have.
const txnMost = 100
