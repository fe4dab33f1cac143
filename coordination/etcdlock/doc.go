// Package etcdlock is a [coordination.Locker] on etcd v3: one key for each lock, on a lease of its own. Its token is the
// create revision of that key, which rises with every grant, over all keys of the cluster.
//
// # What is not guaranteed
//
// A lease stops nobody: see the comment of package coordination. And a key can go before its lease is over:
//
//   - an operator deletes it, or revokes the lease;
//   - a member of etcd that led, and was paused for longer than the ttl, has leases revoked when it goes on that were
//     renewed elsewhere meanwhile (etcd issue 15247);
//   - etcd is restored from a snapshot: see below.
//
// Then the next holder has the higher token, and the one before hears of it from its next Renew. Package coord, which
// runs whole processes under a lock, lets a successor wait in such a case; a Locker does not. Use the token.
//
// etcd looks for leases that ran out twice a second, and gives all of them their full time again when it has a new
// leader: a key is free some time after its lease ran out, never before.
//
// # What is authoritative
//
// etcd's quorum. No refusal comes from a member that may be behind, and no answer from what this process remembers: it
// keeps which lease a key is on, to save a round trip, and finds out when that is another.
//
//	Acquire  read the key ──there──► false                                        1 round trip, nothing is written
//	           └──absent──► grant a lease ──► put the key, if it is still absent    3, or 2 with a spare lease
//	Renew    renew the lease ──► read the key: the same, in the same raft term     2
//	         or, for a longer ttl: grant a lease ──► move the key to it            2
//	Release  delete the key, if it is this one; the lease is revoked by the way    1
//
// A renewal that a member acknowledged proves nothing by itself: one that was deposed while it was paused acknowledges
// what the others never hear of. Only the read after it does, by a quorum, in the same raft term. Renew asks again until
// it is proven, or its context ends.
//
// ExpiresAt counts from before the grant, or the renewal, was sent. A tenth of what etcd granted is taken off for clocks
// that run at other rates. etcd grants whole seconds, and two of them at least by default: for a ttl of 1.5 s it grants
// 2 s, ExpiresAt is after 1.5 s, and the key is free after 2 s if nobody releases it. A ttl below a second asks for one.
//
// Renew takes nothing back. By a shorter ttl the lease says so, and the key stays for as long as before: otherwise the
// old ExpiresAt would be wrong where the answer is lost.
//
// # What happens when
//
//   - A request is not answered: it is sent again, to another member if there is one, until ctx ends: give a call one
//     that does. A member that was stopped costs a tenth of the ttl, half a second at least and 2 s at most.
//   - The put of an Acquire is not answered: the next one finds out. Where it may still come, late, its lease is revoked
//     before a refusal is believed, or a release is done, so that it holds the key for nobody. If somebody else's hold
//     has ended meanwhile, the error is coord.ErrUndecided: for a moment the key may have been held, by nobody.
//   - ctx ends: the error says so. An Acquire that may have been done is undone, in the background, by revoking its
//     lease. If that is not answered either, the key goes with the lease, after the ttl. Release is tried once even in a
//     context that has ended, so that a late defer works.
//   - Two ask for a free key at once: one has it, the other keeps its lease as a spare for a tenth of its time, and
//     then revokes it.
//   - etcd is full (NOSPACE): Acquire fails, and so does Renew for a longer ttl. Renew and Release work.
//   - etcd was restored, and its revision is lower than one that this Locker has seen, or its cluster id another: the
//     calls fail with coord.ErrStoreRegressed, the former until the revision is past that again. Tokens would fall
//     otherwise. Restore with `etcdutl snapshot restore --bump-revision`.
//   - The etcd gRPC proxy is not supported: its answers carry no raft term to trust.
//
// With users and passwords, each Renew costs etcd the check of a password, since it opens a stream: prefer client
// certificates, or a ttl that is long.
//
// # Keys
//
// The prefix and the key, escaped into one path element as package net/url does it ("/" is %2F, and "." and ".." alone
// are %2E and %2E%2E): "a/b" stands at /coord/locks/a%2Fb. The value is the owner, for people. A role needs to read and
// write the prefix.
package etcdlock
