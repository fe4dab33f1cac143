package coord

import (
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A verified renewal, step by step, never pipelined:
//
//  1. note the clock;
//  2. renew, and wait for the reply;
//  3. only then read the own keys, linearizably;
//  4. accept if a key is there with its create revision and on this lease, and both replies carry the same
//     raft term. Then, and only then, the deadline counts from step 1.
//
// Why not believe the renewal: a leader that was paused for longer than its followers waited, and resumed,
// acknowledges renewals in its old term that the new leader never hears of. The read needs a quorum, so it
// cannot be answered by such a leader; equal terms say that no new leader came between the two replies.
// The reply's header is filled before the renewal takes place, so the read must start after that reply.
//
// Streams and reads are shared by the sessions of a client (hub.go): step 1 is before the renewal waits for
// its turn on the stream, and step 3 after its own reply, so neither changes what is proven.

// renewals renews every T/10 (a plain session: every refresh), and again at once after a failure, until the
// session ends.
func (s *Session) renewals() {
	r := renewer{s: s}
	defer r.leave()
	pause := backoff{low: s.bounds.TTL / 200, high: s.bounds.Renew}
	due := time.NewTimer(s.pause(s.clock(), s.clock()))
	defer due.Stop()
	for {
		select {
		case <-due.C:
		case <-s.kick:
		case <-s.ctx.Done():
			return
		}

		r.take()

		// One attempt. A failure costs its bound and is followed by the next at once, elsewhere.
		began := s.clock()
		verified, err := r.attempt(began)
		now := s.clock()
		s.tell.renewal(now-began, verified, err)
		if err != nil {
			s.log.Debug("renewal failed", "lease", fmt.Sprintf("%x", int64(s.lease)), "err", err)
			// Whom another lease's trouble has moved did not fail itself, and waits for nothing.
			if !errors.Is(err, errMoved) && !pause.pause(s.ctx) {
				return
			}
			due.Reset(0)
			continue
		}
		pause.reset()
		if !r.handOver(began, now) {
			due.Reset(s.pause(began, now))
		}
	}
}

// renewer is the way of one session's renewals: which stream they go over, and how patient they are.
type renewer struct {
	s     *Session
	st    *stream // nil: no place yet
	alone bool    // after a late reply: the next renewal goes over a stream of its own
	fails int     // in a row
}

// attempt is one verified renewal, or a plain one while the session has no key. Step 1 is the caller's: sent
// is the clock before it. It reports whether it proved the lease alive.
func (r *renewer) attempt(sent time.Duration) (verified bool, err error) {
	s := r.s
	s.mu.Lock()
	muted, floor, proves := s.muted, s.seen.revision, s.proves()
	var claims []*claim
	if proves {
		claims = s.snapshot()
	}
	s.mu.Unlock()
	if muted {
		return false, nil
	}

	// Step 2.
	ack, err := r.renew(proves)
	if err != nil {
		return false, fmt.Errorf("renew: %w", err)
	}
	if ack.TTL <= 0 {
		s.lose(ErrLeaseGone)
		return false, ErrLeaseGone
	}

	// Steps 3 and 4.
	if len(claims) > 0 {
		if verified, err = r.verify(ack, claims, floor); err != nil {
			r.fails++
			return false, fmt.Errorf("verify: %w", err)
		}
	}
	r.fails = 0
	s.acknowledge(sent, s.clock(), verified)
	return verified, nil
}

// patience is the time one request of an attempt may take: T/20, so that a silent member costs little of the
// silence allowed, but no more than a sound etcd ever needs; doubled after every second failure in a row,
// so that a slow network is not cut off for ever.
func (s *Session) patience(fails int) time.Duration {
	t := min(s.bounds.TTL, 40*time.Second)
	return min(t/20<<min(fails/2, 4), t/5)
}

// renew renews over the shared stream, or, after a reply that was late, over one of its own: there it holds
// nobody up until it is answered again.
func (r *renewer) renew(proves bool) (*pb.LeaseKeepAliveResponse, error) {
	if r.st != nil && (r.st.proves != proves || r.st.alone != r.alone) {
		r.leave()
	}
	if r.st == nil {
		r.st = r.s.hub.seat(proves, r.alone)
	}
	ack, err := r.st.renew(r.s.ctx, int64(r.s.lease), r.s.patience(r.fails))
	switch {
	case errors.Is(err, errMoved):
	case err != nil:
		r.fails++
		r.alone = errors.Is(err, errLate)
	default:
		r.alone = false
	}
	return ack, err
}

// leave gives up the place on the stream.
func (r *renewer) leave() {
	r.take()
	if r.st != nil {
		r.s.hub.unseat(r.st)
		r.st = nil
	}
}

// verify reads the keys of all claims, and what queued ones wait for, after the reply ack. It tells each
// claim what it saw and reports whether a key proves the lease alive.
func (r *renewer) verify(ack *pb.LeaseKeepAliveResponse, claims []*claim, floor int64) (bool, error) {
	proof := false
	for len(claims) > 0 {
		// As many claims as fit into one Txn.
		var ops []clientv3.Op
		n := 0
		for n < len(claims) && len(ops)+maxReads <= maxOps {
			ops = append(ops, claims[n].reads()...)
			n++
		}
		got := r.s.hub.reads.read(r.s.ctx, ops, r.s.patience(r.fails))
		if got.err != nil {
			return false, got.err
		}
		if term := ack.Header.GetRaftTerm(); got.header.GetRaftTerm() != term {
			return false, fmt.Errorf("renewed in raft term %d, read in %d", term, got.header.GetRaftTerm())
		}
		seen, err := r.s.observe(claims[:n], got, floor)
		if err != nil {
			return false, err
		}
		proof = proof || seen
		claims = claims[n:]
	}
	return proof, nil
}

// observe hands the replies of one batched read to the claims that asked, and reports whether any own
// key was there as it should be.
func (s *Session) observe(claims []*claim, got readReply, floor int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.note(got.header, floor); err != nil {
		return false, err
	}
	proof := false
	parts := got.parts
	for _, c := range claims {
		mine := parts[:c.read]
		parts = parts[c.read:]
		// A claim dropped meanwhile has nothing to lose: its key may be gone because it was released.
		if _, on := s.claims[c]; on && c.look(mine) {
			proof = true
		}
	}
	return proof, nil
}

// acknowledge moves the clock of the session: the last thing a renewal does. A session whose time was
// over before the reply came, which was before now, is lost all the same (S2).
func (s *Session) acknowledge(sent, now time.Duration, verified bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checkAt(now) != nil {
		return
	}
	s.plain = max(s.plain, sent)
	if verified && sent > s.proven {
		s.proven = sent
		close(s.risen)
		s.risen = make(chan struct{})
		select {
		case s.renewed <- struct{}{}:
		default:
		}
	}
}

// renewNow asks for a renewal without waiting for the next one due.
func (s *Session) renewNow() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}
