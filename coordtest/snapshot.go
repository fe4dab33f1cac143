package coordtest

import "slices"

// Snapshot is a copy of a store, taken by Medium.Snapshot.
type Snapshot struct {
	rev, compacted int64
	keys           []string
	history        map[string][]change
	leases         []lease
}

// Snapshot copies keys, history and leases as they are now.
func (m *Medium) Snapshot() *Snapshot {
	s := m.store
	s.lock()
	defer s.unlock()
	snap := &Snapshot{rev: s.rev, compacted: s.compacted, keys: slices.Clone(s.keys), history: make(map[string][]change)}
	for k, vs := range s.history {
		snap.history[k] = slices.Clone(vs)
	}
	for _, l := range s.leases {
		snap.leases = append(snap.leases, *l)
	}
	return snap
}

// Restore puts everything back to a snapshot, revisions included: the cluster restarts from it, without the
// revision bump that etcdutl offers. Connections break, the term rises, and leases have their full TTL.
func (m *Medium) Restore(snap *Snapshot) {
	s := m.store
	s.lock()
	s.rev, s.compacted, s.keys = snap.rev, snap.compacted, slices.Clone(snap.keys)
	s.history = make(map[string][]change)
	s.dirty = true
	for k, vs := range snap.history {
		s.history[k] = slices.Clone(vs)
	}
	s.replaceLeases(snap.leases)
	for _, k := range s.keys {
		if kv := s.at(k, s.rev); kv != nil {
			s.attach(k, kv.Lease)
		}
	}
	s.unlock()
	m.Restart()
}
