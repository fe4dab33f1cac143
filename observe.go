package coord

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Leader reads who leads, linearizably. ErrNoLeader says that nobody does.
func (e *Election) Leader(ctx context.Context) (Candidate, error) {
	got, err := e.s.cli.Get(ctx, e.prefix, clientv3.WithFirstCreate()...)
	if err != nil {
		return Candidate{}, fmt.Errorf("read leader of %q: %w", e.opts.Key, err)
	}
	if len(got.Kvs) == 0 {
		return Candidate{}, ErrNoLeader
	}
	if nested(e.prefix, string(got.Kvs[0].Key)) {
		return Candidate{}, fmt.Errorf("%w: %q", ErrNestedKey, got.Kvs[0].Key)
	}
	return CandidateOf(got.Kvs[0]), nil
}

// Candidates reads the queue, linearizably, in order: the first leads.
func (e *Election) Candidates(ctx context.Context) ([]Candidate, error) {
	return ListCandidates(ctx, e.s.cli, e.opts.Key)
}

// ListCandidates reads the queue of the election of key, linearizably, in order: the first leads. It
// needs no session.
func ListCandidates(ctx context.Context, cli *clientv3.Client, key string) ([]Candidate, error) {
	prefix := prefixOf(key)
	got, err := cli.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return nil, fmt.Errorf("read candidates of %q: %w", key, err)
	}
	var all []Candidate
	for _, kv := range got.Kvs {
		if nested(prefix, string(kv.Key)) {
			return nil, fmt.Errorf("%w: %q", ErrNestedKey, kv.Key)
		}
		all = append(all, CandidateOf(kv))
	}
	return all, nil
}

// LeaderChange is what Watch reports.
type LeaderChange struct {
	Leader Candidate // the zero value where nobody leads, or where that is not known
	Vacant bool      // nobody leads
	Stale  bool      // not proven for 10 s, as etcd does not answer; the rest is what was known last
	Ended  *Ended    // vacant: how the last hold ended, where settling is on and it is stored
}

// Observe streams the identity of the leader: the present one first, then each new one, also when a
// leader changes what it says. It says nothing of vacancy. A slow reader misses what was superseded, never
// the latest. The channel is closed only after ctx has ended, or the session. It costs what [Election.Watch] does.
func (e *Election) Observe(ctx context.Context) <-chan string {
	return tell(ctx, e, (*standing).leader)
}

// Watch streams every change of leadership: who leads, with its token; that nobody does, and how the last
// hold ended; and that etcd has not answered for a while. It starts with the present state. A slow reader
// misses what was superseded, never the latest. The channel is closed only after ctx has ended, or the
// session.
//
// Each has a stream of its own, which is about 60 KB of etcd's memory and 50 KB here, and asks for one small read each
// 5 s: who wants to see a thousand elections follows what they have in common. [Follow] tells what is promised.
func (e *Election) Watch(ctx context.Context) <-chan LeaderChange {
	return tell(ctx, e, (*standing).change)
}
