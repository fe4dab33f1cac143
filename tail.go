package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// tail is what [Follow] does: a list of the keys under one prefix, then a watch from its revision on.
//
//	list ──► watch ──ended──► ask ──► watch, from the last event on: nothing is skipped
//	  ▲                        │
//	  └── compacted, or history went back: list again, and only the difference is news
//
// Invariants:
//
//	(F1) What the handler was told is all that happened under the prefix up to rev, in order and by whole
//	     revisions, or a list.
//	(F2) rev rises by events and lists only. A notification of progress raises nothing: servers before 3.5.8
//	     may send one ahead of the events that it covers.
//	(F3) Fresh is told the send time of a linearizable read whose revision the watch has reached since. A
//	     watch on a member that is stopped, cut off or behind proves nothing, however alive its connection is.
//
// That a revision is whole stands on etcd: a response to a watch has all events of each of its revisions, also one
// of many that were missed, and the client passes on what it gets. Only under clientv3.WithFragment it is otherwise.
//
// All of it happens in the one goroutine that calls run.
type tail struct {
	cli    *clientv3.Client
	prefix string
	end    string          // the first key behind
	every  time.Duration   // from one proof to the next question
	within time.Duration   // how long an answer may take
	page   int64           // keys a page of a list
	hurry  <-chan struct{} // somebody wants a proof soon
	to     FollowHandler

	rev     int64         // (F1); 0: not known, list
	cluster uint64        // id of the cluster that rev is of
	highest int64         // revision that etcd was seen at
	term    uint64        // raft term that it was seen in
	asked   int64         // revision in the last answer, until the watch has reached it; 0: it has
	askedAt time.Time     // when that was asked
	by      time.Time     // when the watch has to have reached it
	tell    time.Duration // pause before it is told again to say so
	streams int           // watches so far
}

func newTail(cli *clientv3.Client, o FollowOptions, to FollowHandler) *tail {
	return &tail{
		cli: cli, prefix: o.Prefix, end: cmp.Or(o.End, clientv3.GetPrefixRangeEnd(o.Prefix)), every: o.StaleAfter / 2, within: o.StaleAfter / 4,
		page: int64(o.PageSize), hurry: o.Ask, to: to,
	}
}

// Why a watch is given up.
var (
	errWatchEnded  = errors.New("the watch has ended")
	errWatchBehind = errors.New("the watch stays behind what etcd says")
)

// listTries is how often the first list is tried.
const listTries = 3

// begin makes the first list.
func (t *tail) begin(ctx context.Context) error {
	pause := backoff{low: 50 * time.Millisecond, high: time.Second}
	for try := 1; ; try++ {
		err := t.list(ctx)
		if err == nil || try == listTries || definite(err) && !errors.Is(err, rpctypes.ErrCompacted) || !pause.pause(ctx) {
			return err
		}
	}
}

// run follows until ctx ends. What etcd does is no reason to end.
func (t *tail) run(ctx context.Context) {
	pause := backoff{low: 50 * time.Millisecond, high: t.within}
	for ctx.Err() == nil {
		// A list that fails is tried again; a watch that ends is followed by a question, which tells whether
		// etcd is away, and has the client renew a token that expired.
		err := error(nil)
		if t.rev == 0 {
			err = t.list(ctx)
		}
		if t.rev != 0 {
			began := time.Now()
			t.trouble(ctx, t.watch(ctx))
			if time.Since(began) > t.every {
				pause.reset()
			}
			err = t.ask(ctx)
			// The client gives its calls to the members in turn. Were there as many from one watch to the next each time,
			// the watch could meet the same one, which was stopped, again and again.
			if err == nil && t.rev != 0 && rand.N(2) == 0 {
				err = t.ask(ctx)
			}
		}
		if err != nil {
			t.trouble(ctx, err)
		}
		pause.pause(ctx)
	}
}

// trouble tells what went wrong, unless it did because ctx has ended.
func (t *tail) trouble(ctx context.Context, err error) {
	if ctx.Err() == nil {
		t.to.Trouble(err)
	}
}

// list reads all keys and tells them.
func (t *tail) list(ctx context.Context) error {
	sent := time.Now()
	all, head, err := t.read(ctx)
	if err != nil {
		return fmt.Errorf("list %q: %w", t.prefix, err)
	}
	t.rev, t.highest, t.asked = head.GetRevision(), head.GetRevision(), 0
	t.cluster, t.term = head.GetClusterId(), head.GetRaftTerm()
	t.to.List(all, t.rev)
	t.to.Fresh(sent, t.rev)
	return nil
}

// read reads all keys at one revision, page by page.
func (t *tail) read(ctx context.Context) (all []*mvccpb.KeyValue, head header, err error) {
	from, rev := t.prefix, int64(0)
	for more := true; more; {
		try, cancel := context.WithTimeout(ctx, t.every)
		got, err := t.cli.Get(try, from, clientv3.WithRange(t.end), clientv3.WithLimit(t.page), clientv3.WithRev(rev))
		cancel()
		if err != nil {
			return nil, nil, err
		}
		if rev == 0 {
			rev, head = got.Header.Revision, got.Header
		}
		all = append(all, got.Kvs...)
		if more = got.More; more {
			from = string(all[len(all)-1].Key) + "\x00"
		}
	}
	return all, head, nil
}

// watch applies events until the watch ends, or cannot be believed, and returns why.
func (t *tail) watch(ctx context.Context) error {
	ctx, end, events := t.open(ctx)
	defer end()
	t.await()
	due := time.NewTimer(t.reach(ctx))
	defer due.Stop()
	again := false // somebody has asked since it was asked
	for {
		select {
		case <-t.hurry:
			if again = t.asked != 0; !again {
				due.Reset(0)
			}
		case got, open := <-events:
			waits := t.asked != 0
			if err := t.take(got, open); err != nil {
				return err
			}
			switch {
			case !waits || t.asked != 0:
			case again:
				again = false
				due.Reset(0)
			default:
				due.Reset(t.every)
			}
		case <-due.C:
			switch known, err := t.inquire(ctx); {
			case err != nil:
				return err
			case !known:
				due.Reset(t.every / 5)
				continue
			}
			// Not on a watch that has ended meanwhile: the request would open a stream that nobody closes.
			select {
			case got, open := <-events:
				if err := t.take(got, open); err != nil {
					return err
				}
			default:
			}
			due.Reset(t.reach(ctx))
		}
	}
}

// open makes a watch, and returns its context, and what ends it.
func (t *tail) open(ctx context.Context) (context.Context, func(), clientv3.WatchChan) {
	// A stream of its own each time: the client would put the watch on one with others, which can starve it, or
	// back on the one that fell silent. Streams are told apart by the metadata of their contexts, all of which a
	// request for progress has to bring along.
	t.streams++
	ctx = metadata.AppendToOutgoingContext(clientv3.WithRequireLeader(ctx), "coord-watch", fmt.Sprintf("%p-%d", t, t.streams))
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	created := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { endCreated(created, cancel) })
	events := watchWithin(own, cancel, t.within, t.cli, t.prefix, clientv3.WithRange(t.end), clientv3.WithRev(t.rev+1), clientv3.WithProgressNotify())
	close(created)
	return own, func() { stop(); cancel() }, events
}

// createWithin is for how long a watch that nobody wants any more is waited for.
const createWithin = time.Second

// endCreated ends a watch, but not before it was created: of one that is given up earlier the client keeps the stream, and etcd
// the watch, for as long as the client lives. Where etcd does not answer, that is the lesser evil.
func endCreated(created <-chan struct{}, cancel func()) {
	late := time.NewTimer(createWithin)
	defer late.Stop()
	select {
	case <-created:
	case <-late.C:
	}
	cancel()
}

// inquire finds out which revision the watch has to reach, unless it is on its way to one. It is false where etcd did not
// answer, and an error where the watch is of no use any more.
func (t *tail) inquire(ctx context.Context) (known bool, err error) {
	if t.asked != 0 {
		if time.Now().After(t.by) {
			return false, errWatchBehind
		}
		return true, nil
	}
	err = t.ask(ctx)
	switch {
	case t.rev == 0:
		return false, err
	case err != nil:
		t.trouble(ctx, err)
		return false, nil
	}
	t.await()
	return true, nil
}

// await gives the watch the time that it has to reach what was asked for.
func (t *tail) await() { t.by, t.tell = time.Now().Add(t.within), t.within/16 }

// take takes one response of the watch in.
func (t *tail) take(got clientv3.WatchResponse, open bool) error {
	switch {
	case got.CompactRevision != 0:
		t.rev = 0
		return got.Err()
	case !open:
		return errWatchEnded
	case got.Err() != nil:
		return got.Err()
	case got.Header.ClusterId != t.cluster:
		t.rev = 0
		return ErrStoreRegressed
	}
	for events := got.Events; len(events) > 0; {
		rev, n := events[0].Kv.ModRevision, 1
		for n < len(events) && events[n].Kv.ModRevision == rev {
			n++
		}
		if rev > t.rev {
			t.rev = rev
			t.to.Events(events[:n:n], rev)
		}
		events = events[n:]
	}
	at := t.rev
	if got.IsProgressNotify() {
		at = got.Header.Revision
	}
	t.reached(at)
	return nil
}

// ask asks etcd, linearizably, for its revision: what the watch has to reach now.
func (t *tail) ask(ctx context.Context) error {
	try, cancel := context.WithTimeout(ctx, t.within)
	defer cancel()
	sent := time.Now()
	got, err := t.cli.Get(try, t.prefix, clientv3.WithKeysOnly())
	switch {
	case err != nil:
		return fmt.Errorf("ask for the revision: %w", err)
	case got.Header.ClusterId != t.cluster || got.Header.Revision < t.highest || got.Header.RaftTerm < t.term:
		// A restored store, or another one: what was told is of a history that is not.
		t.rev = 0
		return ErrStoreRegressed
	}
	t.highest, t.term = got.Header.Revision, got.Header.RaftTerm
	t.asked, t.askedAt = got.Header.Revision, sent
	return nil
}

// reach has the watch say that it has reached what was asked for last, and returns for how long there is nothing to do but
// to listen. A watch that etcd has not brought up to date yet says nothing, also later: so it is told again, after pauses that grow.
func (t *tail) reach(ctx context.Context) time.Duration {
	t.reached(t.rev)
	if t.asked == 0 {
		return t.every
	}
	try, cancel := context.WithTimeout(ctx, t.within)
	defer cancel()
	_ = t.cli.RequestProgress(try)
	t.tell *= 2
	return t.tell / 2
}

// reached notes that the watch has delivered everything up to rev.
func (t *tail) reached(rev int64) {
	t.highest = max(t.highest, rev)
	if asked := t.asked; asked != 0 && rev >= asked {
		t.asked = 0
		t.to.Fresh(t.askedAt, asked)
	}
}
