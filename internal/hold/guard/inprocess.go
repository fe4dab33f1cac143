package guard

import (
	"context"
	"fmt"
	"sync"
)

// InProcess is a guard whose loop runs in this process. Deadlines, escalation and the proof that everything is
// gone are the same; but nothing outlives this process, so nothing is ended or released when it is
// killed. Options.Path, Release, Settings and Env are not used. This process must have no other children, or
// they are taken for the run's, except those that it had before.
func InProcess(o Options) (*Client, error) {
	kin, err := relatives()
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	p, err := pipes()
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	own := &ownLoop{quit: make(chan struct{}), done: make(chan struct{}), kin: kin}
	c := config{
		requests: p.guardIn,
		events:   p.guardOut,
		stdio:    o.stdio(),
		kept:     o.Kept,
		wrapper:  ownGroup(),
		clock:    clockOf(o),
		quit:     own.quit,
		kin:      kin,
	}
	go own.serve(c)
	return newClient(own, p.requests, p.events), nil
}

// ownLoop is the peer in this process.
type ownLoop struct {
	quit chan struct{}
	once sync.Once
	done chan struct{}
	how  string // set before done is closed
	kin  sweeper
}

// sweeper ends what is left after a guard.
type sweeper interface {
	sweep(ctx context.Context) error
}

func (l *ownLoop) serve(c config) {
	defer close(l.done)
	l.how = "it ended"
	if err := serve(c); err != nil {
		l.how = err.Error()
		_ = c.events.Close()
	}
}

func (l *ownLoop) kill() { l.once.Do(func() { close(l.quit) }) }

func (l *ownLoop) wait() string {
	<-l.done
	return l.how
}

// reap is the loop's own work here.
func (l *ownLoop) reap() {}

func (l *ownLoop) sweep(ctx context.Context) error { return l.kin.sweep(ctx) }
