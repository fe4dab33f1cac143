package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// jointMost is how many transactions are asked for as one; jointSize is how many bytes of keys and values they may have together. An etcd
	// with its own defaults takes 128 operations, and 1.5 MB.
	jointMost, jointSize = 32, 256 << 10
	// jointWait is how long one that is not answered keeps the next one back.
	jointWait = 100 * time.Millisecond
)

// joint lets the transactions of one daemon that are asked for while another is under way go to etcd as one: of a thousand starts that are
// due at once, each would cost etcd a proposal, and each watch of each daemon a message. Who finds none under way is sent at once.
//
// Each keeps its own conditions, and is won or lost by itself. Its revision, which those share that are won together, is that of all.
//
// (J1) No two of them are about the same job: etcd judges all conditions before it writes anything, so one would not see what the other
// writes. Whatever is about different jobs has no key that the one writes and the other reads or writes.
type joint struct {
	client *clientv3.Client
	wait   time.Duration // jointWait
	turn   chan struct{} // holds one value while one is under way

	mu    sync.Mutex
	queue []*part
}

// part is one of them. Its outcome is set before done is closed, and may be read from then on.
type part struct {
	job  string
	cmps []clientv3.Cmp
	ops  []clientv3.Op
	done chan struct{}

	rev   int64
	won   bool
	err   error
	apart bool // all were refused together, and nothing was written: it may be over another one
}

// commit makes a transaction about a job.
func (j *joint) commit(ctx context.Context, job string, cmps []clientv3.Cmp, ops []clientv3.Op) (rev int64, won bool, err error) {
	p := &part{job: job, cmps: cmps, ops: ops, done: make(chan struct{})}
	j.mu.Lock()
	j.queue = append(j.queue, p)
	j.mu.Unlock()
	turn := j.turn
	for {
		select {
		case <-p.done:
			if p.apart {
				p.alone(ctx, j.client)
			}
			return p.rev, p.won, p.err
		case turn <- struct{}{}:
			j.send(ctx)
			if !j.waits(p) {
				turn = nil // only the answer is waited for
			}
		case <-ctx.Done(): // what has become of one that was sent may be written down just now
			if j.withdraw(p) {
				return 0, false, fmt.Errorf("wait for a transaction under way: %w", context.Cause(ctx))
			}
			return 0, false, fmt.Errorf("%w: %w", ErrUndecided, context.Cause(ctx))
		}
	}
}

// send sends those that wait, in turn, and ends the turn. ctx is that of one of those who ask: for the others its end is that of a reply
// that was lost.
func (j *joint) send(ctx context.Context) {
	leave := sync.OnceFunc(func() { <-j.turn })
	defer leave()
	runtime.Gosched() // so that who asks at the same moment comes along
	parts := j.take()
	defer time.AfterFunc(j.wait, leave).Stop()
	if len(parts) > 1 {
		together(ctx, j.client, parts)
	} else if len(parts) == 1 {
		parts[0].alone(ctx, j.client)
	}
	for _, p := range parts {
		close(p.done)
	}
}

// take takes those out of the queue that go together: the first ones, one of each job (J1).
func (j *joint) take() (parts []*part) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var left []*part
	jobs, size := map[string]bool{}, 0
	for _, p := range j.queue {
		size += p.size()
		if jobs[p.job] || len(parts) == jointMost || size > jointSize && len(parts) > 0 {
			left = append(left, p)
			continue
		}
		jobs[p.job] = true
		parts = append(parts, p)
	}
	j.queue = left
	return parts
}

// withdraw takes one out of the queue. It reports whether that was not sent.
func (j *joint) withdraw(p *part) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.Index(j.queue, p)
	if i < 0 {
		return false
	}
	j.queue = slices.Delete(j.queue, i, i+1)
	return true
}

// waits reports whether one was not sent yet.
func (j *joint) waits(p *part) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Contains(j.queue, p)
}

func (p *part) size() (n int) {
	for _, op := range p.ops {
		n += len(op.KeyBytes()) + len(op.ValueBytes())
	}
	return n
}

// alone makes one transaction by itself.
func (p *part) alone(ctx context.Context, client *clientv3.Client) {
	got, err := client.Txn(ctx).If(p.cmps...).Then(p.ops...).Commit()
	if err != nil {
		p.err = decided(err)
		return
	}
	p.rev, p.won, p.err = got.Header.Revision, got.Succeeded, nil
}

// together makes several transactions as one.
func together(ctx context.Context, client *clientv3.Client, parts []*part) {
	ops := make([]clientv3.Op, len(parts))
	for i, p := range parts {
		ops[i] = clientv3.OpTxn(p.cmps, p.ops, nil)
	}
	got, err := client.Txn(ctx).Then(ops...).Commit()
	for i, p := range parts {
		if err != nil {
			p.err = decided(err)
			p.apart = !errors.Is(p.err, ErrUndecided) && !errors.Is(err, rpctypes.ErrNoSpace)
			continue
		}
		p.rev, p.won = got.Header.Revision, got.Responses[i].GetResponseTxn().Succeeded
	}
}
