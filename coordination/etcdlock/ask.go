package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/go-coord/coord"
)

// history is what answers said of etcd's.
type history struct {
	mu       sync.Mutex
	cluster  uint64
	revision int64
}

// floor is the revision that the answer to a request sent now must not be below.
func (h *history) floor() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.revision
}

// note takes in an answer to a linearizable request that was sent when floor was the highest revision seen. A cluster
// that is another one now is told once; a revision that is too low for as long as it is.
func (h *history) note(got *pb.ResponseHeader, floor int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.cluster
	h.cluster = got.ClusterId
	switch {
	case before != 0 && got.ClusterId != before:
		return fmt.Errorf("%w: cluster %x, was %x", coord.ErrStoreRegressed, got.ClusterId, before)
	case got.Revision < floor:
		return fmt.Errorf("%w: revision %d after %d", coord.ErrStoreRegressed, got.Revision, floor)
	}
	h.revision = max(h.revision, got.Revision)
	return nil
}

// A request that nobody answers is given up after a tenth of the ttl, within these bounds, and then after half as long
// again each time, so that a slow network is not cut off for ever.
const (
	patient    = 10
	leastTry   = 500 * time.Millisecond
	mostTry    = 2 * time.Second
	leastPause = 10 * time.Millisecond
	mostPause  = time.Second
)

// asking is one call of a Locker while it asks etcd.
type asking struct {
	l     *Locker
	ctx   context.Context
	once  bool          // the first request is sent although ctx may have ended
	try   time.Duration // how long a request may take
	pause time.Duration // until the next one, after an error
}

func (l *Locker) asking(ctx context.Context, ttl time.Duration) *asking {
	return &asking{l: l, ctx: ctx, try: min(max(ttl/patient, leastTry), mostTry), pause: leastPause}
}

// ask sends a request, which has to be safe to send twice, until it is answered, refused for good, or ctx ends. It gives
// how many times it was sent: after the second, one more may still be under way. send gives the header of an answer
// that a quorum stands behind.
func (a *asking) ask(send func(context.Context) (*pb.ResponseHeader, error)) (sent int, err error) {
	for a.l.cli.Ctx().Err() == nil {
		floor := a.l.seen.floor()
		ctx := a.ctx
		if a.once {
			ctx, a.once = context.WithoutCancel(ctx), false
		}
		try, cancel := context.WithTimeout(ctx, a.try)
		header, err := send(try)
		late := try.Err() != nil
		cancel()
		sent++
		switch {
		case err == nil && header != nil:
			return sent, a.l.seen.note(header, floor)
		case err == nil:
			return sent, nil
		case definite(err):
			return sent, err
		case late:
			a.try += a.try / 2
			if a.ctx.Err() != nil {
				return sent, a.ended(err)
			}
		default:
			if !a.rest() {
				return sent, a.ended(err)
			}
		}
	}
	return sent, coord.ErrClientClosed
}

// rest waits for the next pause, each about twice as long as the one before. It reports whether ctx is still alive.
func (a *asking) rest() bool {
	d := a.pause
	a.pause = min(2*d, mostPause)
	t := time.NewTimer(d/2 + rand.N(d/2))
	defer t.Stop()
	select {
	case <-t.C:
		return a.ctx.Err() == nil
	case <-a.ctx.Done():
		return false
	}
}

// ended is the error of a call whose ctx ended: why, and what the last request came to.
func (a *asking) ended(err error) error {
	cause := context.Cause(a.ctx)
	if errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// read reads a key; nil where it is absent.
func (a *asking) read(name string) (kv *mvccpb.KeyValue, header *pb.ResponseHeader, err error) {
	_, err = a.ask(func(ctx context.Context) (*pb.ResponseHeader, error) {
		got, err := a.l.cli.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		kv, header = first(got.Kvs), got.Header
		return header, nil
	})
	return kv, header, err
}

// grant asks for a lease. One that was granted without an answer has no key, and goes after its ttl.
func (a *asking) grant(asked int64) (*grant, error) {
	g := &grant{asked: asked}
	_, err := a.ask(func(ctx context.Context) (*pb.ResponseHeader, error) {
		g.sent = time.Now()
		got, err := a.l.cli.Grant(ctx, asked)
		if err != nil {
			return nil, err
		}
		g.id, g.ttl = got.ID, seconds(got.TTL)
		return got.ResponseHeader, nil
	})
	if err != nil && g.id != clientv3.NoLease {
		a.l.revoke(g.id)
	}
	return g, err
}

// revoke revokes a lease for sure: nothing is on it after that, nor will be.
func (a *asking) revoke(lease clientv3.LeaseID) error {
	_, err := a.ask(func(ctx context.Context) (*pb.ResponseHeader, error) {
		_, err := a.l.cli.Revoke(ctx, lease)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			err = nil
		}
		return nil, err
	})
	return err
}

// commit sends a Txn, made afresh each time: the client's With... functions change what they are given.
func (a *asking) commit(build func() (cmps []clientv3.Cmp, then, orElse clientv3.Op)) (got *clientv3.TxnResponse, sent int, err error) {
	sent, err = a.ask(func(ctx context.Context) (*pb.ResponseHeader, error) {
		cmps, then, orElse := build()
		if got, err = a.l.cli.Txn(ctx).If(cmps...).Then(then).Else(orElse).Commit(); err != nil {
			return nil, err
		}
		return got.Header, nil
	})
	return got, sent, err
}

// is compares the create revision of a key: 0 for one that is absent.
func is(name string, token uint64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(name), "=", int64(token))
}

// found is the key that the else branch of a Txn read.
func found(got *clientv3.TxnResponse) *mvccpb.KeyValue {
	return first(got.Responses[0].GetResponseRange().GetKvs())
}

func first(kvs []*mvccpb.KeyValue) *mvccpb.KeyValue {
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}

// whole is a ttl in the seconds that etcd is asked for.
func whole(ttl time.Duration) int64 {
	return min(int64((ttl-1)/time.Second)+1, clientv3.MaxLeaseTTL)
}

// seconds is a TTL of etcd's.
func seconds(ttl int64) time.Duration {
	return time.Duration(min(ttl, clientv3.MaxLeaseTTL)) * time.Second
}

// definite reports whether err says for sure that the request had no effect, and that the next one would have none.
func definite(err error) bool {
	var known rpctypes.EtcdError
	code := status.Code(err)
	if errors.As(err, &known) {
		code = known.Code()
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.Internal, codes.Aborted:
		return false
	}
	return true
}
