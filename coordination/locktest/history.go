package locktest

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/internal/linear"
)

// history lets many clients loose on few keys and looks for an order in which all that they were told is right.
func (c *trial) history() {
	began := time.Now()
	done := c.play(began)
	if err := linear.JudgeLocks(done, c.Patience); err != nil {
		c.Errorf("%v", err)
	}
	tally, unknown := map[string]int{}, 0
	var last any
	for _, op := range done {
		tally[outcome(op)]++
		if op.Output.(linear.Answer).Unknown {
			unknown, last = unknown+1, op.Metadata
		}
	}
	c.Logf("%d calls in %v: %v", len(done), time.Since(began), tally)
	if unknown > len(done)/4 {
		c.Errorf("%d of %d calls were not answered, the last with %v: that says little about the others", unknown, len(done), last)
	}
}

// outcome names what became of a call, for people.
func outcome(op porcupine.Operation) string {
	in, out := op.Input.(linear.Call), op.Output.(linear.Answer)
	switch {
	case out.Unknown:
		return string(in.Kind) + " unknown"
	case in.Kind == linear.Release:
		return string(in.Kind)
	case out.Held:
		return string(in.Kind) + " true"
	}
	return string(in.Kind) + " false"
}

// play makes the calls. Trouble, if there is any, lasts as long.
func (c *trial) play(began time.Time) []porcupine.Operation {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	var clients sync.WaitGroup
	var clock, left atomic.Int64
	left.Store(int64(c.Operations))
	all := make([][]porcupine.Operation, c.Clients)
	for i := range c.Clients {
		l := c.Locker
		if i%2 == 1 {
			l = c.Peer()
		}
		p := &player{trial: c, id: i, locker: l, began: began, clock: &clock, held: map[string]coordination.Lease{}, stale: map[string]coordination.Lease{}}
		clients.Go(func() {
			for left.Add(-1) >= 0 {
				p.move()
			}
			all[i] = p.done
		})
	}
	if c.Trouble != nil {
		go func() {
			clients.Wait()
			cancel()
		}()
		c.Trouble(ctx) // in this goroutine, which may fail the test
	}
	clients.Wait()
	var history []porcupine.Operation
	for _, done := range all {
		history = append(history, done...)
	}
	return history
}

// player is one client. What it holds it renews, releases or forgets; what it held it tries to use again.
type player struct {
	*trial
	id     int
	locker coordination.Locker
	began  time.Time
	clock  *atomic.Int64 // orders calls and returns: two that are apart are so in time
	done   []porcupine.Operation

	held, stale map[string]coordination.Lease
}

// move makes one call, and now and then none for a while.
func (p *player) move() {
	if rand.IntN(50) == 0 {
		time.Sleep(rand.N(2 * p.TTL)) // leases run out by waiting only
	}
	key := p.sub(rand.IntN(p.Keys))
	// Mostly about something that it holds, if there is anything: else nobody would ever come to release.
	if rand.IntN(4) > 0 {
		for k := range p.held {
			key = k
			break
		}
	}
	lease, held := p.held[key]
	stale, was := p.stale[key]
	switch n := rand.IntN(100); {
	case held && n < 45:
		p.renew(lease)
	case held && n < 90:
		delete(p.held, key)
		p.release(lease)
	case held: // forgotten: it runs out, unless it comes back as a stale one first
		delete(p.held, key)
		p.stale[key] = lease
		p.acquire(key)
	case was && n < 10:
		p.renew(stale)
	case was && n < 20:
		p.release(stale)
	default:
		p.acquire(key)
	}
}

// ttl is that of a lease of the history: those of one who dawdles run out.
func (p *player) ttl() time.Duration { return p.TTL + rand.N(p.TTL) }

func (p *player) acquire(key string) {
	var lease coordination.Lease
	got := p.call(linear.Call{Kind: linear.Acquire, Key: key}, &lease, func(ctx context.Context) (held bool, err error) {
		lease, held, err = p.locker.Acquire(ctx, key, owner, p.ttl())
		return held, err
	})
	if got.Held {
		p.held[key] = lease
	}
}

func (p *player) renew(lease coordination.Lease) {
	var next coordination.Lease
	got := p.call(linear.Call{Kind: linear.Renew, Key: lease.Key, Token: lease.Token}, &next, func(ctx context.Context) (held bool, err error) {
		next, held, err = p.locker.Renew(ctx, lease, p.ttl())
		return held, err
	})
	switch current := p.held[lease.Key]; {
	case got.Unknown || current.Token != lease.Token:
	case got.Held:
		p.held[lease.Key] = next
	default:
		delete(p.held, lease.Key)
		p.stale[lease.Key] = lease
	}
}

func (p *player) release(lease coordination.Lease) {
	p.stale[lease.Key] = lease
	p.call(linear.Call{Kind: linear.Release, Key: lease.Key, Token: lease.Token}, &coordination.Lease{}, func(ctx context.Context) (bool, error) {
		return false, p.locker.Release(ctx, lease)
	})
}

// call makes one call and writes it down with the lease that came of it.
func (p *player) call(in linear.Call, lease *coordination.Lease, do func(context.Context) (bool, error)) linear.Answer {
	ctx, cancel := context.WithTimeout(p.Context(), p.patience())
	defer cancel()
	op := porcupine.Operation{ClientId: p.id, Input: in, Call: p.clock.Add(1)}
	held, err := do(ctx)
	out := linear.Answer{Held: held && err == nil, At: time.Since(p.began), Unknown: err != nil}
	op.Return = p.clock.Add(1)
	switch {
	case err != nil:
		op.Return, op.Metadata = math.MaxInt64, err
	case held:
		out.Token, out.Expires = lease.Token, lease.ExpiresAt.Sub(p.began)
	}
	op.Output = out
	p.done = append(p.done, op)
	if !out.Held {
		time.Sleep(rand.N(p.TTL / 50)) // who is refused looks again a little later
	}
	return out
}

// patience is how long a call may take. In trouble some give up, so that nobody knows what became of them.
func (p *player) patience() time.Duration {
	if p.Trouble != nil {
		return p.TTL/10 + rand.N(2*p.TTL)
	}
	return 10*p.TTL + time.Second
}
