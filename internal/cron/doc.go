// Package cron is the daemon's engine: it makes each tick of each job start once in the whole cluster, and leaves one record
// for every tick, with a reason.
//
// # What is not promised
//
// A tick may start zero times: when no eligible node is alive within its deadline, when the winner dies between claim and
// start, or when overlap, pause or drain say so. To skip is preferred to doubling. It may start twice only where somebody
// asked for more (a retry, on_lost, run now, backfill: each a numbered claim of its own), where etcd's history is rolled
// back, where keys are deleted by hand, or where nodes disagree on what a tick is.
//
// # What is authoritative
//
// etcd. There is no leader and no scheduler node: each daemon computes the same ticks (package schedule), decides what it
// would do (package plan), and asks with one transaction (package store); the first one wins. What a daemon remembers
// (follow.go) is good for not asking in vain, and decides nothing.
//
// The wall clock of a node says when a tick is due. A node whose clock is off by more than Options.MaxSkew from the median of
// three or more claims nothing. The clock of coord.Now says when a session is lost and how long a start is settled.
//
//	          claim: one Txn                started              nothing of it is left
//	tick due ----------------> [ claimed ] ----------> [ runs ] ------------------------> result, in one Txn
//	    |                          |                      |
//	    | not wanted               | late                 | session lost: the guard ends it
//	    v                          v                      v
//	skipped, missed              missed                 lost
//
// # At each failure
//
//   - A claim's reply is lost: it is read back, and is ours only if the nonce is. Nothing is started that is not known to be
//     ours, nor after the deadline. One that lands when nobody waits for it any more is closed as unconfirmed.
//   - etcd is silent: the session is lost, the guard ends what runs, the daemon goes on and registers again.
//   - The daemon is frozen: as above, by the guard's own clock.
//   - The daemon is killed: its guard ends what runs, and writes that it was lost.
//   - The host dies: the run marker goes with its lease; a peer waits a TTL more, since a marker can go early, and writes that it
//     was lost.
//   - etcd has no space: what ended is taken away, and its result is kept and written later. Nothing is claimed.
//
// # Invariants
//
//	(C1) Nothing is started but by a claim that this process saw committed, before its deadline.
//	(C2) Under overlap "forbid" a claim compares that nothing of the job is open; what is open is closed only by whoever ran it,
//	     when nothing of it is left, or after its marker has been gone for a TTL.
//	(C3) The cursor only rises, and each rise comes with the record of what it passes over.
//	(C4) All state of a node changes in one goroutine (loop.go).
package cron
