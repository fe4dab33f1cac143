package coord

import (
	"context"
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
	p := newPeek(string(ahead.Key), func(kv *mvccpb.KeyValue) bool {
		return kv != nil && kv.CreateRevision == ahead.CreateRevision
	})
	// The first in the queue also watches the recorded lease run down (R5).
	ask := c.settler.on() && len(v.older) == 1 && holds(c.settler.rec, v.oldest, c.prefix)
	return c.until(ctx, p, v.rev, 0, ask)
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
	p := newPeek(c.settler.Open, func(kv *mvccpb.KeyValue) bool { return kv != nil && kv.ModRevision == mod })
	if err := c.until(ctx, p, v.rev, c.settler.until(), false); err != nil {
		return 0, err
	}
	if c.s.clock() >= c.settler.until() {
		return mod, nil
	}
	return 0, nil
}

// until waits for the end of p, seen by its own watch from revision rev on or by the renewals; for the
// moment deadline, where it is not 0; or for the end of ctx or of the claim, which are errors. With ask
// it also hears how the recorded lease runs down, for the settler.
func (c *candidate) until(ctx context.Context, p *peek, rev int64, deadline time.Duration, ask bool) error {
	defer c.claim.await(p)()
	inner, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if awaitEnd(inner, c.s, p.key, rev+1, p.still) {
			p.end()
		}
	}()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if ask {
			c.settler.answer(c.poll(inner))
		}
	}()
	defer func() { cancel(); <-watched; <-asked }()

	var over <-chan time.Time
	if deadline > 0 {
		timer := time.NewTimer(deadline - c.s.clock())
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-p.ended:
		return nil
	case <-over:
		return nil
	case <-c.claim.ctx.Done():
		return context.Cause(c.claim.ctx)
	case <-ctx.Done():
		return c.why(ctx, ctx.Err())
	}
}

// poll asks for the recorded lease's remaining time every fifth of its TTL, and sooner where the next answer may
// count, until ctx ends, and returns the last answer that it got.
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
			last = a
			if early := a.left - rec.past(); early > 0 {
				pause = min(pause, max(early, rec.TTL/20))
			}
		}
		next.Reset(pause)
	}
}

func (c *candidate) tell(w Waiting) {
	if c.waiting != nil {
		c.waiting(w)
	}
}
