package coordtest

import (
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/proto"
)

// store is the one state behind all members: keys with their history, leases, and who watches.
//
// Invariants, all under mu: rev is the revision of the newest change, 1 before the first. Every change of
// a key stays in history, in order, until it is compacted away. owner and the keys of the leases say the
// same. Events reach the queues of the watch streams in the order of their revisions, because they are
// queued under mu.
type store struct {
	mu        sync.Mutex
	rev       int64
	compacted int64
	keys      []string // sorted: those with at least one version
	history   map[string][]change
	streams   map[*watchStream]struct{}
	dirty     bool          // something changed since lock
	news      chan struct{} // closed and replaced when something has changed

	lessor
}

// change is one change of a key. Those made in one transaction share their revision.
type change struct {
	rev     int64
	sub     int
	kv      *mvccpb.KeyValue // never changed once it is here
	deleted bool
}

func newStore(o Options) *store {
	s := &store{
		rev:     1,
		history: make(map[string][]change),
		streams: make(map[*watchStream]struct{}),
		news:    make(chan struct{}),
	}
	s.lessor.init(o, s.sweep)
	return s
}

// lock takes the store and lets what is due by the clock happen first: nobody sees a lease that has ended.
func (s *store) lock() {
	s.mu.Lock()
	s.expireDue()
}

// unlock arms the timer for the next lease that ends, wakes who awaits a change, and lets go.
func (s *store) unlock() {
	if s.dirty {
		s.dirty = false
		s.arm()
		close(s.news)
		s.news = make(chan struct{})
	}
	s.mu.Unlock()
}

// changed is closed when the store may have changed.
func (s *store) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// span is a range of keys as requests give it: one key, [key, end), or all from key on if end is "\x00".
type span struct{ key, end string }

func newSpan(key, end []byte) span { return span{string(key), string(end)} }

func (r span) contains(k string) bool {
	switch r.end {
	case "":
		return k == r.key
	case "\x00":
		return k >= r.key
	}
	return k >= r.key && k < r.end
}

// in lists the keys of a span that have versions, in order.
func (s *store) in(r span) []string {
	first, found := slices.BinarySearch(s.keys, r.key)
	switch {
	case r.end == "" && !found:
		return nil
	case r.end == "":
		return s.keys[first : first+1]
	case r.end == "\x00":
		return s.keys[first:]
	}
	last, _ := slices.BinarySearch(s.keys, r.end)
	return s.keys[first:max(first, last)]
}

// at finds what a key held at rev; nil if nothing.
func (s *store) at(key string, rev int64) *mvccpb.KeyValue {
	for _, v := range slices.Backward(s.history[key]) {
		if v.rev <= rev {
			if v.deleted {
				return nil
			}
			return v.kv
		}
	}
	return nil
}

// live lists what a span held at rev, in order of the keys.
func (s *store) live(r span, rev int64) []*mvccpb.KeyValue {
	var kvs []*mvccpb.KeyValue
	for _, k := range s.in(r) {
		if kv := s.at(k, rev); kv != nil {
			kvs = append(kvs, kv)
		}
	}
	return kvs
}

// since lists the events of a span from rev on, oldest first.
func (s *store) since(r span, rev int64) []*mvccpb.Event {
	var found []change
	for _, k := range s.in(r) {
		for _, v := range s.history[k] {
			if v.rev >= rev {
				found = append(found, v)
			}
		}
	}
	slices.SortFunc(found, func(a, b change) int {
		if a.rev != b.rev {
			return int(a.rev - b.rev)
		}
		return a.sub - b.sub
	})
	events := make([]*mvccpb.Event, 0, len(found))
	for _, v := range found {
		events = append(events, v.event())
	}
	return events
}

func (v change) event() *mvccpb.Event {
	if v.deleted {
		return &mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: v.kv}
	}
	return &mvccpb.Event{Type: mvccpb.Event_PUT, Kv: v.kv}
}

// batch collects the changes of one revision. The lock is held from begin to commit, and whatever may
// refuse a change has been asked before: a batch never fails.
type batch struct {
	s       *store
	begin   int64
	changes []change
}

func (s *store) begin() *batch { return &batch{s: s, begin: s.rev} }

// rev is the revision that a read in the middle of the batch sees.
func (b *batch) rev() int64 {
	if len(b.changes) > 0 {
		return b.begin + 1
	}
	return b.begin
}

func (b *batch) put(key string, value []byte, leaseID int64) {
	rev := b.begin + 1
	kv := &mvccpb.KeyValue{Key: []byte(key), Value: value, CreateRevision: rev, ModRevision: rev, Version: 1, Lease: leaseID}
	if old := b.s.at(key, rev); old != nil {
		kv.CreateRevision, kv.Version = old.CreateRevision, old.Version+1
	}
	b.record(key, change{rev: rev, sub: len(b.changes), kv: kv})
	b.s.attach(key, leaseID)
}

func (b *batch) deleteRange(r span) int64 {
	victims := b.s.live(r, b.rev())
	for _, old := range victims {
		rev := b.begin + 1
		tombstone := &mvccpb.KeyValue{Key: old.Key, ModRevision: rev}
		b.record(string(old.Key), change{rev: rev, sub: len(b.changes), kv: tombstone, deleted: true})
		b.s.attach(string(old.Key), 0)
	}
	return int64(len(victims))
}

func (b *batch) record(key string, v change) {
	if _, ok := b.s.history[key]; !ok {
		i, _ := slices.BinarySearch(b.s.keys, key)
		b.s.keys = slices.Insert(b.s.keys, i, key)
	}
	b.s.history[key] = append(b.s.history[key], v)
	b.changes = append(b.changes, v)
}

// commit makes the changes the newest revision and tells the watches.
func (b *batch) commit() {
	if len(b.changes) == 0 {
		return
	}
	b.s.rev++
	b.s.dirty = true
	events := make([]*mvccpb.Event, 0, len(b.changes))
	for _, v := range b.changes {
		events = append(events, v.event())
	}
	for ws := range b.s.streams {
		ws.notify(b.s.rev, events)
	}
}

// compact forgets what was replaced or deleted before rev.
func (s *store) compact(rev int64) error {
	switch {
	case rev <= s.compacted:
		return rpctypes.ErrGRPCCompacted
	case rev > s.rev:
		return rpctypes.ErrGRPCFutureRev
	}
	s.compacted = rev
	s.dirty = true
	s.keys = slices.DeleteFunc(s.keys, func(k string) bool {
		kept := s.history[k]
		for len(kept) > 0 && forgotten(kept, rev) {
			kept = kept[1:]
		}
		if len(kept) == 0 {
			delete(s.history, k)
			return true
		}
		s.history[k] = slices.Clone(kept)
		return false
	})
	return nil
}

// forgotten tells whether the oldest of the versions of a key goes with a compaction at rev: one that was
// replaced up to rev does, and so does a tombstone below it.
func forgotten(vs []change, rev int64) bool {
	replaced := len(vs) > 1 && vs[1].rev <= rev
	return replaced || vs[0].deleted && vs[0].rev < rev
}

// clone copies a message, so that what leaves the store can be changed by whoever got it.
func clone[M proto.Message](msg M) M { return proto.Clone(msg).(M) }
