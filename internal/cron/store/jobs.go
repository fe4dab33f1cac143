package store

import (
	"bytes"
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
)

// Stored is a job as it stands in etcd. Whether it can be read is for package job to say.
type Stored struct {
	Name  string
	Value []byte
	Rev   int64 // mod revision; 0: there is none
}

// jobPage is how many jobs are read at once.
const jobPage = 500

// Job reads one job.
func Job(ctx context.Context, client *clientv3.Client, name string) (Stored, error) {
	got, err := client.Get(ctx, record.JobKey(name))
	if err != nil {
		return Stored{}, fmt.Errorf("read job: %w", err)
	}
	s := Stored{Name: name}
	if len(got.Kvs) > 0 {
		s.Value, s.Rev = got.Kvs[0].Value, got.Kvs[0].ModRevision
	}
	return s, nil
}

// Jobs reads all jobs as they were at one revision, in the order of their names. A key that names no job is none.
func Jobs(ctx context.Context, client *clientv3.Client) (all []Stored, err error) {
	from, end, rev := record.Jobs, clientv3.GetPrefixRangeEnd(record.Jobs), int64(0)
	for {
		got, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(jobPage), clientv3.WithRev(rev))
		if err != nil {
			return nil, fmt.Errorf("read jobs: %w", err)
		}
		for _, kv := range got.Kvs {
			from = string(kv.Key) + "\x00"
			if name, err := record.ParseName(record.Jobs, string(kv.Key)); err == nil {
				all = append(all, Stored{name, kv.Value, kv.ModRevision})
			}
		}
		if !got.More {
			return all, nil
		}
		rev = got.Header.Revision
	}
}

// WriteJob puts a job where another one stands, or none. ok is false where that is not so any more: then nothing is written. It may
// be repeated where an answer was lost.
func WriteJob(ctx context.Context, client *clientv3.Client, was Stored, value []byte) (ok bool, err error) {
	key := record.JobKey(was.Name)
	got, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", was.Rev)).
		Then(clientv3.OpPut(key, string(value))).
		Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return false, fmt.Errorf("write job: %w", err)
	}
	if got.Succeeded {
		return true, nil
	}
	there := got.Responses[0].GetResponseRange().Kvs
	return len(there) > 0 && bytes.Equal(there[0].Value, value), nil
}

// RemoveJob deletes a job, its cursors and what is asked for. ok is false where it is another one by now: then nothing is deleted.
// One that is gone already counts as removed. It may be repeated where an answer was lost.
func RemoveJob(ctx context.Context, client *clientv3.Client, was Stored) (ok bool, err error) {
	key := record.JobKey(was.Name)
	beside, err := besides(ctx, client, was.Name)
	if err != nil {
		return false, err
	}
	first := beside[:min(len(beside), txnMost-1)]
	got, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", was.Rev)).
		Then(append(deletes(first), clientv3.OpDelete(key))...).
		Else(clientv3.OpGet(key, clientv3.WithCountOnly())).Commit()
	if err != nil {
		return false, fmt.Errorf("delete job: %w", err)
	}
	if !got.Succeeded {
		return got.Responses[0].GetResponseRange().Count == 0, nil
	}
	for rest := beside[len(first):]; len(rest) > 0; {
		n := min(len(rest), txnMost)
		if _, err := client.Txn(ctx).If(absent(key)).Then(deletes(rest[:n])...).Commit(); err != nil {
			return false, fmt.Errorf("delete what was asked of a job: %w", err)
		}
		rest = rest[n:]
	}
	return true, nil
}

// besides are the keys of the cursors of a job, and of the requests for it.
func besides(ctx context.Context, client *clientv3.Client, name string) (keys []string, err error) {
	got, err := client.Txn(ctx).Then(
		clientv3.OpGet(record.CursorKey(name, ""), clientv3.WithKeysOnly()),
		clientv3.OpGet(record.CursorKey(name, "")+"@", clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(record.Range(record.Wants, name), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return nil, fmt.Errorf("read what there is of a job: %w", err)
	}
	for _, r := range got.Responses {
		for _, kv := range r.GetResponseRange().Kvs {
			keys = append(keys, string(kv.Key))
		}
	}
	return keys, nil
}

func deletes(keys []string) (ops []clientv3.Op) {
	for _, key := range keys {
		ops = append(ops, clientv3.OpDelete(key))
	}
	return ops
}

// LastResults reads the newest result of each job that has one.
func LastResults(ctx context.Context, client *clientv3.Client, jobs []string) (map[string]record.Result, error) {
	last := map[string]record.Result{}
	for len(jobs) > 0 {
		n := min(len(jobs), txnMost)
		var ops []clientv3.Op
		for _, name := range jobs[:n] {
			ops = append(ops, clientv3.OpGet(record.Range(record.Results, name), clientv3.WithPrefix(), clientv3.WithLimit(1),
				clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend)))
		}
		got, err := client.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return nil, fmt.Errorf("read last results: %w", err)
		}
		for i, r := range got.Responses {
			for _, kv := range r.GetResponseRange().Kvs {
				if one, ok := record.Decode[record.Result](kv.Value); ok {
					last[jobs[i]] = one
				}
			}
		}
		jobs = jobs[n:]
	}
	return last, nil
}
