package live

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// Change is called with what has changed of a name, as view.Changes has it, and how it stands now. At first that is how it
// stands. An error ends the following, and is returned.
type Change func(changes []view.Seat, is view.Standing) error

// Follow tells how a name stands, and then each change, in order, until ctx ends, whatever becomes of etcd. No change of
// who holds is skipped, however short the hold was, and each is told with the records as they were at its revision. It
// writes nothing and has no session, and takes permission to read [view.Name.Ranges].
//
// It follows the queue, and decides by the records, and the slots of a semaphore, as well. To take a slot is to put the
// candidate's key again, and to give up a hold is to delete it, each in one transaction with slot and record. So these
// are read at each revision at which the queue says something about who holds. While what was told can change without a
// word in the queue, because an earlier hold is unsettled or a slot has lost its holder, they are watched too. Two watches
// have no common order: so what these say is a hint only, to find out which revision of the queue is known and to look at
// that. And before the next change of the queue is told it is looked at how things were right before it. So the end of such
// a state is told a moment late, and is not skipped; two ends, one right after the other, may be told as one.
//
// Where the events are gone, by compaction or because the store went back, it looks again and tells the difference.
//
// It returns an error if etcd refuses the first read or does not answer it, or a change could not be told; else the cause
// of ctx.
func Follow(ctx context.Context, client *clientv3.Client, n view.Name, o FollowOptions, change Change) error {
	f := &follower{relay: newRelay(o), client: client, name: n, ranges: n.Ranges(), change: change}
	defer f.unwatch()
	return f.run(ctx, client, span{from: f.ranges[0]}, f)
}

// follower is what one Follow knows: the pupil of its relay.
type follower struct {
	*relay
	client *clientv3.Client
	name   view.Name
	ranges []string // of the name; the first is the queue
	change Change

	queue map[string]view.Entry
	rev   int64          // queue is known up to this revision, and maybe further
	read  int64          // the records were read at this revision
	told  *view.Standing // nil: nothing yet

	watches [2]clientv3.WatchChan // of the records, while told can change without a word in the queue
	cancel  context.CancelFunc    // of these; nil: there are none
}

// list takes the whole queue in.
func (f *follower) list(ctx context.Context, all []*mvccpb.KeyValue, rev int64) error {
	f.queue, f.rev = map[string]view.Entry{}, rev
	for _, kv := range all {
		f.queue[string(kv.Key)] = EntryOf(kv)
	}
	return f.tellAt(ctx, rev)
}

// events takes one revision in.
func (f *follower) events(ctx context.Context, events []*clientv3.Event, rev int64) error {
	if f.loose() && rev-1 > f.read {
		if err := f.tellAt(ctx, rev-1); err != nil {
			return err
		}
	}
	if rev <= f.rev {
		return nil // a look has shown it already
	}
	if !f.apply(events, rev) {
		return nil
	}
	return f.tellAt(ctx, rev)
}

// apply makes the queue that of a revision. It reports whether that matters.
func (f *follower) apply(events []*clientv3.Event, rev int64) (matters bool) {
	for _, ev := range events {
		key := string(ev.Kv.Key)
		if ev.Type == clientv3.EventTypeDelete {
			matters = matters || f.matters(f.queue[key])
			delete(f.queue, key)
			continue
		}
		e := EntryOf(ev.Kv)
		f.queue[key] = e
		matters = matters || f.matters(e)
	}
	f.rev = rev
	return matters
}

// matters reports whether the key of a candidate, which has come, goes or says something else, can say anything about who
// holds: not one behind as many as may hold.
func (f *follower) matters(e view.Entry) bool {
	below, _ := path.Split(e.Key)
	most := 1
	if f.name.Kind == hold.KindSema {
		most, _ = strconv.Atoi(path.Base(below))
	} else if below != f.ranges[0] { // it is of a nested election
		return true
	}
	older := 0
	for key, other := range f.queue {
		if other.Create < e.Create && strings.HasPrefix(key, below) && strings.IndexByte(key[len(below):], '/') < 0 {
			older++
		}
	}
	return older < most
}

// tellAt tells how the name stood at a revision of the queue that is known, with the records of that revision. Where these
// are gone it tells how it stands now.
func (f *follower) tellAt(ctx context.Context, rev int64) error {
	records, _, err := f.insist(ctx, f.ranges[1:], rev)
	if err == nil {
		f.read = rev
		return f.tell(ctx, view.Stand(f.name, slices.Concat(records, slices.Collect(maps.Values(f.queue))), rev))
	}
	if ctx.Err() != nil {
		return nil
	}
	all, now, err := f.insist(ctx, f.ranges, 0)
	if err != nil {
		return nil // ctx has ended
	}
	f.queue, f.rev, f.read = f.queued(all), now, now
	return f.tell(ctx, view.Stand(f.name, all, now))
}

// insist reads until it is answered. An error is that ctx has ended, or that the revision is gone.
func (f *follower) insist(ctx context.Context, ranges []string, rev int64) (all []view.Entry, now int64, err error) {
	for {
		try, cancel := context.WithTimeout(ctx, f.within())
		all, now, err = readAt(try, f.client, ranges, rev)
		cancel()
		if err == nil || ctx.Err() != nil || rev != 0 && (errors.Is(err, rpctypes.ErrCompacted) || errors.Is(err, rpctypes.ErrFutureRev)) {
			return all, now, err
		}
		f.trouble(err)
		select {
		case <-time.After(f.within() / 8):
		case <-ctx.Done():
		}
	}
}

// queued are those entries that are in the queue.
func (f *follower) queued(all []view.Entry) map[string]view.Entry {
	queue := map[string]view.Entry{}
	for _, e := range all {
		if strings.HasPrefix(e.Key, f.ranges[0]) {
			queue[e.Key] = e
		}
	}
	return queue
}

// tell tells what is different, if anything is.
func (f *follower) tell(ctx context.Context, is view.Standing) error {
	changes := view.Changes(f.told, is)
	f.told = &is
	if f.loose() {
		f.watch(ctx)
	} else {
		f.unwatch()
	}
	if len(changes) == 0 && !f.Closely {
		return nil
	}
	return f.change(changes, is)
}

// loose reports whether what was told can change without a word in the queue.
func (f *follower) loose() bool {
	return f.told != nil && (len(f.told.Unsettled) > 0 || f.Closely && f.told.Unopened() ||
		slices.ContainsFunc(f.told.Seats, func(s view.Seat) bool { return s.State == view.Leaving }))
}

// watch watches the records from behind where they were read, unless they are watched.
func (f *follower) watch(ctx context.Context) {
	if f.cancel != nil {
		return
	}
	ctx, f.cancel = context.WithCancel(clientv3.WithRequireLeader(ctx))
	// The client waits without bound for a watch to be created: the end of its context ends that.
	late := time.AfterFunc(f.within(), f.cancel)
	defer late.Stop()
	for i := range f.watches {
		o := []clientv3.OpOption{clientv3.WithRev(f.read + 1)}
		if r := f.ranges[1+i]; strings.HasSuffix(r, "/") {
			o = append(o, clientv3.WithPrefix())
		}
		f.watches[i] = f.client.Watch(ctx, f.ranges[1+i], o...)
	}
}

func (f *follower) unwatch() {
	if f.cancel != nil {
		f.cancel()
		f.cancel, f.watches = nil, [2]clientv3.WatchChan{}
	}
}

func (f *follower) hints() [2]clientv3.WatchChan { return f.watches }

func (f *follower) unhint() { f.unwatch() }

// prove tells how it stood at a revision up to which the queue is known, where that can have changed without a word in it.
func (f *follower) prove(ctx context.Context, rev int64) error {
	if !f.loose() || rev < f.rev || rev <= f.read {
		return nil
	}
	return f.tellAt(ctx, rev)
}
