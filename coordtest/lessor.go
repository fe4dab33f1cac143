package coordtest

import (
	"cmp"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// lessor is the part of the store that times leases. It is guarded by the store's lock.
type lessor struct {
	clock   func() time.Duration
	timed   bool // the clock is the default one: a timer can follow it
	floor   int64
	lag     time.Duration
	leases  map[int64]*lease
	owner   map[string]int64 // key -> the lease it hangs on
	lastID  int64
	paused  bool // no quorum: no lease ends
	stopped bool // closed: nor does any ever again
	timer   *time.Timer
	due     func() // what the timer runs
}

// lease ends at the instant end, by the lessor's clock; its keys go when it is revoked.
type lease struct {
	id   int64
	ttl  int64 // granted, seconds
	end  time.Duration
	keys map[string]struct{}
	gone chan struct{} // closed when it was revoked
}

func (ls *lessor) init(o Options, due func()) {
	ls.clock, ls.timed = o.Clock, o.Clock == nil
	if ls.timed {
		start := time.Now()
		ls.clock = func() time.Duration { return time.Since(start) }
	}
	ls.floor, ls.lag, ls.due = int64(o.MinTTL)/seconds, o.RevokeLag, due
	ls.leases, ls.owner = make(map[int64]*lease), make(map[string]int64)
	ls.lastID = 0x694d7f0000000000
}

// seconds of a lease are whole.
const seconds = int64(time.Second)

// maxTTL is the longest TTL that etcd grants, in seconds.
const maxTTL = clientv3.MaxLeaseTTL

// grant makes a lease; id 0 lets the lessor choose one.
func (ls *lessor) grant(id, ttl int64) (*lease, error) {
	for id == 0 {
		ls.lastID++
		if _, taken := ls.leases[ls.lastID]; !taken {
			id = ls.lastID
		}
	}
	if ttl > maxTTL {
		return nil, rpctypes.ErrGRPCLeaseTTLTooLarge
	}
	if _, taken := ls.leases[id]; taken {
		return nil, rpctypes.ErrGRPCLeaseExist
	}
	l := &lease{id: id, ttl: max(ttl, ls.floor), keys: make(map[string]struct{}), gone: make(chan struct{})}
	ls.refresh(l)
	ls.leases[id] = l
	return l, nil
}

// refresh gives a lease its full TTL. Even the longest fits a duration, for the next seven years of a clock.
func (ls *lessor) refresh(l *lease) { l.end = ls.clock() + time.Duration(l.ttl)*time.Second }

// remaining is the time that a lease has left; negative when it waits to be revoked.
func (ls *lessor) remaining(l *lease) time.Duration { return l.end - ls.clock() }

// attach moves a key to a lease, or off its lease if id is 0.
func (ls *lessor) attach(key string, id int64) {
	if l := ls.leases[ls.owner[key]]; l != nil {
		delete(l.keys, key)
	}
	delete(ls.owner, key)
	if l := ls.leases[id]; l != nil {
		l.keys[key] = struct{}{}
		ls.owner[key] = id
	}
}

// replaceLeases forgets all leases and has those given, without their keys, at their full TTL.
func (ls *lessor) replaceLeases(given []lease) {
	for _, l := range ls.leases {
		close(l.gone)
	}
	ls.leases, ls.owner = make(map[int64]*lease), make(map[string]int64)
	for _, old := range given {
		l := &lease{id: old.id, ttl: old.ttl, keys: make(map[string]struct{}), gone: make(chan struct{})}
		ls.refresh(l)
		ls.leases[l.id] = l
	}
}

// byEnd lists the leases, those that end first first.
func (ls *lessor) byEnd() []*lease {
	all := make([]*lease, 0, len(ls.leases))
	for _, l := range ls.leases {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *lease) int {
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.id, b.id))
	})
	return all
}

// sortedKeys are the keys of a lease in order: all members delete them in the same one.
func (l *lease) sortedKeys() []string {
	keys := make([]string, 0, len(l.keys))
	for k := range l.keys {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// revoke ends a lease now: its keys go in one revision.
func (s *store) revoke(id int64) error {
	l := s.leases[id]
	if l == nil {
		return rpctypes.ErrGRPCLeaseNotFound
	}
	b := s.begin()
	for _, k := range l.sortedKeys() {
		b.deleteRange(span{key: k})
	}
	b.commit()
	delete(s.leases, id)
	close(l.gone)
	s.dirty = true
	return nil
}

// expireDue revokes what is due by the clock, each lease in a revision of its own.
func (s *store) expireDue() {
	if s.paused || s.stopped {
		return
	}
	for _, l := range s.byEnd() {
		if s.remaining(l)+s.lag > 0 {
			return
		}
		_ = s.revoke(l.id) // it is there: byEnd listed it under the same lock
	}
}

// arm sets the timer for the lease that ends first.
func (s *store) arm() {
	if !s.timed {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if s.paused || s.stopped || len(s.leases) == 0 {
		return
	}
	s.timer = time.AfterFunc(s.remaining(s.byEnd()[0])+s.lag, s.due)
}

// sweep revokes what is due.
func (s *store) sweep() {
	s.lock()
	defer s.unlock()
}

// pause lets no lease end until pause(false).
func (s *store) pause(on bool) {
	s.lock()
	defer s.unlock()
	s.paused, s.dirty = on, true
	if !on {
		s.refreshAll()
	}
}

// rearm is what a new leader does to the leases.
func (s *store) rearm() {
	s.lock()
	defer s.unlock()
	s.dirty = true
	s.refreshAll()
}

// refreshAll gives every lease its full TTL again.
func (ls *lessor) refreshAll() {
	for _, l := range ls.leases {
		ls.refresh(l)
	}
}

// stop ends the timer for good.
func (s *store) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.arm()
}

// Sweep revokes the leases that are due by the clock. It is needed with Options.Clock only, after the clock
// was moved; every request does the same.
func (m *Medium) Sweep() { m.store.sweep() }
