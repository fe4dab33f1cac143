package coord

import (
	"cmp"
	"container/list"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// life is one life of a host's key, as it was last seen.
type life struct {
	HostMetadata
	created, mod int64
	lease        clientv3.LeaseID
	since        time.Time // when it was first seen
	stopping     bool
}

// goesOn reports whether the process that spoke for the host under key l speaks for it under key o: one that lost
// its lease and came back is not another life of the host.
func (l *life) goesOn(o *life) bool {
	return l.created == o.created || l.StartedAt != 0 && l.StartedAt == o.StartedAt
}

// entry is one host on the roll: what is, and what the consumer was told.
type entry struct {
	now  *life // nil: its key is gone
	told *life // nil: the consumer does not know the host as up
	lost *life // the last life that ended since told, as last seen

	reason DownReason // how lost ended
	ended  int64      // revision at which it did
	due    time.Time  // until then lost may come back without a word
	pass   int        // the last list that it was on

	place *list.Element // where it waits
	line  *list.List    // in which line; nil: it does not wait
}

// roll is the roll of hosts. It turns what happens to keys into what is told, and keeps what was not taken yet as
// the difference between the two, host by host. So a slow consumer costs no more memory than there are hosts, and
// for each host Up and Down alternate, whatever was left out between them.
//
// Hosts wait in line in the order in which their first untold change happened.
type roll struct {
	opts    WatcherOptions
	hosts   map[string]*entry
	line    list.List // entries with something to tell, perhaps
	lapsing list.List // entries whose key is gone, by the end of their grace
	listed  *entry    // stands for SnapshotDone
	proof   *entry    // stands for ViewFresh

	rev   int64
	pass  int // lists so far
	flaps int
	asOf  time.Time // the roll shows all that etcd had at this time
	stale bool      // as the consumer was told
	why   error     // what went wrong since asOf
}

func newRoll(o WatcherOptions) *roll {
	return &roll{opts: o, hosts: map[string]*entry{}, listed: &entry{}, proof: &entry{}}
}

// uuid is the host that a key is about; "" is none. What lies deeper under the prefix is somebody else's.
func (r *roll) uuid(kv *mvccpb.KeyValue) string {
	uuid := string(kv.Key[len(r.opts.Prefix):])
	if strings.Contains(uuid, "/") || uuid == r.opts.IncludeSelf || uuid == r.opts.ExcludeSelf {
		return ""
	}
	return uuid
}

// list takes in all keys that there are, as they were read.
func (r *roll) list(all []reading, rev int64, now time.Time) {
	r.pass++
	r.rev = rev
	for _, one := range all {
		r.put(one, now)
	}
	for _, uuid := range slices.Sorted(maps.Keys(r.hosts)) {
		if e := r.hosts[uuid]; e.now != nil && e.pass != r.pass {
			r.end(e, e.now.farewell(), now)
		}
	}
	if r.pass == 1 {
		r.wait(r.listed, &r.line)
	}
}

// event takes in one event.
func (r *roll) event(ev *clientv3.Event, now time.Time) {
	r.rev = ev.Kv.ModRevision
	if ev.Type != clientv3.EventTypeDelete {
		r.put(read(ev.Kv), now)
	} else if e := r.hosts[r.uuid(ev.Kv)]; e != nil && e.now != nil {
		r.end(e, e.now.farewell(), now)
	}
}

// farewell is how a life that is over ended.
func (l *life) farewell() DownReason {
	if l.stopping {
		return HostStopped
	}
	return HostExpired
}

// put takes in that a host is there.
func (r *roll) put(one reading, now time.Time) {
	kv, v := one.kv, one.value
	uuid := r.uuid(kv)
	if uuid == "" {
		return
	}
	if one.err != nil {
		orDiscard(r.opts.Logger).Warn("a host's value cannot be read; the host counts as up", slog.String("host", uuid), slog.Any("err", one.err))
	}
	e := r.hosts[uuid]
	if e == nil {
		e = &entry{}
		r.hosts[uuid] = e
	}
	e.pass = r.pass
	l := &life{HostMetadata: v.HostMetadata, created: kv.CreateRevision, mod: kv.ModRevision, lease: clientv3.LeaseID(kv.Lease), since: now, stopping: v.Stopping}
	switch {
	case e.now != nil && e.now.created == l.created:
		l.since = e.now.since
	case e.now != nil && e.told != nil:
		r.end(e, HostReplaced, now)
	}
	e.now = l
	r.back(e, now)
	r.wait(e, &r.line)
}

// back takes a host that is there out of those whose key is gone. One that is back in time was never away.
func (r *roll) back(e *entry, now time.Time) {
	if e.line != &r.lapsing {
		return
	}
	r.leave(e)
	if now.Before(e.due) {
		r.flaps++
		told := *e.told
		told.created = e.now.created
		e.told, e.lost = &told, nil
	}
}

// end takes in that a host's key is gone.
func (r *roll) end(e *entry, reason DownReason, now time.Time) {
	e.lost, e.now, e.reason, e.ended = e.now, nil, reason, r.rev
	switch {
	case e.told == nil:
		r.leave(e) // came and went before the consumer looked
		delete(r.hosts, e.lost.HostUUID)
	case r.opts.DownGrace > 0:
		r.leave(e)
		e.due = now.Add(r.opts.DownGrace)
		r.wait(e, &r.lapsing)
	default:
		r.wait(e, &r.line)
	}
}

// wait has e wait at the end of line, unless it waits already.
func (r *roll) wait(e *entry, line *list.List) {
	if e.line == nil {
		e.line, e.place = line, line.PushBack(e)
	}
}

func (r *roll) leave(e *entry) {
	if e.line != nil {
		e.line.Remove(e.place)
		e.line, e.place = nil, nil
	}
}

// fresh takes in that all that etcd had at that time is on the roll.
func (r *roll) fresh(at time.Time) {
	r.asOf, r.why = at, nil
	if r.stale {
		r.wait(r.proof, &r.line)
	}
}

// old reports whether the roll may be out of date: by the clock alone, whatever any request is doing.
func (r *roll) old(now time.Time) bool { return now.Sub(r.asOf) >= r.opts.StaleAfter }

// errNoAnswer is what is wrong where nothing has failed yet.
var errNoAnswer = errors.New("no answer in time")

// next is what is to be told next, if anything is. If not, something may be after a while, without anything
// happening; 0: it will not.
func (r *roll) next(now time.Time) (ev HostEvent, ok bool, after time.Duration) {
	if !r.stale && r.old(now) {
		r.stale = true
		why := cmp.Or(r.why, errNoAnswer)
		orDiscard(r.opts.Logger).Warn("the view of the hosts may be out of date", slog.Time("as_of", r.asOf), slog.Any("err", why))
		if r.opts.Extended {
			return HostEvent{Kind: ViewStale, Revision: r.rev, Err: why}, true, 0
		}
	}
	for e := range entries(&r.lapsing) {
		if after = e.due.Sub(now); after > 0 {
			break
		}
		after = 0
		r.leave(e)
		r.wait(e, &r.line)
	}
	for e := range entries(&r.line) {
		r.leave(e)
		if ev, ok = r.tell(e); ok {
			return ev, true, 0
		}
	}
	if until := r.asOf.Add(r.opts.StaleAfter).Sub(now); !r.stale && (after == 0 || until < after) {
		after = until
	}
	return HostEvent{}, false, after
}

// entries are those in line; each may leave when its turn has come.
func entries(line *list.List) func(func(*entry) bool) {
	return func(yield func(*entry) bool) {
		for p := line.Front(); p != nil; {
			next := p.Next()
			if !yield(p.Value.(*entry)) {
				return
			}
			p = next
		}
	}
}

// tell makes the consumer know of e what it did not, one event at a time.
func (r *roll) tell(e *entry) (HostEvent, bool) {
	switch was, is := e.told, e.now; {
	case e == r.listed:
		return HostEvent{Kind: SnapshotDone, Revision: r.rev}, r.opts.Extended
	case e == r.proof:
		r.stale = false
		orDiscard(r.opts.Logger).Info("the view of the hosts is up to date again")
		return HostEvent{Kind: ViewFresh, Revision: r.rev}, r.opts.Extended
	case was == nil:
		e.told, e.lost = is, nil
		return is.event(HostUp, is.mod), true
	case is == nil:
		delete(r.hosts, was.HostUUID)
		return e.down(), true
	case !was.goesOn(is):
		ev := e.down()
		e.told = nil
		e.line, e.place = &r.line, r.line.PushFront(e)
		return ev, true
	default:
		e.told, e.lost = is, nil
		return is.event(HostUpdate, is.mod), r.opts.Extended && !was.same(is.HostMetadata)
	}
}

// down is the end of the life that the consumer knows.
func (e *entry) down() HostEvent {
	ev := e.lost.event(HostDown, e.ended)
	ev.Reason = e.reason
	return ev
}

func (l *life) event(kind HostEventKind, rev int64) HostEvent {
	return HostEvent{Kind: kind, HostUUID: l.HostUUID, Metadata: l.clone(), Revision: rev, Incarnation: l.created}
}
