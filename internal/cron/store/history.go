package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
)

// History reads results of a job that are wanted, at most limit of the newest, the oldest first. Ids are ordered as keys are, by ticks
// with as many digits until the year 2286. What cannot be read is left out.
func History(ctx context.Context, client *clientv3.Client, job string, limit int, wanted func(*record.Result) bool) ([]record.Result, error) {
	var all []record.Result
	from, end := record.Range(record.Results, job), clientv3.GetPrefixRangeEnd(record.Range(record.Results, job))
	for {
		got, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(historyPage),
			clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
		if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		for _, kv := range got.Kvs {
			end = string(kv.Key)
			if r, ok := ReadResult(kv); ok && wanted(&r) {
				all = append(all, r)
			}
			if len(all) == limit {
				break
			}
		}
		if !got.More || len(all) == limit {
			slices.Reverse(all)
			return all, nil
		}
	}
}

// coveringMost is how many results are looked at for one that covers a tick: between them and the tick there are at most those of starts
// that somebody asked for while the range went on.
const coveringMost = 1000

// About reads all results of a tick, and the one of a range that covers it, which has Ticks.
func About(ctx context.Context, client *clientv3.Client, job string, tick int64) (all []record.Result, err error) {
	below := record.Range(record.Results, job)
	from, end := below+strconv.FormatInt(tick, 10), clientv3.GetPrefixRangeEnd(below)
	for seen := 0; seen < coveringMost; {
		got, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(historyPage))
		if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		for _, kv := range got.Kvs {
			seen++
			from = string(kv.Key) + "\x00"
			r, ok := ReadResult(kv)
			switch {
			case !ok:
			case r.Ticks > 0 && r.From <= tick && tick <= r.Tick:
				return append(all, r), nil
			case r.Tick == tick:
				all = append(all, r)
			}
		}
		if !got.More {
			break
		}
	}
	return all, nil
}

// ResultOf reads how one start ended; ok is false where nobody has said so yet, or does any more.
func ResultOf(ctx context.Context, client *clientv3.Client, job string, id record.ID) (r record.Result, ok bool, err error) {
	got, err := client.Get(ctx, record.Key(record.Results, job, id))
	if err != nil {
		return record.Result{}, false, fmt.Errorf("read result: %w", err)
	}
	if len(got.Kvs) > 0 {
		r, ok = ReadResult(got.Kvs[0])
	}
	return r, ok, nil
}

// ReadResult reads a result where it stands. Its key says what it is about, whatever it says itself; ok is false for what is none.
func ReadResult(kv *mvccpb.KeyValue) (r record.Result, ok bool) {
	job, id, err := record.ParseKey(record.Results, string(kv.Key))
	r, ok = record.Decode[record.Result](kv.Value)
	if err != nil || !ok {
		return record.Result{}, false
	}
	r.Job, r.Tick, r.RunID = job, id.Tick, job+"/"+id.String()
	return r, true
}
