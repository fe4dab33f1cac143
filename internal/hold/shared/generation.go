package shared

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-coord/coord/internal/hold/guard"
)

// sweepFor bounds one sweep, so that whoever waits for it hears of what cannot be killed.
const sweepFor = 5 * time.Second

// generation is one guard process and those who share it.
type generation struct {
	client client
	ctx    context.Context // ends with it
	cancel context.CancelFunc
	routed chan struct{} // the reading goroutine has ended

	mu      sync.Mutex
	shares  map[string]*Share
	said    []guard.Event // to all: what a newcomer has to hear
	ending  bool          // killed, or dead: nobody joins
	swept   bool          // a sweep ended empty
	attempt *attempt      // the sweep under way
	idle    chan struct{} // Close waits for the last share; nil: it does not
}

// attempt is one sweep, for all who wait for it.
type attempt struct {
	done chan struct{}
	err  error // set before done is closed
}

func newGeneration(c client) *generation {
	g := &generation{client: c, routed: make(chan struct{}), shares: map[string]*Share{}}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	go g.route()
	return g
}

// route passes on what the guard says until it has ended.
func (g *generation) route() {
	defer close(g.routed)
	for e := range g.client.Events() {
		if e.Run == "" {
			g.announce(e)
			continue
		}
		name, run, _ := strings.Cut(e.Run, separator)
		e.Run = run
		if s := g.find(name); s != nil {
			s.put(e)
		}
	}
	// A client that is closed at this moment may not say so any more.
	g.announce(guard.Event{Kind: guard.KindLost})
}

func (g *generation) find(name string) *Share {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shares[name]
}

// announce says something to all, also to those who come later (S3). When the guard is lost, its sweep begins at once: there
// may be no share left that would ask for it.
func (g *generation) announce(e guard.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.said); n > 0 && g.said[n-1].Kind == guard.KindLost {
		return
	}
	g.said = append(g.said, e)
	for _, s := range g.shares {
		s.put(e)
	}
	if e.Kind == guard.KindLost {
		g.ending = true
		g.begin()
	}
}

// join makes a share; nil in a generation that is ending.
func (g *generation) join(name string) *Share {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ending {
		return nil
	}
	s := newShare(g, name)
	for _, e := range g.said {
		s.put(e)
	}
	g.shares[name] = s
	return s
}

// leave is called by a share when it is closed.
func (g *generation) leave(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.shares, name)
	if len(g.shares) == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

func (g *generation) alive() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.ending
}

// kill ends the guard, for all.
func (g *generation) kill() {
	g.mu.Lock()
	g.ending = true
	g.mu.Unlock()
	g.client.Kill()
}

// sweep waits for the sweep under way, or for one that it begins. nil: nothing of the generation is left, for good (S2).
func (g *generation) sweep(ctx context.Context) error {
	g.mu.Lock()
	swept, a := g.swept, g.begin()
	g.mu.Unlock()
	if swept {
		return nil
	}
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin begins a sweep unless there is one, or needs to be none. It is called with mu held.
func (g *generation) begin() *attempt {
	if g.attempt == nil && !g.swept {
		g.attempt = &attempt{done: make(chan struct{})}
		go g.try(g.attempt)
	}
	return g.attempt
}

func (g *generation) try(a *attempt) {
	ctx, cancel := context.WithTimeout(g.ctx, sweepFor)
	defer cancel()
	a.err = g.client.Sweep(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.attempt, g.swept = nil, a.err == nil
	close(a.done)
}

// wait waits for the last share to be closed.
func (g *generation) wait(ctx context.Context) error {
	g.mu.Lock()
	idle := make(chan struct{})
	if len(g.shares) == 0 {
		close(idle)
	} else {
		g.idle = idle
	}
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish says good-bye to the guard and ends what goes on here. How the guard ended does not matter: a sweep proves that
// nothing is left.
func (g *generation) finish() error {
	_ = g.client.Close()
	<-g.routed
	err := g.sweep(context.Background())
	g.cancel()
	return err
}
