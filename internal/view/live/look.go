package live

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/view"
)

// Look reads how a name stands, linearizably, in one request. It takes permission to read [view.Name.Ranges].
func Look(ctx context.Context, client *clientv3.Client, n view.Name) (view.Standing, error) {
	return look(ctx, client, n, n.Ranges())
}

// LookHolders is Look without how the last holds ended: the permission to read that, the last of the ranges, is not needed.
func LookHolders(ctx context.Context, client *clientv3.Client, n view.Name) (view.Standing, error) {
	ranges := n.Ranges()
	return look(ctx, client, n, ranges[:len(ranges)-1])
}

func look(ctx context.Context, client *clientv3.Client, n view.Name, ranges []string) (view.Standing, error) {
	entries, now, err := readAt(ctx, client, ranges, 0)
	if err != nil {
		return view.Standing{}, fmt.Errorf("read %s %s: %w", n.Kind, n.Name, err)
	}
	return view.Stand(n, entries, now), nil
}

// readAt reads ranges, prefixes and keys, in one request, as they were at a revision; 0 is now.
func readAt(ctx context.Context, client *clientv3.Client, ranges []string, rev int64) (all []view.Entry, now int64, err error) {
	var ops []clientv3.Op
	for _, r := range ranges {
		o := []clientv3.OpOption{clientv3.WithRev(rev)}
		if strings.HasSuffix(r, "/") {
			o = append(o, clientv3.WithPrefix())
		}
		ops = append(ops, clientv3.OpGet(r, o...))
	}
	got, err := client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, 0, err
	}
	for _, r := range got.Responses {
		all = append(all, entriesOf(r.GetResponseRange().GetKvs())...)
	}
	if rev == 0 {
		rev = got.Header.Revision
	}
	return all, rev, nil
}

// page is how many keys are read at once where there may be many: about 1 MB, where values say what ours say.
const page = 5000

// jobPage is how many jobs are: a spec may have 128 KiB.
const jobPage = 500

// LookAll reads how all names of some kinds stand, at one revision, in order; the keys that lie among them and name
// nothing stand first. It takes permission to read the [view.KindRanges] of each.
func LookAll(ctx context.Context, client *clientv3.Client, kinds ...string) ([]view.Standing, error) {
	for try := 1; ; try++ {
		book, err := readBook(ctx, client, kinds)
		if err == nil {
			return book.Standings(), nil
		}
		if try == lookTries || !errors.Is(err, rpctypes.ErrCompacted) {
			return nil, err
		}
	}
}

// lookTries is how often it is begun to read everything: between two pages its revision may have been compacted.
const lookTries = 3

func readBook(ctx context.Context, client *clientv3.Client, kinds []string) (*view.Book, error) {
	book := view.NewBook(nil, 0)
	for _, kind := range kinds {
		for _, r := range view.KindRanges(kind) {
			rev, err := readPages(ctx, client, r, clientv3.GetPrefixRangeEnd(r), page, book.Rev, func(kv *mvccpb.KeyValue) { book.Put(EntryOf(kv)) })
			if err != nil {
				return nil, fmt.Errorf("read what is below %s: %w", r, err)
			}
			book.Rev = rev
		}
	}
	return book, nil
}

// readPages reads from a key up to another one, most keys at once, as it was at a revision, and returns that; 0 is now.
func readPages(ctx context.Context, client *clientv3.Client, from, end string, most, rev int64, take func(*mvccpb.KeyValue)) (int64, error) {
	for {
		got, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(most), clientv3.WithRev(rev))
		if err != nil {
			return 0, err
		}
		if rev == 0 {
			rev = got.Header.Revision
		}
		for _, kv := range got.Kvs {
			take(kv)
		}
		if !got.More {
			return rev, nil
		}
		from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
	}
}
