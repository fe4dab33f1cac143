package coord

import (
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// A plain session that is well is kept: its stream renews it, and its own goroutine sleeps until something
// else is wanted of it, or goes wrong. Ten thousand of them are then as many messages a period, and little more.
//
// Lock order: a stream's before a session's.

// handOver lets the stream keep the session, which was renewed at began, if nothing but that is wanted of it. A
// lease that goes alone is not kept: its next renewal goes over a shared stream again.
func (r *renewer) handOver(began, now time.Duration) bool {
	s, st := r.s, r.st
	if s.refresh == 0 || st == nil || st.alone {
		return false
	}
	s.mu.Lock()
	s.kept = true
	s.kept = s.idle()
	kept := s.kept
	s.mu.Unlock()
	if kept {
		st.keep(s, s.pause(began, now))
	}
	return kept
}

// take takes the session back from its stream.
func (r *renewer) take() {
	r.s.mu.Lock()
	r.alone = r.alone || r.s.late
	r.s.kept, r.s.late = false, false
	r.s.mu.Unlock()
	if r.st != nil {
		r.st.forget(r.s)
	}
}

// idle reports whether the stream may go on keeping the session: it was not taken back, and plain renewals are
// all that is wanted of it (s.mu held).
func (s *Session) idle() bool { return s.kept && !s.muted && !s.proves() }

// keep renews s when left has passed.
func (st *stream) keep(s *Session, left time.Duration) {
	due := time.Now().Add(left)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.kept[s] = due
	if st.next.IsZero() || due.Before(st.next) {
		st.next = due
		st.tick.Reset(left)
	}
}

func (st *stream) forget(s *Session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	delete(st.kept, s)
}

// renewKept asks for the renewals that are due, and comes again when the next one is.
func (st *stream) renewKept() {
	st.mu.Lock()
	defer st.mu.Unlock()
	now := time.Now()
	st.next = time.Time{}
	for s, due := range st.kept {
		if due.After(now) {
			if st.next.IsZero() || due.Before(st.next) {
				st.next = due
			}
			continue
		}
		delete(st.kept, s) // until the reply is there
		s.mu.Lock()
		idle := s.idle()
		s.mu.Unlock()
		if idle { // else its own goroutine was told, or nothing is wanted of it any more
			st.add(&ask{lease: int64(s.lease), bound: s.patience(0), kept: s, sent: s.clock()})
		}
	}
	if !st.next.IsZero() {
		st.tick.Reset(st.next.Sub(now))
	}
}

// answered takes in what became of the renewal of a kept session.
func (st *stream) answered(a *ask, ack *pb.LeaseKeepAliveResponse, err error) {
	s := a.kept
	if err == nil && ack.TTL <= 0 {
		s.lose(ErrLeaseGone)
		err = ErrLeaseGone
	}
	now := s.clock()
	s.tell.renewal(now-a.sent, false, err)
	if err == nil {
		s.acknowledge(a.sent, now, false)
	}
	s.mu.Lock()
	idle := s.idle()
	s.late = errors.Is(err, errLate)
	s.mu.Unlock()
	if err == nil && idle {
		st.keep(s, s.pause(a.sent, now))
	} else {
		s.renewNow() // its own goroutine sees to it
	}
}
