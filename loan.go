package coord

import (
	"context"
	"time"
)

// loan is a session of a pool: the one of a key, or of all keys.
//
// The grant runs in a goroutine of the pool, without its lock, and belongs to none of the borrowers: it ends
// when it is answered, when the last who waited for it has given up, or with the pool.
type loan struct {
	granted chan struct{} // closed when the grant has ended
	s       *Session      // nil where it failed; set before granted is closed
	err     error
	waiters int // who waits for the grant (the pool's mu)
	cancel  context.CancelFunc
}

// pending reports whether the grant is still under way.
func (l *loan) pending() bool {
	select {
	case <-l.granted:
		return false
	default:
		return true
	}
}

// alive reports whether the session can be lent: neither lost nor closed, and not left to its TTL.
func (l *loan) alive() bool { return !l.pending() && l.s.Check() == nil && !l.s.isMuted() }

// borrow returns the session of that name, granting it where there is none that lives.
func (p *ElectionPool) borrow(ctx context.Context, name string) (*Session, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		l, s, err := p.ask(name)
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-l.granted:
		case <-ctx.Done():
		}
		p.part(name, l)
		switch {
		case l.pending():
			return nil, context.Cause(ctx)
		case l.err != nil:
			return nil, l.err
		case l.alive():
			return l.s, nil
		}
	}
}

// ask gives the session of that name if it lives. Else it joins those who wait for the loan; where there is none, or a dead one,
// it begins a new one.
func (p *ElectionPool) ask(name string) (*loan, *Session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil, nil, ErrClosed
	}
	l := p.loans[name]
	if l != nil && !l.pending() {
		if l.alive() {
			return nil, l.s, nil
		}
		p.retire(l.s)
		l = nil
	}
	if l == nil {
		ctx, cancel := context.WithCancel(p.ctx)
		l = &loan{granted: make(chan struct{}), cancel: cancel}
		p.loans[name] = l
		p.wg.Go(func() { p.grant(ctx, name, l) })
	}
	l.waiters++
	return l, nil, nil
}

// part leaves those who wait. A grant that nobody waits for any more is given up; who comes next begins another.
func (p *ElectionPool) part(name string, l *loan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.waiters--; l.waiters == 0 && l.pending() {
		delete(p.loans, name)
		l.cancel()
	}
}

// grant makes the session of a loan.
func (p *ElectionPool) grant(ctx context.Context, name string, l *loan) {
	defer l.cancel()
	s, err := NewSession(ctx, p.cli, SessionOptions{
		TTL: time.Duration(p.opts.TTLSec) * time.Second, Grace: p.opts.Grace, Margin: p.opts.Margin,
		Logger: p.opts.Logger, Clock: p.opts.Clock, Metrics: p.opts.Metrics,
	})
	p.mu.Lock()
	unwanted := p.loans[name] != l // all who waited have given up
	if err != nil && !unwanted {
		delete(p.loans, name)
	}
	if err != nil && p.ctx.Err() != nil {
		err = ErrClosed
	}
	l.s, l.err = s, err
	close(l.granted)
	p.mu.Unlock()
	if unwanted && s != nil {
		_ = s.Close(ctx) // what cannot be revoked has no key
	}
}

// retire takes a session that died out of the pool (p.mu held). What its borrowers do may go on until the
// deadline, so the lease is not revoked before.
func (p *ElectionPool) retire(s *Session) {
	p.retired[s] = struct{}{}
	p.replaced++
	p.wg.Go(func() {
		select {
		case <-s.Lost():
		case <-p.ctx.Done():
			return // Close closes it
		}
		_, kill := s.Deadlines()
		over := time.NewTimer(kill - s.clock())
		defer over.Stop()
		select {
		case <-over.C:
		case <-p.ctx.Done():
			return
		}
		_ = s.Close(p.ctx) // its lease has ended, or ends soon
		p.mu.Lock()
		delete(p.retired, s)
		p.mu.Unlock()
	})
}
