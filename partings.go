package coord

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// partings join the deletes that end the terms of a client's elections into few Txns. Up to partingsAtOnce Txns are
// under way at the same time, so that a delete of a client which ends few is sent at once; what comes meanwhile goes
// together in the next one. The caller whose delete is the first of a Txn sends it: there is no goroutine.
//
// Campaigns are not joined: keys that one Txn puts have one create revision, and would be one token.
//
// Nothing is shared by sharing: each delete is nested with its own guard, and what fails is each caller's to repeat.
type partings struct {
	cli *clientv3.Client

	mu      sync.Mutex
	waiting []*parting
	running int // Txns under way
}

// partingsAtOnce is how many Txns of deletes a client has under way at most.
const partingsAtOnce = 4

// parting is a key that is to go if its mod revision is rev.
type parting struct {
	key   string
	rev   int64
	bound time.Duration // of its Txn
	wake  chan struct{} // closed when it has an answer, or is to send its group
	group []*parting    // what it is to send, itself first; nil: another sends it
	gone  bool
	err   error
}

// delete reports whether the key was deleted with its mod revision rev. False says nothing of the key. On an error,
// which may be that of another delete, the outcome is unknown. It waits for the end of a Txn before, and for its own,
// which has bound as its bound, or a shorter one of another delete.
func (p *partings) delete(key string, rev int64, bound time.Duration) (gone bool, err error) {
	own := &parting{key: key, rev: rev, bound: bound, wake: make(chan struct{})}
	p.join(own)
	<-own.wake
	if own.group != nil {
		p.pass(p.send(own.group))
	}
	return own.gone, own.err
}

// join lets a parting send itself, or wait for the next Txn.
func (p *partings) join(own *parting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, own)
	if p.running < partingsAtOnce {
		p.running++
		p.next()
	}
}

// pass follows a Txn that ended with err: the next one begins. Where etcd did not answer, who waits is not kept waiting.
func (p *partings) pass(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		for _, w := range p.waiting {
			w.err = err
			close(w.wake)
		}
		p.waiting = nil
	}
	if len(p.waiting) == 0 {
		p.running--
		return
	}
	p.next()
}

// next lets the first that waits send what waits, as far as it fits into one Txn (p.mu held).
func (p *partings) next() {
	n := min(len(p.waiting), maxOps)
	group := p.waiting[:n:n]
	p.waiting = p.waiting[n:]
	group[0].group = group
	close(group[0].wake)
}

// send sends a group, of which the first is the caller's own, and tells the others.
func (p *partings) send(group []*parting) error {
	bound := group[0].bound
	for _, w := range group {
		bound = min(bound, w.bound)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	err := p.commit(ctx, group)
	for i, w := range group {
		w.err = err
		if i > 0 {
			close(w.wake)
		}
	}
	return err
}

// commit deletes what stands as it was, each under its own guard: what stands of one says nothing of another.
func (p *partings) commit(ctx context.Context, group []*parting) error {
	txn := p.cli.Txn(ctx)
	if len(group) == 1 {
		got, err := txn.If(group[0].stands()).Then(clientv3.OpDelete(group[0].key)).Commit()
		group[0].gone = err == nil && got.Succeeded
		return err
	}
	ops := make([]clientv3.Op, len(group))
	for i, w := range group {
		ops[i] = clientv3.OpTxn([]clientv3.Cmp{w.stands()}, []clientv3.Op{clientv3.OpDelete(w.key)}, nil)
	}
	got, err := txn.Then(ops...).Commit()
	if err != nil {
		return err
	}
	for i, w := range group {
		w.gone = got.Responses[i].GetResponseTxn().GetSucceeded()
	}
	return nil
}

// stands compares that the key was not put or deleted since.
func (w *parting) stands() clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(w.key), "=", w.rev)
}
