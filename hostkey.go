package coord

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// written is a host's key as last seen.
type written struct {
	gen  int64 // of the metadata in it
	rev  int64 // create revision; 0: there is no key
	mod  int64 // mod revision
	seen int64 // revision of the reply that said so
}

// write puts value where the key is as w says: absent, or with w's mod revision (L2). Whatever stands there
// instead is read, and written over where it is our own: on this lease, left by a write whose reply was lost
// or touched by hand; or on a former one, from which the key then moves without having been away. A key
// that is gone is put anew with create, and ErrKeyGone without. That of another process is a
// *DuplicateHostError. It asks until there is an answer: of a request
// that got none, the next one tells.
func (h *HostLiveness) write(ctx context.Context, s *Session, w written, value string, create bool) (written, error) {
	pause := backoff{low: 20 * time.Millisecond, high: s.bounds.Renew}
	for {
		if err := s.Check(); err != nil {
			return w, err
		}
		got, err := h.putIf(ctx, s, w.mod, value)
		switch {
		case err != nil && (definite(err) || s.Check() != nil || !pause.pause(ctx)):
			return w, fmt.Errorf("put host: %w", err)
		case err != nil:
			continue
		case got.Succeeded:
			w.mod, w.seen = got.Header.Revision, got.Header.Revision
			if w.rev == 0 {
				w.rev = w.mod
			}
			return w, nil
		}

		kv := first(got.Responses[0])
		switch {
		case kv == nil && !create:
			return w, ErrKeyGone
		case kv == nil:
			w = written{}
		case !h.granted(clientv3.LeaseID(kv.Lease)):
			return w, duplicateOf(kv, got.Header.Revision)
		default:
			w = written{rev: kv.CreateRevision, mod: kv.ModRevision, seen: got.Header.Revision}
			if kv.Lease == int64(s.lease) && string(kv.Value) == value {
				return w, nil
			}
		}
	}
}

// putIf is one write.
func (h *HostLiveness) putIf(ctx context.Context, s *Session, mod int64, value string) (*clientv3.TxnResponse, error) {
	try, cancel := s.try(ctx)
	defer cancel()
	return h.cli.Txn(try).
		If(clientv3.Compare(clientv3.ModRevision(h.key), "=", mod)).
		Then(clientv3.OpPut(h.key, value, clientv3.WithLease(s.lease))).
		Else(clientv3.OpGet(h.key)).Commit()
}

// granted reports whether a lease is one of ours.
func (h *HostLiveness) granted(lease clientv3.LeaseID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ours := h.leases[lease]
	return ours
}

// put registers on s with the metadata that is wanted now.
func (h *HostLiveness) put(ctx context.Context, s *Session) (*registration, error) {
	h.turn <- struct{}{} // an update lets go of it once there is no registration
	defer func() { <-h.turn }()
	value, gen := h.wanted()
	at, err := h.write(ctx, s, written{}, value, true)
	if err != nil {
		return nil, err
	}
	at.gen = gen
	r := &registration{s: s, claim: s.hold(h.key, at.rev, at.seen), since: h.o.Clock(), at: at}
	h.mu.Lock()
	h.on, h.lease = r, s.lease
	h.demand()
	h.mu.Unlock()
	return r, nil
}

// wanted is the value that the key should have.
func (h *HostLiveness) wanted() (value string, gen int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return encodeHost(h.want), h.gen
}

// update brings the key up to date, if it is there and behind. The loss of a registration is no error: who
// heals it writes what is wanted then.
func (h *HostLiveness) update(ctx context.Context, mine int64) error {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.turn }()
	h.mu.Lock()
	r := h.on
	h.mu.Unlock()
	if r == nil || r.at.gen >= mine {
		return context.Cause(h.ctx)
	}
	value, gen := h.wanted()
	bound, cancel := bind(ctx, r.claim.ctx)
	defer cancel()
	at, err := h.write(bound, r.s, r.at, value, false)
	switch {
	case h.ctx.Err() != nil:
		return context.Cause(h.ctx)
	case err == nil && at.rev == r.at.rev:
		at.gen = gen
		r.at = at
		return nil
	case err == nil || r.claim.ctx.Err() != nil || taken(err):
		return nil
	}
	return err
}

// taken reports whether err says that the key is not ours any more, as its watch will say or has said.
func taken(err error) bool {
	return errors.Is(err, ErrKeyGone) || errors.Is(err, ErrSessionLost) || errors.Is(err, ErrDuplicateHost)
}

// farewell writes that the host stops. A key that is gone has said so already.
func (h *HostLiveness) farewell(ctx context.Context, r *registration) error {
	late, cancel := patient(ctx)
	defer cancel()
	late, bound := context.WithTimeout(late, r.s.tryFor())
	defer bound()
	h.mu.Lock()
	value := encodeStopping(h.want)
	h.mu.Unlock()
	if _, err := h.write(late, r.s, r.at, value, false); err != nil && !taken(err) {
		return err
	}
	return nil
}
