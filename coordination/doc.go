// Package coordination is a contract between code that wants to be alone with a resource and whatever grants that: a
// [Locker] hands out a [Lease], for a time, with a fencing token. It holds no implementation and imports the standard
// library only, so that anyone can implement it or stand in for it; memlock, etcdlock and redislock below it do, locktest
// is the suite that each of them passes, and fence is the half that checks tokens.
//
// # What is not guaranteed
//
// A lease does not stop anybody. A process that is paused (a debugger, a garbage collector, a virtual machine that moves, a
// laptop that was closed) wakes after its lease has run out, does not know it, and goes on where it was: it writes.
//
//	holder A     acquire, token 33 ──── paused ─────────────────────────── write(33)   too late, and it does not know
//	the lease    ├──────────── ttl ───────────┤
//	holder B                                  acquire, token 34 ── write(34)
//	the resource                                                     34     33: refused, by whoever checks
//
// No clock of A's can help: between its last look at one and the write it may be paused for any time. What helps is the
// token: it rises with every grant of a key, A hands it along with what it writes, and the resource remembers the highest
// that it has seen and refuses lower ones, in one step with the write. One rule everywhere: reject lower, accept equal.
// Package fence does that for what can be checked; what cannot be checked is not protected, and a lease is then a
// courtesy among processes that are never paused for long.
//
// Nor does a lease survive the loss of its store. An etcd that was restored from a snapshot without --bump-revision, or a
// Redis that lost its last writes in a failover, may hand out a token a second time: a guard then refuses tokens that
// are too low, which is safe and loud, but cannot tell two equal ones apart.
//
// # What is authoritative
//
// The Locker's store says who holds. [Lease.ExpiresAt] is what the holder may rely on without asking: it is counted from
// before the request was sent, so the store cannot give the key to anybody else before it. Owner and key are names: they
// decide nothing but what is locked.
//
// # The contract of a Locker
//
//	free or expired            new token, greater than any before of that key; true
//	held, by the same owner    zero Lease, false, nil: a lock is no re-entrant one
//	  or by anyone else
//	Renew, current token       same token, ExpiresAt of now; true. The ttl may be another one
//	Renew, any other           zero Lease, false, nil: expired, superseded or released
//	Release, current token     nil
//	Release, any other         nil, and nothing happens: a late defer never frees the successor
//	empty key or owner,        an error that wraps ErrInvalidLease; nothing is asked
//	  ttl <= 0, zero token
//	no answer                  another error. Whether it was done is not known, the old ExpiresAt stays true
//
// Because an answer can be lost, Renew by a shorter ttl takes nothing back: its ExpiresAt says that ttl, and the store
// keeps the lease for as long as before.
//
// Locktest is this table as tests. [Run] is the shortest correct use.
package coordination
