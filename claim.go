package coord

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// claim is one key of a session: a candidate's, from the moment it is known to exist until it is given up
// or lost. It is watched all the time, and read again with every renewal, because a watch on a member
// that was stopped stays silent, and because a foreign client can move the key to a lease of its own
// without touching its create revision.
type claim struct {
	s   *Session
	key string
	rev int64 // create revision: a key of the same name with another one is somebody else's

	ctx    context.Context // ends when the claim is lost or dropped, and with the session
	cancel context.CancelCauseFunc
	done   chan struct{} // the watch has ended, or never will begin
	begin  *time.Timer   // of the watch; nil on a session that was closed before
	soon   bool          // it is one of those few whose watch does not wait for a renewal

	mu    sync.Mutex
	waits []*peek // what the candidate waits for, of each the end

	read  int     // replies that the last reads() will have (renewing goroutine only)
	asked []*peek // the peeks that were read (renewing goroutine only)
}

// maxReads is how many keys and ranges are read for one claim at most: its own, and two that it waits for.
const maxReads = 3

// peek is something that a candidate waits for the end of: its predecessor's key, an open record, or that
// all keys of a range stay.
type peek struct {
	key   string
	opts  []clientv3.OpOption            // of the read
	still func([]*mvccpb.KeyValue) bool  // whether it goes on, given what was read
	watch func(ctx context.Context) bool // waits for the end; false: ctx ended before
	ended chan<- struct{}                // hears of the end; it holds one
}

// peek looks at one key: it ends when still says no, given the key as read (nil: absent). It is watched from
// revision from on.
func (s *Session) peek(key string, from int64, still func(*mvccpb.KeyValue) bool) *peek {
	return &peek{
		key: key, opts: []clientv3.OpOption{clientv3.WithKeysOnly()},
		still: func(kvs []*mvccpb.KeyValue) bool { return still(oneOf(kvs)) },
		watch: func(ctx context.Context) bool { return awaitEnd(ctx, s, key, from, still) },
	}
}

// peekRange looks at the keys under prefix: it ends when fewer than n of those that opts pick are left, or over
// says so of a key that was deleted. It is watched from revision from on, and ends too when the watch does: who
// waits for it looks again.
func (s *Session) peekRange(prefix string, from int64, n int, over func(key string) bool, opts ...clientv3.OpOption) *peek {
	return &peek{
		key: prefix, opts: append(opts, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		still: func(kvs []*mvccpb.KeyValue) bool { return len(kvs) >= n },
		watch: func(ctx context.Context) bool { return awaitDelete(ctx, s, prefix, from, over) },
	}
}

// end says so. It may be said again.
func (p *peek) end() {
	select {
	case p.ended <- struct{}{}:
	default:
	}
}

// hold registers a key of the session that was seen with create revision rev in a reply of revision at.
// On a session that has ended the claim has ended too.
func (s *Session) hold(key string, rev, at int64) *claim { return s.holdUnder(s.ctx, key, rev, at) }

// holdUnder is hold, of a claim that ends with ctx, which ends with the session.
func (s *Session) holdUnder(ctx context.Context, key string, rev, at int64) *claim {
	c := &claim{s: s, key: key, rev: rev, done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		close(c.done)
		return c
	}
	s.claims[c] = struct{}{}
	c.begin = time.AfterFunc(s.watchIn(c), func() {
		s.begun(c)
		s.spawn(func() { close(c.done) }, func() { c.watch(at + 1) })
	})
	return c
}

// watchAfter is when the watch of an own key begins. It begins with the revision at which the key was seen, so
// that nothing is missed; a term that is over sooner is spared the watch, which costs as much as the term.
//
// So few keys are watched, watchFew at once and one more each watchEvery; the watch of any other begins one renewal later, and
// watchApart later for each of them that waits: of thousands that are won at once, few are watched while most are
// still to be won, and then 250 a second: faster, it would take a tenth from those who win the rest.
// Each renewal reads every key meanwhile, so from the first one on a watch only tells sooner.
const (
	watchAfter = 50 * time.Millisecond
	watchFew   = 16
	watchEvery = 20 * time.Millisecond
	watchApart = 4 * time.Millisecond
)

// watchIn counts a claim in, and is how long after it its watch begins (s.mu held). How many may be watched soon is a virtual
// schedule, the generic cell rate algorithm of ITU-T I.371: paced is when the next one would be, at one each watchEvery.
func (s *Session) watchIn(c *claim) time.Duration {
	now := time.Now()
	paced := s.paced
	if free := now.Add(-watchFew * watchEvery); paced.Before(free) {
		paced = free
	}
	if c.soon = paced.Before(now); c.soon {
		s.paced = paced.Add(watchEvery)
		return watchAfter
	}
	s.unwatched++
	return watchAfter + s.bounds.Renew + time.Duration(s.unwatched)*watchApart
}

// begun counts a claim out whose watch begins.
func (s *Session) begun(c *claim) {
	if !c.soon {
		s.mu.Lock()
		s.unwatched--
		s.mu.Unlock()
	}
}

// spared counts a claim out that was given up before its watch began: another may be watched in its place.
func (s *Session) spared(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.soon {
		s.paced = s.paced.Add(-watchEvery)
	} else {
		s.unwatched--
	}
}

// watch loses the claim when its key is seen to be gone or another's, in a revision from from on.
func (c *claim) watch(from int64) {
	var why error // the last reason: the watch only says "not mine any more"
	if awaitEnd(c.ctx, c.s, c.key, from, func(kv *mvccpb.KeyValue) bool { why = c.mine(kv); return why == nil }) {
		c.lose(why)
	}
}

// mine says why kv is not this claim's key.
func (c *claim) mine(kv *mvccpb.KeyValue) error {
	switch {
	case kv == nil:
		return ErrKeyGone
	case kv.CreateRevision != c.rev || kv.Lease != int64(c.s.lease):
		return ErrKeyReplaced
	}
	return nil
}

// lose ends the claim because its key is not its own any more.
func (c *claim) lose(why error) { c.cancel(fmt.Errorf("%w: %w", ErrTermLost, why)) }

// drop ends the claim on purpose, before its key is deleted, so that the deletion is no loss.
func (c *claim) drop(why error) {
	c.s.mu.Lock()
	delete(c.s.claims, c)
	c.s.mu.Unlock()
	c.cancel(why)
	if c.begin != nil && c.begin.Stop() {
		c.s.spared(c)
		close(c.done)
	}
	<-c.done
}

// await makes the renewals look at peeks too, until the returned function is called.
func (c *claim) await(peeks []*peek) (stop func()) {
	set := func(to []*peek) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waits = to
	}
	set(peeks)
	return func() { set(nil) }
}

// snapshot lists the claims (s.mu held).
func (s *Session) snapshot() []*claim {
	all := make([]*claim, 0, len(s.claims))
	for c := range s.claims {
		all = append(all, c)
	}
	return all
}

// reads is what a verified renewal reads for this claim. The key is read in full: an answer with keys
// only has no lease.
func (c *claim) reads() []clientv3.Op {
	c.mu.Lock()
	c.asked = c.waits
	c.mu.Unlock()
	ops := []clientv3.Op{clientv3.OpGet(c.key)}
	for _, p := range c.asked {
		ops = append(ops, clientv3.OpGet(p.key, p.opts...))
	}
	c.read = len(ops)
	return ops
}

// look takes in the replies to reads and reports whether the own key is there as it should be.
func (c *claim) look(replies []*pb.ResponseOp) bool {
	if why := c.mine(first(replies[0])); why != nil {
		c.lose(why)
		return false
	}
	for i, p := range c.asked {
		if !p.still(replies[i+1].GetResponseRange().GetKvs()) {
			p.end()
		}
	}
	return true
}

// first is the first key of a range reply, nil where it is empty.
func first(r *pb.ResponseOp) *mvccpb.KeyValue { return oneOf(r.GetResponseRange().GetKvs()) }

// only is the first key of a Get, nil where there is none.
func only(got *clientv3.GetResponse) *mvccpb.KeyValue { return oneOf(got.Kvs) }

func oneOf(kvs []*mvccpb.KeyValue) *mvccpb.KeyValue {
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}

// awaitEnd blocks until still says no for key, or ctx ends. It watches from revision from on; a watch
// that ends (compaction, a member without leader, a lost connection) is followed by a read and by a watch
// from that read on. It returns whether the end was seen.
func awaitEnd(ctx context.Context, s *Session, key string, from int64, still func(*mvccpb.KeyValue) bool) bool {
	pause := backoff{low: 20 * time.Millisecond, high: s.bounds.Renew}
	for ctx.Err() == nil {
		// A watch of its own per round, cancelled with it, so that nothing is left on the stream.
		watch, cancel := context.WithCancel(ctx)
		for got := range s.watch(watch, cancel, key, clientv3.WithRev(from)) {
			for _, ev := range got.Events {
				kv := ev.Kv
				if ev.Type == clientv3.EventTypeDelete {
					kv = nil
				}
				if !still(kv) {
					cancel()
					return true
				}
			}
			if got.Err() == nil {
				pause.reset()
			}
		}
		cancel()
		if !pause.pause(ctx) {
			return false
		}

		// The watch ended: read, then watch from there. A revision that was compacted is no use, also
		// where the key lives: its events may be older than the compaction.
		try, stop := s.try(ctx)
		got, err := s.cli.Get(try, key)
		stop()
		if err != nil {
			continue
		}
		if !still(only(got)) {
			return true
		}
		from = got.Header.Revision + 1
	}
	return false
}

// awaitDelete blocks until over says yes of a key under prefix that was deleted at revision from or later, or until
// the watch ends, for whatever reason: it reports whether ctx is still alive. A watch that could not go on, which is
// rare, is not followed by the next at once.
func awaitDelete(ctx context.Context, s *Session, prefix string, from int64, over func(key string) bool) bool {
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	for got := range s.watch(watch, cancel, prefix, clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithFilterPut()) {
		for _, ev := range got.Events {
			if over(string(ev.Kv.Key)) {
				return true
			}
		}
	}
	pause := backoff{low: s.bounds.Renew / 4}
	return pause.pause(ctx)
}

// watch is watchWithin, with the bound of one request.
func (s *Session) watch(ctx context.Context, cancel func(), key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	return watchWithin(ctx, cancel, s.tryFor(), s.cli, key, opts...)
}

// watchWithin is the client's Watch, given up by cancel if it is not created in time: the client waits for that
// without bound, and a stopped member never creates one. Once created it may be silent for ever.
func watchWithin(ctx context.Context, cancel func(), bound time.Duration, cli *clientv3.Client, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	late := time.AfterFunc(bound, cancel)
	defer late.Stop()
	return cli.Watch(clientv3.WithRequireLeader(ctx), key, opts...)
}

// definite reports whether err says for sure that the request had no effect. Everything else is a maybe:
// a request whose reply was lost may have been committed, or may still be.
func definite(err error) bool {
	var known rpctypes.EtcdError
	code := status.Code(err)
	if errors.As(err, &known) {
		code = known.Code()
	}
	switch code {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated,
		codes.FailedPrecondition, codes.OutOfRange, codes.ResourceExhausted, codes.Unimplemented:
		return true
	}
	return false
}
