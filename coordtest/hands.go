package coordtest

import (
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// What follows are the test's own hands on the store: no client, no rule, no counter and no fault stands
// between, and a quorum is not needed. Errors are those of package rpctypes, the ErrGRPC ones.

// Rev is the revision of the newest change; 1 when there was none.
func (m *Medium) Rev() int64 {
	s := m.store
	s.lock()
	defer s.unlock()
	return s.rev
}

// Get reads a key; nil if it is not there.
func (m *Medium) Get(key string) *mvccpb.KeyValue {
	s := m.store
	s.lock()
	defer s.unlock()
	if kv := s.at(key, s.rev); kv != nil {
		return clone(kv)
	}
	return nil
}

// List reads all keys with a prefix, in order of the keys.
func (m *Medium) List(prefix string) []*mvccpb.KeyValue {
	s := m.store
	s.lock()
	defer s.unlock()
	var kvs []*mvccpb.KeyValue
	for _, k := range s.keys {
		if kv := s.at(k, s.rev); kv != nil && strings.HasPrefix(k, prefix) {
			kvs = append(kvs, clone(kv))
		}
	}
	return kvs
}

// Keys names all keys with a prefix, in order.
func (m *Medium) Keys(prefix string) []string {
	var keys []string
	for _, kv := range m.List(prefix) {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// Put writes a key, on a lease unless that is 0, and returns its revision.
func (m *Medium) Put(key, value string, lease clientv3.LeaseID) (int64, error) {
	s := m.store
	s.lock()
	defer s.unlock()
	r := &pb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: int64(lease)}
	if err := s.canPut(r); err != nil {
		return 0, err
	}
	b := s.begin()
	b.putRequest(r)
	b.commit()
	return s.rev, nil
}

// Delete deletes a key and tells whether it was there.
func (m *Medium) Delete(key string) bool {
	s := m.store
	s.lock()
	defer s.unlock()
	b := s.begin()
	n := b.deleteRange(span{key: key})
	b.commit()
	return n > 0
}

// Compact forgets the history before rev.
func (m *Medium) Compact(rev int64) error {
	s := m.store
	s.lock()
	defer s.unlock()
	return s.compact(rev)
}

// Lease is what the store knows of a lease.
type Lease struct {
	ID        clientv3.LeaseID
	TTL       int64    // granted, seconds
	Remaining int64    // whole seconds; -1 when it has ended and is not revoked yet
	Keys      []string // in order
}

// Leases lists the leases, those that end first first.
func (m *Medium) Leases() []Lease {
	s := m.store
	s.lock()
	defer s.unlock()
	var all []Lease
	for _, l := range s.byEnd() {
		info := Lease{ID: clientv3.LeaseID(l.id), TTL: l.ttl, Remaining: -1, Keys: l.sortedKeys()}
		if left := s.remaining(l); left > 0 {
			info.Remaining = int64(left) / seconds
		}
		all = append(all, info)
	}
	return all
}

// Grant makes a lease of at least the floor, in seconds, with an id that the store chooses if that is 0.
func (m *Medium) Grant(id clientv3.LeaseID, ttl int64) (clientv3.LeaseID, error) {
	s := m.store
	s.lock()
	defer s.unlock()
	l, err := s.grant(int64(id), ttl)
	if err != nil {
		return 0, err
	}
	s.dirty = true
	return clientv3.LeaseID(l.id), nil
}

// Revoke ends a lease, with its keys.
func (m *Medium) Revoke(lease clientv3.LeaseID) error {
	s := m.store
	s.lock()
	defer s.unlock()
	return s.revoke(int64(lease))
}

// Expire ends a lease as if its time were over: its keys go in one revision. It is what Revoke does, but a
// lease that is gone already is no error, and tests read as what they mean.
func (m *Medium) Expire(lease clientv3.LeaseID) { _ = m.Revoke(lease) }
