package coord

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Waiting tells what a campaign waits for.
type Waiting struct {
	Leader   Candidate     // who leads now; the zero value where nobody does
	Position int           // place in the queue: 1 is next. 0 while settling
	Settling time.Duration // for at most how long it settles; 0 while it queues
	Record   Record        // what it settles
}

// await waits until the predecessor's key is gone: as a watch, or a renewal's read, saw it.
func (c *candidate) await(ctx context.Context, v view) error {
	ahead := v.older[0]
	c.tell(Waiting{Leader: CandidateOf(v.oldest), Position: len(v.older)})
	peeks := []*peek{c.s.peek(string(ahead.Key), v.rev+1, func(kv *mvccpb.KeyValue) bool {
		return kv != nil && kv.CreateRevision == ahead.CreateRevision
	})}
	// The first in the queue also watches the recorded lease run down (R5). Who becomes the first has to notice.
	ask := func(context.Context) {}
	switch {
	case !c.settler.on():
	case holds(c.settler.rec, ahead, c.prefix):
		ask = func(ctx context.Context) { c.settler.answer(c.poll(ctx)) }
	default:
		peeks = append(peeks, c.first(ahead))
	}
	return c.until(ctx, 0, ask, peeks...)
}

// first ends when the open record is about ahead: whoever waits for ahead is the first in the queue then. No key goes at that
// moment, so the renewals look, every tenth of the TTL, and there is no watch.
func (c *candidate) first(ahead *mvccpb.KeyValue) *peek {
	return &peek{
		key: c.settler.Open,
		still: func(kvs []*mvccpb.KeyValue) bool {
			return !holds(DecodeRecord(oneOf(kvs), c.s.bounds.TTL), ahead, c.prefix)
		},
		watch: func(ctx context.Context) bool { <-ctx.Done(); return false },
	}
}

// settle waits until the recorded hold is over, or its record closed. It returns the mod revision of the
// record that the next decision may replace, 0 where the record is closed.
func (c *candidate) settle(ctx context.Context, v view) (expect int64, err error) {
	left := c.settler.until() - c.s.clock()
	if left <= 0 {
		return c.settler.rec.mod, nil
	}
	c.tell(Waiting{Settling: left, Record: c.settler.rec})
	mod := c.settler.rec.mod
	p := c.s.peek(c.settler.Open, v.rev+1, func(kv *mvccpb.KeyValue) bool { return kv != nil && kv.ModRevision == mod })
	if err := c.until(ctx, c.settler.until(), func(context.Context) {}, p); err != nil {
		return 0, err
	}
	if c.s.clock() >= c.settler.until() {
		return mod, nil
	}
	return 0, nil
}

// until waits for the end of a peek, as its watch or the renewals see it; for the moment deadline, where it
// is not 0; or for the end of ctx or of the claim, which are errors. ask runs meanwhile, until its context ends.
func (c *attempt) until(ctx context.Context, deadline time.Duration, ask func(context.Context), peeks ...*peek) error {
	over := make(chan struct{}, 1)
	inner, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer func() { cancel(); helpers.Wait() }()
	for _, p := range peeks {
		p.ended = over
		helpers.Go(func() {
			if p.watch(inner) {
				p.end()
			}
		})
	}
	helpers.Go(func() { ask(inner) })
	defer c.claim.await(peeks)()

	var late <-chan time.Time
	if deadline > 0 {
		timer := time.NewTimer(deadline - c.s.clock())
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-over:
		return nil
	case <-late:
		return nil
	case <-c.claim.ctx.Done():
		return context.Cause(c.claim.ctx)
	case <-ctx.Done():
		return c.why(ctx, ctx.Err())
	}
}

// poll asks for the recorded lease's remaining time until ctx ends, and returns the last answer that it got.
func (c *candidate) poll(ctx context.Context) (last ttlAnswer) {
	rec := c.settler.rec
	next := time.NewTimer(rec.TTL / 5)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return last
		}
		pause := rec.TTL / 5
		if a, err := c.s.askTTL(ctx, rec, candidateKey(c.prefix, rec.Lease)); err == nil {
			last, pause = a, rec.again(a)
		}
		next.Reset(pause)
	}
}
