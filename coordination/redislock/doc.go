// Package redislock is a [coordination.Locker] on Redis, or Valkey: one server, or a primary with replicas, or a cluster.
// Each call is one script (the .lua files here), which Redis carries out in one step.
//
// # What is not guaranteed
//
// A lease stops nobody: see the comment of package coordination. And Redis is not a consensus system: what it has
// acknowledged, it can lose. Then a key is granted to a second holder while the first still believes in its lease:
//
//   - Failover. Replicas are behind their primary; one that takes over does not know of the last writes, WAIT or not.
//   - Restart. Without appendfsync always, what was written last is gone.
//   - Eviction. Under any maxmemory-policy but noeviction, a lock can be thrown away for want of memory.
//   - The clock. Redis ends a lease by the wall clock of its machine: one that is set forward ends all of them early.
//
// The token then tells who came second: it is one more than the last of that key, and no less than the time of the
// server in microseconds, so that it rises even where the counter was lost; unless that clock was set back as well, or
// the new primary's is behind. So whatever has to be right checks tokens, and what cannot check them belongs on etcd.
// This is no Redlock: several Redis servers that know nothing of each other have no common token.
//
// # What is authoritative
//
// The primary that answers. A refusal is its word at that moment.
//
// ExpiresAt counts from before the request was sent, by the clock of this process; that of the server is only asked how
// much time has passed, and a tenth of the ttl is taken off for clocks that run at other rates. Redis counts
// milliseconds: a ttl is rounded up to the next one.
//
// Renew takes nothing back. By a shorter ttl the lease says so, and the key stays for as long as before: otherwise the
// old ExpiresAt would be wrong where the answer is lost.
//
// # What happens when
//
//   - An answer is lost: the client sends the request again, up to its MaxRetries. Each Acquire has a nonce, so that the
//     second request finds the lock of the first, and is granted it.
//   - Nobody answers: an error, at the latest when ctx ends, whatever the timeouts of the client are. A request that was
//     sent can still be carried out, for as long as it is under way. Then the key is held for nobody, for a ttl: unless
//     the answer comes after all, in which case it is given back.
//   - Release is tried once even in a context that has ended, for 2 s, so that a late defer works.
//   - The scripts were flushed, or the server is another one now: they are sent again, which costs a round trip.
//
// # Keys
//
//	<prefix>{<key>}         "<token>:<nonce>:<owner>", until it expires
//	<prefix>{<key>}:token   the last token, for ever: about 100 bytes for each key that was ever locked
//
// The key is escaped as package net/url escapes a path element. The braces are a hash tag: in a cluster both lie on one
// node. Deleting a counter is harmless by the clock; see above.
//
// Redis 5 and later; the user needs EVAL, EVALSHA, GET, SET, INCR, TIME, PTTL, PEXPIRE and DEL.
package redislock
