package coord

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// DuplicateHostError tells about the process that is registered under the same UUID. It wraps
// [ErrDuplicateHost].
type DuplicateHostError struct {
	// Host is what it says of itself. It comes from etcd: hostile until escaped; the error's text is.
	Host HostMetadata
	// Lease is the lease that its key is on; 0: none, so that it never goes by itself.
	Lease clientv3.LeaseID
	// Left is what that lease had left when it was last asked for, in whole seconds; -1: not known.
	Left time.Duration
	// Renewed: the lease was renewed while it was looked at, so that process lives.
	Renewed bool

	rev  int64 // create revision of its key
	seen int64 // revision of the reply that showed it
}

func (e *DuplicateHostError) Error() string {
	text := fmt.Sprintf("%v: %q, host name %.80q, version %.80q, started %s, lease %s", ErrDuplicateHost, e.Host.HostUUID, e.Host.Hostname,
		e.Host.Version, time.Unix(0, e.Host.StartedAt).UTC().Format(time.RFC3339), leaseText(e.Lease))
	switch {
	case e.Lease == 0:
		return text + ": its key has no lease, and stays until somebody deletes it"
	case e.Renewed:
		return fmt.Sprintf("%s: it is renewed, %v are left", text, e.Left)
	case e.Left >= 0:
		return fmt.Sprintf("%s: %v are left", text, e.Left)
	}
	return text
}

func (e *DuplicateHostError) Unwrap() error { return ErrDuplicateHost }

// duplicateOf is what a key, found in a reply of revision seen, tells about its owner. A value that cannot be
// read leaves the UUID.
func duplicateOf(kv *mvccpb.KeyValue, seen int64) *DuplicateHostError {
	m, _ := DecodeHost(kv)
	return &DuplicateHostError{Host: m, Lease: clientv3.LeaseID(kv.Lease), Left: -1, rev: kv.CreateRevision, seen: seen}
}

// stands reports whether kv is still the key that was found.
func (e *DuplicateHostError) stands(kv *mvccpb.KeyValue) bool {
	return kv != nil && kv.CreateRevision == e.rev && clientv3.LeaseID(kv.Lease) == e.Lease
}

// enter is the first registration. The key of somebody else is waited for, while it looks like one that a
// process which is gone has left.
func (h *HostLiveness) enter(ctx context.Context, s *Session) (*registration, error) {
	var p patience
	for {
		r, err := h.put(ctx, s)
		var dup *DuplicateHostError
		if !errors.As(err, &dup) {
			return r, err
		}
		if err := h.outwait(ctx, s, dup, &p); err != nil {
			return nil, err
		}
	}
}

// maxLeaseTTL is the longest lease that etcd grants, in seconds.
const maxLeaseTTL = 9_000_000_000

// patience is what is known of the lease of a key that is waited for.
//
// The remaining time of a lease that nobody renews runs out at one moment. Each answer bounds that moment
// from both sides; one that puts it later than an earlier one allowed is the answer of a lease that was
// renewed in between. A change of etcd's leader starts all leases anew, and the comparison too. A leader that was paused may
// know the new term before it knows that it leads no more, and tells the time of a lease that is over there: so one answer that
// does not fit is the new measure, and only a second one is a renewal. A live process gives that as surely as the first.
type patience struct {
	limit time.Duration // when the wait ends; 0: not known yet
	over  time.Duration // by when the lease runs out, as its first answer of this raft term allows
	since time.Duration // when that answer came
	term  uint64
	lease clientv3.LeaseID // whose answer it was
	later int              // answers in this term that put it later
}

// outwait waits until the key that was found is gone. Everything else is an error.
func (h *HostLiveness) outwait(ctx context.Context, s *Session, dup *DuplicateHostError, p *patience) error {
	switch {
	case dup.Lease == 0:
		return dup
	case h.o.DuplicateWait < 0:
		p.ask(ctx, s, dup, 0)
		return dup
	}
	watch, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		awaitEnd(watch, s, h.key, dup.seen+1, dup.stands)
	}()
	defer func() { cancel(); <-gone }()

	h.log.Info("waiting for the key of an earlier process to expire", "lease", leaseText(dup.Lease))
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-gone:
			if watch.Err() == nil {
				return nil
			}
		case <-next.C:
		case <-s.Lost():
			return context.Cause(s.ctx)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), dup)
		}
		p.ask(ctx, s, dup, h.o.DuplicateWait)
		if dup.Renewed || s.clock() >= p.limit {
			return dup
		}
		next.Reset(min(s.bounds.Renew, time.Second, p.limit-s.clock()))
	}
}

// ask asks what the lease has left. No answer leaves everything as it was.
func (p *patience) ask(ctx context.Context, s *Session, dup *DuplicateHostError, most time.Duration) {
	sent := s.clock()
	if p.limit == 0 {
		p.limit = sent + s.bounds.TTL + time.Second
		if most > 0 {
			p.limit = sent + most
		}
	}
	try, cancel := context.WithTimeout(ctx, min(s.tryFor(), p.limit-sent))
	defer cancel()
	got, err := s.cli.TimeToLive(try, dup.Lease)
	// A leader that has only just been elected does not count its leases yet, and says that they have 292 years.
	if err != nil || got.TTL < 0 || got.TTL > maxLeaseTTL {
		return
	}
	dup.Left = time.Duration(got.TTL) * time.Second
	if p.term != got.RaftTerm || p.lease != dup.Lease {
		p.term, p.lease, p.later = got.RaftTerm, dup.Lease, 0
		p.measure(s.clock(), dup.Left)
		if most == 0 {
			p.limit = sent + time.Duration(got.GrantedTTL)*time.Second + time.Second
		}
		return
	}
	drift := time.Duration(float64(sent-p.since) * rateError)
	if sent+dup.Left > p.over+drift {
		p.later++
		p.measure(s.clock(), dup.Left)
	}
	dup.Renewed = p.later > 1
}

// measure takes an answer that came now for what later ones are held against. It was rounded down.
func (p *patience) measure(now, left time.Duration) { p.since, p.over = now, now+left+time.Second }
