package coord

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxOps is how many operations of a Txn are used; etcd's default limit is 128.
const maxOps = 120

// gather is how long a read waits for others to go with, where the client has other sessions.
const gather = 2 * time.Millisecond

// batch joins the reads of a client's sessions into few Txns. A read is sent after it was asked for, so what
// has to come before it has.
type batch struct {
	h *hub

	mu      sync.Mutex
	pending []*question
	ops     int // of pending
	timer   *time.Timer
}

// question is what one session asks: at most maxOps operations, each of them a Get, so that a quorum is asked
// (a Txn of compares alone is answered without one).
type question struct {
	ops   []clientv3.Op
	bound time.Duration
	done  chan readReply // holds one
}

// readReply is the session's part of the reply.
type readReply struct {
	header header
	parts  []*pb.ResponseOp
	err    error
}

// read reads ops linearizably in one step, within bound.
func (b *batch) read(ctx context.Context, ops []clientv3.Op, bound time.Duration) readReply {
	r := &question{ops: ops, bound: bound, done: make(chan readReply, 1)}
	b.add(r)
	select {
	case got := <-r.done:
		return got
	case <-ctx.Done():
		return readReply{err: context.Cause(ctx)}
	}
}

// add sends r: at once where nobody could join it, else with those that come within the gathering time.
func (b *batch) add(r *question) {
	company := b.h.sessions() > 1
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ops+len(r.ops) > maxOps {
		b.flush()
	}
	b.pending = append(b.pending, r)
	b.ops += len(r.ops)
	switch {
	case !company:
		b.flush()
	case len(b.pending) == 1:
		b.timer = time.AfterFunc(gather, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.flush()
		})
	}
}

// flush sends what is pending (b.mu held).
func (b *batch) flush() {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	reads := b.pending
	b.pending, b.ops = nil, 0
	if len(reads) > 0 { // a timer that fires too late finds nothing
		b.send(reads)
	}
}

// drop forgets what is pending: nobody waits for it any more.
func (b *batch) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending, b.ops = nil, 0
}

// send sends reads as one Txn, in the background.
func (b *batch) send(reads []*question) {
	b.h.wg.Go(func() {
		err := b.commit(reads)
		if err == nil {
			return
		}
		// What is refused for good may be so for the sake of one key: then each goes by itself.
		alone := len(reads) > 1 && definite(err)
		for _, r := range reads {
			if alone {
				b.send([]*question{r})
			} else {
				r.done <- readReply{err: err}
			}
		}
	})
}

// commit reads and gives each its part; an error is given to nobody.
func (b *batch) commit(reads []*question) error {
	var ops []clientv3.Op
	bound := reads[0].bound
	for _, r := range reads {
		ops = append(ops, r.ops...)
		bound = min(bound, r.bound)
	}
	ctx, cancel := context.WithTimeout(b.h.ctx, bound)
	defer cancel()
	got, err := b.h.cli.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return err
	}
	parts := got.Responses
	for _, r := range reads {
		n := len(r.ops)
		r.done <- readReply{header: got.Header, parts: parts[:n]}
		parts = parts[n:]
	}
	return nil
}
