package coord

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// attempt is one try for a place in a queue, from its first request until it has won or left: what a candidate
// of an election and one of a semaphore have in common. All its state changes in the goroutine of its caller.
type attempt struct {
	s        *Session
	key      string
	identity string
	waiting  func(Waiting)
	placed   func() // the own key is known to exist; nil: nobody wants to know
	began    time.Duration

	n     int64 // which attempt of its session this is: names its record, with the lease
	rev   int64 // create revision of the own key; 0: not known to exist
	claim *claim
	open  int64 // mod revision of the own open record; 0: none
	left  bool  // the own key existed and may still
	doubt bool  // a request got no answer, and may land at any time
}

func (s *Session) attempt(key, identity string, waiting func(Waiting)) attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts++
	return attempt{s: s, n: s.attempts, key: key, identity: identity, waiting: waiting, began: s.clock()}
}

func (c *attempt) putKey(opts ...clientv3.OpOption) clientv3.Op {
	return clientv3.OpPut(c.key, c.identity, append(opts, clientv3.WithLease(c.s.lease))...)
}

func (c *attempt) putRecord(key string) clientv3.Op {
	return clientv3.OpPut(key, encodeRecord(c.s, c.n, c.identity))
}

// mine reports whether a key of the own name is on the own lease.
func (c *attempt) mine(kv *mvccpb.KeyValue) bool { return kv.Lease == int64(c.s.lease) }

// errNotSent says that nothing was asked of etcd: there is nothing to read back.
var errNotSent = errors.New("not sent")

// commitFirst commits the Txn that puts the own key. It may still be answered for a moment after ctx has ended, as under
// [patient].
func (c *attempt) commitFirst(ctx context.Context, cmps []clientv3.Cmp, then, orElse []clientv3.Op) (*clientv3.TxnResponse, error) {
	try, cancel := c.s.try(context.WithoutCancel(ctx))
	defer cancel()
	defer endAfter(ctx, cancel)()
	return c.send(try, cmps, then, orElse)
}

// commit sends one Txn, bounded.
func (c *attempt) commit(ctx context.Context, cmps []clientv3.Cmp, then, orElse []clientv3.Op) (*clientv3.TxnResponse, error) {
	try, cancel := c.s.try(ctx)
	defer cancel()
	return c.send(try, cmps, then, orElse)
}

// send sends one Txn, unless the session is over, and checks the reply's history.
func (c *attempt) send(ctx context.Context, cmps []clientv3.Cmp, then, orElse []clientv3.Op) (*clientv3.TxnResponse, error) {
	if err := c.s.Check(); err != nil {
		return nil, errors.Join(errNotSent, err)
	}
	floor := c.s.floor()
	got, err := c.s.cli.Txn(ctx).If(cmps...).Then(then...).Else(orElse...).Commit()
	if err != nil {
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			c.s.lose(ErrLeaseGone)
		}
		return nil, err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return got, c.s.note(got.Header, floor)
}

// insist repeats a Txn, which has to be safe to repeat, until it is answered, refused for good, or the caller or
// the claim is at its end. build makes it afresh for each try: the client's With... functions change what they
// are given.
func (c *attempt) insist(ctx context.Context, build func() (cmps []clientv3.Cmp, then, orElse []clientv3.Op)) (*clientv3.TxnResponse, error) {
	pause := backoff{low: c.s.bounds.TTL / 100, high: c.s.bounds.Renew}
	for {
		cmps, then, orElse := build()
		got, err := c.commit(ctx, cmps, then, orElse)
		if err == nil {
			return got, nil
		}
		c.doubt = c.doubt || !definite(err)
		if definite(err) || !pause.pause(ctx) || c.claim.ctx.Err() != nil {
			return nil, c.why(ctx, err)
		}
	}
}

// found registers the own key, once it is known to exist. Whoever is told can take away the record as well, which
// the same step may have opened: it is found by its lease and number.
func (c *attempt) found(rev, at int64) {
	c.rev = rev
	c.claim = c.s.hold(c.key, rev, at)
	c.announce()
}

// announce says what there is of the attempt in etcd, or may be.
func (c *attempt) announce() {
	if c.placed != nil {
		c.placed()
	}
}

// recover follows a first Txn that failed with why: unless it surely had no effect, the own key is read
// back until the answer is definite, or the caller has given up (C3). nil says that the key was found, and that
// the caller goes on.
func (c *attempt) recover(ctx context.Context, why error) error {
	if definite(why) || errors.Is(why, errNotSent) {
		return c.why(ctx, why)
	}
	kv, at, err := c.readBack(ctx)
	if kv == nil {
		// Absent now, or not to be read; but the request may still be under way, or have left its record.
		return fmt.Errorf("%w: %w", ErrUndecided, errors.Join(c.why(ctx, why), err))
	}
	c.found(kv.CreateRevision, at)
	if ctx.Err() != nil {
		return c.why(ctx, why)
	}
	return nil
}

// readBack reads the own key until there is an answer, for as long as the lease can live and the caller waits.
func (c *attempt) readBack(ctx context.Context) (kv *mvccpb.KeyValue, at int64, err error) {
	pause := backoff{low: c.s.bounds.TTL / 100, high: c.s.bounds.Renew}
	for {
		try, cancel := c.s.try(context.WithoutCancel(ctx))
		got, err := c.s.cli.Get(try, c.key)
		cancel()
		switch {
		case err == nil:
			return only(got), got.Header.Revision, nil
		case definite(err) || !pause.pause(ctx) || c.s.ctx.Err() != nil:
			return nil, 0, err
		}
	}
}

// why is the error to return: a loss explains a failed request better than the request does.
func (c *attempt) why(ctx context.Context, err error) error {
	if c.claim != nil && c.claim.ctx.Err() != nil {
		return context.Cause(c.claim.ctx)
	}
	if lost := c.s.Check(); lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// leave ends the attempt: what it owns goes, guarded (C2). It returns why, with what went wrong on the way out.
func (c *attempt) leave(why error, owned TermKeys) error {
	c.claim.drop(why)
	ctx, cancel := c.s.cleanup()
	defer cancel()
	if err := c.s.release(ctx, owned, EndReleased); err != nil {
		c.left = true
		return fmt.Errorf("%w (and leaving the queue: %w)", why, err)
	}
	return why
}

func (c *attempt) tell(w Waiting) {
	if c.waiting != nil {
		c.waiting(w)
	}
}
