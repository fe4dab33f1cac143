package coord

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// FollowOptions say what [Follow] follows. Prefix has to be given.
type FollowOptions struct {
	// Prefix is what the keys begin with, byte for byte: "/a" is the prefix of "/ab" too, "/a/" is not.
	Prefix string
	// End, if it is not empty, is the first key behind what is followed, in place of the end of the prefix: so a range can take in
	// several prefixes that are next to each other, and leave out what is not wanted. It is behind Prefix.
	End string
	// StaleAfter is how old the last Fresh may be before the handler takes what it knows for stale. While all is
	// well there is one each half of it, which costs one small linearizable read; etcd has a quarter of it for
	// each answer. Default 10 s, at least 1 s.
	StaleAfter time.Duration
	// PageSize is how many keys are read at once for a list. Default 5000.
	PageSize int
	// Ask has it prove that nothing was missed as soon as it can, each time that a value comes: a Fresh follows that is
	// about a later moment. nil: nobody asks.
	Ask <-chan struct{}
}

const (
	defaultStaleAfter = 10 * time.Second
	minStaleAfter     = time.Second
	// defaultPage is about 1 MB, where keys say what hosts say.
	defaultPage = 5000
)

// checkStaleAfter is the rule for StaleAfter, wherever it is an option.
func checkStaleAfter(d time.Duration) error {
	if d < minStaleAfter {
		return fmt.Errorf("%w: StaleAfter %v: want at least 1s", ErrInvalidOption, d)
	}
	return nil
}

func (o FollowOptions) withDefaults() (FollowOptions, error) {
	o.StaleAfter, o.PageSize = cmp.Or(o.StaleAfter, defaultStaleAfter), cmp.Or(o.PageSize, defaultPage)
	switch {
	case o.Prefix == "":
		return o, fmt.Errorf("%w: Prefix: want what the keys begin with", ErrInvalidOption)
	case o.End != "" && o.End <= o.Prefix:
		return o, fmt.Errorf("%w: End %q: want a key behind Prefix %q", ErrInvalidOption, o.End, o.Prefix)
	case o.PageSize < 0:
		return o, fmt.Errorf("%w: PageSize %d: want a positive number", ErrInvalidOption, o.PageSize)
	}
	return o, checkStaleAfter(o.StaleAfter)
}

// FollowHandler is told by [Follow], one call at a time, in one goroutine. Follow waits for each call: what etcd
// sends meanwhile is kept in memory, without bound, and the next Fresh is late.
//
// Keys and events belong to the handler. All of their text is whatever somebody wrote.
type FollowHandler interface {
	// List tells all keys that there are at revision rev, in the order of their names. What was told before is
	// superseded: a key that is not among them is gone. Fresh follows at once.
	List(all []*mvccpb.KeyValue, rev int64)
	// Events tells all that revision rev did to the keys, at least one event. The last state before it is that
	// of the call before: no revision between the two touched a key.
	Events(events []*clientv3.Event, rev int64)
	// Fresh says that what was told includes all that etcd had at that time, which it had up to revision rev: no
	// revision up to rev is missing. It says so again and again, and falls silent when that cannot be proven:
	// time.Since(at) is how old what was told may be.
	Fresh(at time.Time, rev int64)
	// Trouble says what went wrong. It is tried again until ctx ends, and no cause for alarm while Fresh is not
	// too old.
	Trouble(err error)
}

// Follow tells h which keys there are under a prefix, or in a range, and each revision that changes one of them, until ctx ends,
// whatever becomes of etcd: broken connections, members that stop, are cut off or lose their quorum, expired
// tokens, compaction, restored stores. It blocks.
//
//	List ──► Events ──► Events ──► ...
//	  ▲                   │
//	  └───────────────────┘ what came next is compacted, or history went back: the difference is up to h
//
// From one List to the next nothing is skipped, told twice or out of order, and a revision is told as a whole: a
// handler that shows its state after each call shows no state that never was. (etcd sends all that one revision
// did to the keys of a watch in one response, unless it is asked for fragments; nobody asks.)
//
// Fresh is proven, by a linearizable read whose revision the watch has reached since. A watch that says nothing
// proves nothing: the member may be stopped.
//
// It returns an error without a word to List if etcd refuses the first list, or does not answer for one and a half
// times StaleAfter. After that it returns only when ctx ends, with its cause, or when cli is closed, with
// ErrClientClosed. The client stays the caller's. A stream is opened for the watch alone.
//
// # What is not promised
//
// Old values: an event tells what a key is, not what it was. How soon: a watch that says nothing any more is given
// up within StaleAfter; and after an outage the client dials again when its own backoff lets it, with gRPC's
// defaults up to 144 s later (grpc.WithConnectParams shortens that). Suspend: the clock of Fresh is that of
// [time.Now], which may stand still while the machine sleeps. And a store that was put back by hand, under the same
// cluster id, is told from one that went on only if its revision or raft term is lower than seen before.
func Follow(ctx context.Context, cli *clientv3.Client, o FollowOptions, h FollowHandler) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(cli.Ctx(), func() { cancel(ErrClientClosed) })()
	t := newTail(cli, o, h)
	if err = t.begin(ctx); err == nil {
		t.run(ctx)
	}
	return cmp.Or(context.Cause(ctx), err)
}
