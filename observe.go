package coord

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Leader reads who leads, linearizably. ErrNoLeader says that nobody does.
func (e *Election) Leader(ctx context.Context) (Candidate, error) {
	got, err := e.s.cli.Get(ctx, e.prefix, clientv3.WithFirstCreate()...)
	if err != nil {
		return Candidate{}, fmt.Errorf("read leader of %q: %w", e.opts.Key, err)
	}
	if len(got.Kvs) == 0 {
		return Candidate{}, ErrNoLeader
	}
	if nested(e.prefix, string(got.Kvs[0].Key)) {
		return Candidate{}, fmt.Errorf("%w: %q", ErrNestedKey, got.Kvs[0].Key)
	}
	return CandidateOf(got.Kvs[0]), nil
}

// Candidates reads the queue, linearizably, in order: the first leads.
func (e *Election) Candidates(ctx context.Context) ([]Candidate, error) {
	return ListCandidates(ctx, e.s.cli, e.opts.Key)
}

// ListCandidates reads the queue of the election of key, linearizably, in order: the first leads. It
// needs no session.
func ListCandidates(ctx context.Context, cli *clientv3.Client, key string) ([]Candidate, error) {
	prefix := prefixOf(key)
	got, err := cli.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return nil, fmt.Errorf("read candidates of %q: %w", key, err)
	}
	var all []Candidate
	for _, kv := range got.Kvs {
		if nested(prefix, string(kv.Key)) {
			return nil, fmt.Errorf("%w: %q", ErrNestedKey, kv.Key)
		}
		all = append(all, CandidateOf(kv))
	}
	return all, nil
}

// LeaderChange is what Watch reports.
type LeaderChange struct {
	Leader Candidate // the zero value where nobody leads, or where that is not known
	Vacant bool      // nobody leads
	Stale  bool      // etcd has not answered for a while; Leader is what was known last
	Ended  *Ended    // vacant: how the last hold ended, where settling is on and it is stored
}

// Observe streams the identity of the leader: the present one first, then each new one, also when a
// leader changes what it says. It says nothing of vacancy. A slow reader misses what was superseded, never
// the latest. The channel is closed only after ctx has ended, or the session.
func (e *Election) Observe(ctx context.Context) <-chan string {
	out := make(chan string)
	e.s.spawn(func() { close(out) }, func() {
		ctx, cancel := bind(ctx, e.s.ctx)
		defer cancel()
		last := Candidate{}
		relay(ctx, out, func(ctx context.Context, emit func(string)) {
			e.follow(ctx, func(c LeaderChange) {
				if !c.Vacant && !c.Stale && c.Leader != last {
					last = c.Leader
					emit(c.Leader.Identity)
				}
			})
		})
	})
	return out
}

// Watch streams every change of leadership: who leads, with its token; that nobody does, and how the last
// hold ended; and that etcd has not answered for a while. It starts with the present state. A slow reader
// misses what was superseded, never the latest. The channel is closed only after ctx has ended, or the
// session.
func (e *Election) Watch(ctx context.Context) <-chan LeaderChange {
	out := make(chan LeaderChange)
	e.s.spawn(func() { close(out) }, func() {
		ctx, cancel := bind(ctx, e.s.ctx)
		defer cancel()
		relay(ctx, out, func(ctx context.Context, emit func(LeaderChange)) { e.follow(ctx, emit) })
	})
	return out
}

// mailbox holds the latest value that was put and not yet taken.
type mailbox[T any] struct {
	mu    sync.Mutex
	value T
	ready chan struct{} // full while there is one
}

func (b *mailbox[T]) put(v T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.value = v
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

func (b *mailbox[T]) get() T {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.value
}

// relay sends what source puts to out. What the reader has not taken when the next value comes is
// superseded by it; source is never blocked by a slow reader.
func relay[T any](ctx context.Context, out chan<- T, source func(context.Context, func(T))) {
	box, ended := mailbox[T]{ready: make(chan struct{}, 1)}, make(chan struct{})
	go func() {
		defer close(ended)
		source(ctx, box.put)
	}()
	defer func() { <-ended }()
	var next T
	var to chan<- T // nil while there is nothing to send
	for {
		select {
		case <-box.ready:
			next, to = box.get(), out
		case to <- next:
			to = nil
		case <-ctx.Done():
			return
		}
	}
}

// Times of a follower.
const (
	// probeEvery is how often a follower reads the leader although its watch says nothing: a watch on a
	// member that was stopped stays silent.
	probeEvery = 5 * time.Second
	// probeFor is how long such a read may take before what is known counts as stale.
	probeFor = 3 * time.Second
)

// follow emits the leader whenever it changes, until ctx ends: a list, then a watch from its revision on,
// then again where the watch ended or a probe showed that it had missed something.
func (e *Election) follow(ctx context.Context, emit func(LeaderChange)) {
	f := follower{e: e, emit: emit}
	pause := backoff{low: 50 * time.Millisecond, high: probeFor}
	for ctx.Err() == nil {
		rev, err := f.list(ctx)
		if err != nil {
			f.stale(ctx)
			pause.pause(ctx)
			continue
		}
		pause.reset()
		f.watch(ctx, rev+1)
	}
}

// follower is what one Watch or Observe knows.
type follower struct {
	e     *Election
	emit  func(LeaderChange)
	queue map[string]*mvccpb.KeyValue
	said  bool
	last  LeaderChange
}

// list reads the whole queue and emits what it shows.
func (f *follower) list(ctx context.Context) (int64, error) {
	try, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	got, err := f.e.s.cli.Get(try, f.e.prefix, clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	f.queue = map[string]*mvccpb.KeyValue{}
	for _, kv := range got.Kvs {
		f.put(kv)
	}
	f.say(ctx)
	return got.Header.Revision, nil
}

// watch applies events until the watch ends or a probe contradicts it.
func (f *follower) watch(ctx context.Context, from int64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := f.e.s.watch(ctx, cancel, f.e.prefix, clientv3.WithPrefix(), clientv3.WithRev(from))
	probe := time.NewTicker(probeEvery)
	defer probe.Stop()
	for {
		select {
		case got, ok := <-events:
			if !ok || got.Err() != nil {
				return
			}
			for _, ev := range got.Events {
				f.apply(ctx, ev)
			}
		case <-probe.C:
			if !f.probe(ctx) {
				return
			}
		}
	}
}

// apply takes one event in; a leader that changes is said at once, so that none is skipped.
func (f *follower) apply(ctx context.Context, ev *clientv3.Event) {
	if ev.Type == clientv3.EventTypeDelete {
		delete(f.queue, string(ev.Kv.Key))
	} else {
		f.put(ev.Kv)
	}
	f.say(ctx)
}

// put takes a candidate in. A key of another election, nested in this one, is none.
func (f *follower) put(kv *mvccpb.KeyValue) {
	if !nested(f.e.prefix, string(kv.Key)) {
		f.queue[string(kv.Key)] = kv
	}
}

// probe reads the leader and reports whether the watch can be believed.
func (f *follower) probe(ctx context.Context) bool {
	try, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	leader, err := f.e.Leader(try)
	known := CandidateOf(f.oldest())
	return err == nil && leader.Token == known.Token || err == ErrNoLeader && known.Token == 0 || errors.Is(err, ErrNestedKey)
}

// oldest is the leader by what is known.
func (f *follower) oldest() *mvccpb.KeyValue {
	var oldest *mvccpb.KeyValue
	for _, kv := range f.queue {
		if oldest == nil || kv.CreateRevision < oldest.CreateRevision {
			oldest = kv
		}
	}
	return oldest
}

// say emits the present state unless it was the last that was said.
func (f *follower) say(ctx context.Context) {
	leader := f.oldest()
	change := LeaderChange{Leader: CandidateOf(leader), Vacant: leader == nil}
	if f.said && f.last.Leader == change.Leader && f.last.Stale == change.Stale && f.last.Vacant == change.Vacant {
		return
	}
	f.said, f.last = true, change
	if o := f.e.opts.Settle; change.Vacant && o.on() {
		try, cancel := context.WithTimeout(ctx, probeFor)
		if end, found, err := LastEnd(try, f.e.s.cli, o); err == nil && found {
			change.Ended = &end
		}
		cancel()
	}
	f.emit(change)
}

// stale emits that what is known may be out of date.
func (f *follower) stale(ctx context.Context) {
	if ctx.Err() != nil || f.last.Stale {
		return
	}
	f.last.Stale, f.last.Ended, f.said = true, nil, true
	f.emit(f.last)
}
