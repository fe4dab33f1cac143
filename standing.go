package coord

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// standing is what one Watch or Observe knows of an election: how things stand. It handles what is told of the
// queue's keys, and keeps what the reader was not told yet as the latest of it.
type standing struct {
	e     *Election
	ctx   context.Context
	news  chan struct{} // full when there may be something to tell
	queue map[string]*mvccpb.KeyValue

	mu      sync.Mutex
	now     LeaderChange // but for Stale, which the clock knows
	changes int          // so many were seen; 0: now is not known
	led     Candidate    // who led last
	leaders int          // so many were seen, each anew when it says something else
	asOf    time.Time    // now includes all that etcd had at this time
}

// version tells apart what was told from what is to be told. The zero value stands for nothing.
type version struct {
	seen  int
	stale bool
}

// endWithin is how long the answer to how a hold ended may take.
const endWithin = 3 * time.Second

// tell streams what next says of e, each version once, until ctx or the session ends. What the reader has not taken
// when the next version comes is superseded by it: a slow reader holds nothing up.
func tell[T any](ctx context.Context, e *Election, next func(s *standing, now time.Time) (T, version, time.Duration)) <-chan T {
	out := make(chan T)
	e.s.spawn(func() { close(out) }, func() {
		ctx, cancel := bind(ctx, e.s.ctx)
		defer cancel()
		s := &standing{e: e, ctx: ctx, news: make(chan struct{}, 1), asOf: time.Now()}
		o := FollowOptions{Prefix: e.prefix, StaleAfter: defaultStaleAfter, PageSize: defaultPage}
		var follower sync.WaitGroup
		follower.Go(func() { newTail(e.s.cli, o, s).run(ctx) })
		defer follower.Wait()
		var told version
		for {
			v, is, after := next(s, time.Now())
			var to chan<- T
			if is != told {
				to = out
			}
			var due <-chan time.Time
			if after > 0 {
				due = time.After(after)
			}
			select {
			case to <- v:
				told = is
			case <-s.news:
			case <-due:
			case <-ctx.Done():
				return
			}
		}
	})
	return out
}

// change is what Watch tells, until what is known gets stale.
func (s *standing) change(now time.Time) (c LeaderChange, is version, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, after = s.now, s.asOf.Add(defaultStaleAfter).Sub(now)
	c.Stale = after <= 0
	return c, version{s.changes, c.Stale}, after
}

// leader is what Observe tells.
func (s *standing) leader(time.Time) (identity string, is version, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.led.Identity, version{seen: s.leaders}, 0
}

// List takes the whole queue in. Fresh follows at once: until then it would be told with the age of what was before.
func (s *standing) List(all []*mvccpb.KeyValue, _ int64) {
	s.queue = map[string]*mvccpb.KeyValue{}
	for _, kv := range all {
		s.put(kv)
	}
	s.see()
}

// Events takes one revision in. What is between its events never was.
func (s *standing) Events(events []*clientv3.Event, _ int64) {
	for _, ev := range events {
		if ev.Type == clientv3.EventTypeDelete {
			delete(s.queue, string(ev.Kv.Key))
		} else {
			s.put(ev.Kv)
		}
	}
	s.see()
	s.wake()
}

// Fresh takes in how old what is known may be.
func (s *standing) Fresh(at time.Time, _ int64) {
	s.mu.Lock()
	s.asOf = at
	s.mu.Unlock()
	s.wake()
}

// Trouble is told by the age of what is known; where nothing is known, at once.
func (s *standing) Trouble(error) {
	s.mu.Lock()
	if s.changes == 0 {
		s.asOf = time.Time{}
	}
	s.mu.Unlock()
	s.wake()
}

func (s *standing) wake() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// put takes a candidate in. A key of another election, nested in this one, is none.
func (s *standing) put(kv *mvccpb.KeyValue) {
	if !nested(s.e.prefix, string(kv.Key)) {
		s.queue[string(kv.Key)] = kv
	}
}

// oldest is the leader by what is known, nil where there is none.
func (s *standing) oldest() *mvccpb.KeyValue {
	var oldest *mvccpb.KeyValue
	for _, kv := range s.queue {
		if oldest == nil || kv.CreateRevision < oldest.CreateRevision {
			oldest = kv
		}
	}
	return oldest
}

// see looks who leads now, and finds out how the last hold ended where nobody does.
func (s *standing) see() {
	leader := s.oldest()
	c := LeaderChange{Leader: CandidateOf(leader), Vacant: leader == nil}
	if s.changes > 0 && c.Leader == s.now.Leader {
		return
	}
	if o := s.e.opts.Settle; c.Vacant && o.on() {
		try, cancel := context.WithTimeout(s.ctx, endWithin)
		if end, found, err := LastEnd(try, s.e.s.cli, o); err == nil && found {
			c.Ended = &end
		}
		cancel()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = c
	s.changes++
	if !c.Vacant {
		s.led = c.Leader
		s.leaders++
	}
}
