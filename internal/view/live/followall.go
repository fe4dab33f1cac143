package live

import (
	"context"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// Turn is called with everything that stands at a revision, and the names that this revision is about: some of them, or
// their records, are not as they were. At first, and where it is not known what happened since the last time, names are
// all that were or are there. The book is lent until Turn returns. An error ends the following, and is returned.
type Turn func(book *view.Book, names []view.Name) error

// FollowAll tells how everything that can be held stands, and then each revision that changes it, in order, until ctx ends,
// whatever becomes of etcd. It takes permission to read hold.Root. See [coord.Follow] for what it promises.
//
// It returns an error if etcd refuses the first read or does not answer it, or a Turn fails; else the cause of ctx.
func FollowAll(ctx context.Context, client *clientv3.Client, o FollowOptions, turn Turn) error {
	return newRelay(o).run(ctx, client, holds(), &reader{turn: turn, book: view.NewBook(nil, 0)})
}

// holds is where everything lies that can be held: behind distributed cron, whose histories are large and change all the time.
func holds() span {
	return span{clientv3.GetPrefixRangeEnd(record.Root), clientv3.GetPrefixRangeEnd(hold.Root)}
}

// reader is the pupil of FollowAll.
type reader struct {
	turn Turn
	book *view.Book
}

func (r *reader) list(_ context.Context, all []*mvccpb.KeyValue, rev int64) error {
	about := map[view.Name]bool{}
	for _, n := range r.book.Names() {
		about[n] = true
	}
	r.book = view.NewBook(nil, rev)
	for _, kv := range all {
		if n, ok := r.book.Put(EntryOf(kv)); ok {
			about[n] = true
		}
	}
	return r.turn(r.book, slices.SortedFunc(maps.Keys(about), view.Name.Compare))
}

func (r *reader) events(_ context.Context, events []*clientv3.Event, rev int64) error {
	about := map[view.Name]bool{}
	for _, ev := range events {
		n, ok := view.Name{}, false
		if ev.Type == clientv3.EventTypeDelete {
			n, ok = r.book.Delete(string(ev.Kv.Key))
		} else {
			n, ok = r.book.Put(EntryOf(ev.Kv))
		}
		if ok {
			about[n] = true
		}
	}
	r.book.Rev = rev
	if len(about) == 0 {
		return nil
	}
	return r.turn(r.book, slices.SortedFunc(maps.Keys(about), view.Name.Compare))
}

func (r *reader) prove(context.Context, int64) error { return nil }
func (r *reader) hints() [2]clientv3.WatchChan       { return [2]clientv3.WatchChan{} }
func (r *reader) unhint()                            {}
