package shared

import (
	"context"
	"errors"
	"sync"

	"github.com/go-coord/coord/internal/hold/guard"
)

// separator stands between a share's name and the name of its run. No name of a share holds it.
const separator = "."

var errBye = errors.New("shared: a share does not end the guard")

// Share is one run's share of the guard: what supervise.Run takes for a guard of its own. Close it when the run is over.
type Share struct {
	g      *generation
	name   string
	events chan guard.Event
	quit   chan struct{} // closed: it is over
	done   chan struct{} // the goroutine has ended

	mu     sync.Mutex
	queue  []guard.Event
	wake   chan struct{}
	closed bool
	runs   map[string]bool // started, as far as is known neither refused nor gone
	wills  map[string]bool // left with the guard and not dropped
}

func newShare(g *generation, name string) *Share {
	s := &Share{
		g: g, name: name,
		events: make(chan guard.Event), quit: make(chan struct{}), done: make(chan struct{}),
		wake: make(chan struct{}, 1), runs: map[string]bool{}, wills: map[string]bool{},
	}
	go s.pump()
	return s
}

// Events yields what the guard says of this share's runs, and to all. KindLost is the last one; then, or by Close, it ends.
func (s *Share) Events() <-chan guard.Event { return s.events }

// Send passes a request on. It never waits for the guard.
func (s *Share) Send(q guard.Request) error {
	if q.Op == guard.OpBye {
		return errBye
	}
	// The lock is kept until it is sent: nothing comes after what Close sends.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return guard.ErrLost
	}
	if q.Op == guard.OpStart {
		s.runs[q.Run] = true
	}
	switch {
	case q.Op == guard.OpForget:
		delete(s.wills, q.Run)
	case len(q.Testament) > 0:
		s.wills[q.Run] = true
	}
	return s.send(q)
}

func (s *Share) send(q guard.Request) error {
	q.Run = s.name + separator + q.Run
	return s.g.client.Send(q)
}

// Kill ends the guard, for every share: each hears of the loss.
func (s *Share) Kill() { s.g.kill() }

// Sweep ends everything that the guard left, of all shares, and returns nil only if nothing is left. The sweep is everybody's: who
// comes in the middle of one that fails waits for another one, until ctx ends.
func (s *Share) Sweep(ctx context.Context) error {
	for {
		err := s.g.sweep(ctx)
		if err == nil || ctx.Err() != nil || s.g.ctx.Err() != nil {
			return err
		}
	}
}

// Close ends the share (S5). It may be called again.
func (s *Share) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		// Errors mean that the guard is dead, and then there is nothing to say.
		for run := range s.wills {
			_ = s.send(guard.Request{Op: guard.OpForget, Run: run})
		}
		for run := range s.runs {
			_ = s.send(guard.Request{Op: guard.OpKill, Run: run, Reason: "its share of the guard was closed"})
		}
		close(s.quit)
	}
	s.mu.Unlock()
	<-s.done
	s.g.leave(s.name)
	return nil
}

// put queues an event, and never waits (S4).
func (s *Share) put(e guard.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if e.Kind == guard.KindRefused || e.Kind == guard.KindGone {
		delete(s.runs, e.Run)
	}
	s.queue = append(s.queue, e)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// pump is the goroutine: it hands over what is queued, at the pace of whoever reads.
func (s *Share) pump() {
	defer close(s.done)
	defer close(s.events)
	for {
		select {
		case <-s.wake:
		case <-s.quit:
			return
		}
		s.mu.Lock()
		queue := s.queue
		s.queue = nil
		s.mu.Unlock()
		for _, e := range queue {
			select {
			case s.events <- e:
			case <-s.quit:
				return
			}
			if e.Kind == guard.KindLost {
				return
			}
		}
	}
}
