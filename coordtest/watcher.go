package coordtest

import (
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// watcher is one watch. Guarded by the store's lock.
type watcher struct {
	id       int64
	span     span
	start    int64 // as asked for
	next     int64 // events below are not for it
	noPut    bool
	noDelete bool
	prevKV   bool
	progress bool // wants to hear of progress
	quiet    bool // has heard nothing since the last time that progress was told
	held     bool // its creation is not announced yet: what it would get is kept
	kept     []*pb.WatchResponse
	dead     bool // cancelled by the server; the client has not confirmed it
}

// add registers a watch, or says why not.
func (ws *watchStream) add(r *pb.WatchCreateRequest) (w *watcher, reason string) {
	w = &watcher{
		id: r.WatchId, span: newSpan(r.Key, r.RangeEnd), start: r.StartRevision, next: r.StartRevision,
		noPut:    slices.Contains(r.Filters, pb.WatchCreateRequest_NOPUT),
		noDelete: slices.Contains(r.Filters, pb.WatchCreateRequest_NODELETE),
		prevKV:   r.PrevKv, progress: r.ProgressNotify, quiet: true, held: true,
	}
	if w.span.key == "" {
		w.span.key = "\x00" // the smallest key
	}
	switch {
	case r.StartRevision < 0:
		return nil, rpctypes.ErrCompacted.Error()
	case w.span.end != "" && w.span.end != "\x00" && w.span.key >= w.span.end:
		return nil, "mvcc: watcher range is empty"
	case w.id != 0 && ws.find(w.id) != nil:
		return nil, "mvcc: duplicate watch ID provided on the WatchStream"
	case w.id == 0:
		for ws.find(ws.nextID) != nil {
			ws.nextID++
		}
		w.id = ws.nextID
		ws.nextID++
	}
	ws.watchers = append(ws.watchers, w)
	ws.m.store.dirty = true
	return w, ""
}

func (ws *watchStream) find(id int64) *watcher {
	for _, w := range ws.watchers {
		if w.id == id {
			return w
		}
	}
	return nil
}

// replay gives a new watch the events that it asks for and that have happened already; if they are
// compacted, it is cancelled.
func (ws *watchStream) replay(w *watcher) {
	s := ws.m.store
	switch {
	case w.start == 0 || w.start > s.rev:
		w.next = max(w.start, s.rev+1)
	case w.start < s.compacted:
		w.dead = true
		ws.deliver(w, &pb.WatchResponse{Header: ws.header(0), WatchId: w.id, Canceled: true, CompactRevision: s.compacted})
	default:
		ws.tell(w, s.rev, s.since(w.span, w.start))
		w.next = s.rev + 1
	}
}

// notify tells the watches of the events of a new revision. The store's lock is held.
func (ws *watchStream) notify(rev int64, events []*mvccpb.Event) {
	for _, w := range ws.watchers {
		if !w.dead && rev >= w.next {
			ws.tell(w, rev, events)
			w.next = rev + 1
		}
	}
}

// tell queues those of the events that a watch wants.
func (ws *watchStream) tell(w *watcher, rev int64, events []*mvccpb.Event) {
	s := ws.m.store
	var wanted []*mvccpb.Event
	for _, e := range events {
		isDelete := e.Type == mvccpb.Event_DELETE
		if !w.span.contains(string(e.Kv.Key)) || isDelete && w.noDelete || !isDelete && w.noPut {
			continue
		}
		created := !isDelete && e.Kv.CreateRevision == e.Kv.ModRevision
		if before := e.Kv.ModRevision - 1; w.prevKV && !created && before >= s.compacted {
			e = &mvccpb.Event{Type: e.Type, Kv: e.Kv, PrevKv: s.at(string(e.Kv.Key), before)}
		}
		wanted = append(wanted, e)
	}
	if len(wanted) > 0 {
		w.quiet = false
		ws.deliver(w, &pb.WatchResponse{Header: ws.header(rev), WatchId: w.id, Events: wanted})
	}
}

func (ws *watchStream) deliver(w *watcher, r *pb.WatchResponse) {
	if w.held {
		w.kept = append(w.kept, r)
		return
	}
	ws.enqueue(r)
}
