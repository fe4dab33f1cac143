package shared

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// ErrClosed is returned when a share is asked for after Close.
var ErrClosed = fmt.Errorf("%w: the pool is closed", hold.ErrNoGuard)

// Pool has the guard that is there now, and starts the next one.
type Pool struct {
	start func() (client, error)
	turn  chan struct{} // held by whoever may change the generation

	mu      sync.Mutex
	current *generation // nil: nothing was started, or nothing of it is left
	shares  uint64      // how many there were
	closed  bool
}

// client is the wrapper's side of a guard, as a pool needs it.
type client interface {
	Send(guard.Request) error
	Events() <-chan guard.Event
	Kill()
	Sweep(context.Context) error
	Reap()
	Close() error
}

// New makes a pool. start is called for the first share, and again for the first one after a guard has ended.
func New(start func() (*guard.Client, error)) *Pool {
	return newPool(func() (client, error) {
		c, err := start()
		if err != nil {
			return nil, err // not a client that is nil
		}
		return c, nil
	})
}

func newPool(start func() (client, error)) *Pool {
	return &Pool{start: start, turn: make(chan struct{}, 1)}
}

// Guard gives a run its share of the guard, and starts the guard if there is none. Where the last one left something that
// is not gone, and does not go now, or ctx ends first, there is none to be had: hold.ErrNoGuard.
func (p *Pool) Guard(ctx context.Context) (*Share, error) {
	if err := p.take(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", hold.ErrNoGuard, err)
	}
	defer p.give()
	for {
		g, err := p.generation(ctx)
		if err != nil {
			return nil, err
		}
		if s := g.join(p.name()); s != nil {
			return s, nil
		}
		// It ended in between.
	}
}

// generation is the one that is alive, or a new one. It is called in turn.
func (p *Pool) generation(ctx context.Context) (*generation, error) {
	p.mu.Lock()
	g, closed := p.current, p.closed
	p.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case g != nil && g.alive():
		return g, nil
	case g != nil:
		// S1: nil means that nothing is left.
		if err := g.sweep(ctx); err != nil {
			return nil, fmt.Errorf("%w: what the last one left is not gone: %w", hold.ErrNoGuard, err)
		}
		p.replace(nil)
		_ = g.finish() // which was proven just now
	}
	c, err := p.start()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", hold.ErrNoGuard, err)
	}
	g = newGeneration(c)
	p.replace(g)
	return g, nil
}

func (p *Pool) replace(g *generation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = g
}

// name is what a share's runs are called by: no two shares of a pool have the same one.
func (p *Pool) name() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shares++
	return strconv.FormatUint(p.shares, 36)
}

// Reap takes away what has ended and came to this process though it is none of the guard's; see guard.Client. It is
// for the first process of a container, on SIGCHLD.
func (p *Pool) Reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Under the lock: by the client of a generation that is over, the next guard would be taken away.
	if p.current != nil {
		p.current.client.Reap()
	}
}

// Close waits until the last share is closed, and ends the guard in order. When ctx ends first, what still runs is killed, and
// the error says so; or that something is left. There are no new shares from the call on.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	// A guard that is just being started is waited for. Its start is no longer than its exec.
	p.turn <- struct{}{}
	defer p.give()
	p.mu.Lock()
	g := p.current
	p.mu.Unlock()
	if g == nil {
		return nil
	}
	err := g.wait(ctx)
	p.replace(nil)
	return errors.Join(err, g.finish())
}

func (p *Pool) take(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Pool) give() { <-p.turn }
