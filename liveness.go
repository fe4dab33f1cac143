package coord

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// HostLiveness is a host that is registered: a key on a lease that lives for as long as this process does,
// and can be reached. It comes back by itself when the key is lost.
//
// Invariants:
//
//	(L1) Only a key that is absent, or on a lease that this object was granted, is ever written: a live
//	     process with the same UUID keeps its key.
//	(L2) Every write is guarded by the key's mod revision as last read, so that a request that lands late
//	     finds that it is late. Which metadata a write carries is decided while the turn is held, and the
//	     last to be given wins.
//	(L3) After Stop nothing is written any more: its revoke comes after the last write, and a put that is
//	     still under way needs the lease.
//	(L4) Every lease that was granted is revoked, or left to its TTL where etcd cannot be reached.
type HostLiveness struct {
	cli *clientv3.Client
	o   LivenessOptions
	key string
	log *slog.Logger

	ctx    context.Context // ends with Stop, or with a loss for good; its cause says which
	cancel context.CancelCauseFunc
	done   chan struct{} // nothing is healed any more
	turn   chan struct{} // full while somebody writes the key
	change chan LivenessChange
	wg     sync.WaitGroup // leases being revoked, proofs being watched

	mu       sync.Mutex
	want     HostMetadata
	gen      int64         // of want: rises with each update
	on       *registration // nil while there is none
	lease    clientv3.LeaseID
	leases   map[clientv3.LeaseID]struct{} // granted to us and not known to be revoked: keys on them are ours
	state    LivenessState
	why      error    // of a state other than healthy
	fenced   bool     // proofs are asked for
	demanded *Session // the session that gives them
	proof    *Proof
	news     chan struct{} // closed and replaced when a proof may have become possible
	closed   bool          // no proof begins any more
	leftover error         // a lease that could not be revoked on the way out

	stopOnce sync.Once
	stopErr  error
}

// registration is one time of being registered.
type registration struct {
	s     *Session
	claim *claim
	since time.Duration
	at    written // what the key holds (with the turn)
}

// RegisterHostLiveness registers a host and keeps it registered until Stop, whatever happens to its key, its
// lease or etcd meanwhile. ctx bounds this call only. The client stays the caller's.
//
// An agent that was killed and started again finds its own former key, whose lease nobody renews: it waits
// until that has expired, for a lease time at most, and then registers. Nothing tells such a key from that of
// another live process but the renewals, so it is not taken over sooner, also where host name and start time
// would suggest it. A key that is renewed, that has no lease, or that outlives the wait, is
// [ErrDuplicateHost]. After an error nothing is left in etcd.
//
// It does not promise that no other process believes to be this host: a machine that was cut off for the
// lease time comes back to find its successor. What must stop then, runs under [HostLiveness.Context].
func RegisterHostLiveness(ctx context.Context, cli *clientv3.Client, m HostMetadata, o LivenessOptions) (*HostLiveness, error) {
	m = m.clone()
	if m.StartedAt == 0 {
		m.StartedAt = time.Now().UnixNano()
	}
	err := m.Validate()
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return nil, fmt.Errorf("register host: %w", err)
	}
	h := &HostLiveness{
		cli: cli, o: o, key: hostKey(o.Prefix, m.HostUUID), log: o.Logger.With("host_uuid", m.HostUUID), want: m,
		done: make(chan struct{}), turn: make(chan struct{}, 1), change: make(chan LivenessChange, 1),
		news: make(chan struct{}), leases: map[clientv3.LeaseID]struct{}{},
	}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())

	s, err := h.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("register host: %w", err)
	}
	r, err := h.enter(ctx, s)
	if err != nil {
		if left := s.Close(ctx); left != nil {
			err = fmt.Errorf("%w (%w)", err, left)
		}
		return nil, fmt.Errorf("register host: %w", err)
	}
	go h.run(r)
	return h, nil
}

// open grants a lease. Once its caller has given up it waits a moment for the answer, so that a lease is not
// left behind for want of its number.
func (h *HostLiveness) open(ctx context.Context) (*Session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	late, cancel := patient(ctx)
	defer cancel()
	s, err := NewSession(late, h.cli, SessionOptions{
		TTL: h.o.ttl(), Grace: h.o.Grace, Margin: h.o.Margin, Refresh: h.o.Refresh,
		Logger: h.log, Clock: h.o.Clock, Metrics: h.o.Metrics,
	})
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases[s.lease] = struct{}{}
	return s, nil
}

// Key is the host's key.
func (h *HostLiveness) Key() string { return h.key }

// LeaseID is the lease that the key is on, or was on last. It changes when the registration was lost.
func (h *HostLiveness) LeaseID() clientv3.LeaseID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

// UpdateMetadata changes what the host says of itself: for watchers an update, and no flap. The UUID has to
// stay; a StartedAt of 0 keeps the one that was registered. While the registration is lost the metadata is
// kept, and comes with the return. An error says that it may not be in etcd yet; it is kept all the same, and
// the next update or return writes it.
func (h *HostLiveness) UpdateMetadata(ctx context.Context, m HostMetadata) error {
	m = m.clone()
	h.mu.Lock()
	m.StartedAt = cmp.Or(m.StartedAt, h.want.StartedAt)
	err := m.Validate()
	if err == nil && m.HostUUID != h.want.HostUUID {
		err = fmt.Errorf("%w: host uuid %q: want %q, which is registered", ErrInvalidOption, m.HostUUID, h.want.HostUUID)
	}
	if err != nil {
		h.mu.Unlock()
		return fmt.Errorf("update host: %w", err)
	}
	h.gen++
	h.want = m
	mine := h.gen
	h.mu.Unlock()

	ctx, cancel := bind(ctx, h.ctx)
	defer cancel()
	if err := h.update(ctx, mine); err != nil {
		return fmt.Errorf("update host: %w", err)
	}
	return nil
}

// Stop ends the registration for good, also one that is lost just now. It says goodbye, so that watchers know
// that the host was stopped, and revokes the lease, so that they know at once; proofs end before that. It
// waits for everything that the registration started and returns what went wrong; then the lease is left to
// its TTL. ctx bounds it, together with bounds of its own: where ctx has ended, each step is still tried once.
// Only the first call does anything; further ones return what it did.
func (h *HostLiveness) Stop(ctx context.Context) error {
	h.stopOnce.Do(func() {
		h.cancel(ErrClosed)
		<-h.done
		h.turn <- struct{}{} // for good: an update that is under way has ended with h.ctx
		h.mu.Lock()
		h.closed = true
		r := h.on
		h.on = nil
		h.mu.Unlock()
		if r != nil {
			h.stopErr = h.leave(ctx, r)
		}
		h.wg.Wait()
		h.stopErr = cmp.Or(h.stopErr, h.leftover)
		h.say(LivenessStopped, ErrClosed)
		close(h.change)
	})
	return h.stopErr
}

// leave says goodbye and revokes the lease.
func (h *HostLiveness) leave(ctx context.Context, r *registration) error {
	r.claim.drop(ErrClosed)
	said := h.farewell(ctx, r)
	if err := r.s.Close(ctx); err != nil {
		return fmt.Errorf("stop host: %w", err)
	}
	if said != nil {
		return fmt.Errorf("stop host: say goodbye: %w", said)
	}
	return nil
}
