// Package coordtest is etcd for tests: a store in memory behind real gRPC servers, reached by a real
// *clientv3.Client over connections that never leave the process, with faults to inject at exact points.
//
// # What it is not
//
// Nothing is durable, and nothing is replicated: all members of a Medium are doors to one store, so a
// stopped, killed or deposed member never loses or delays what was committed through another. There is no
// authentication, no TLS, no quota but the switch NoSpace, no fragmentation of watch replies, and
// RangeStream, Alarm, Snapshot and the like answer Unimplemented. It says nothing about the speed of etcd.
// It is not for production.
//
// # What is authoritative
//
// etcd itself. The conformance test of this package tells one table of stories to the medium and to an
// embedded etcd server and compares the answers field by field: revisions, leases, transactions, ranges,
// compaction, watches, error codes and texts. Where the two differ, this package is wrong. What only a
// cluster in trouble does (a stopped member, a lost quorum, a deposed leader) is modelled by the methods
// that ask for it, as their comments say, and is not covered by that comparison.
//
// # Time
//
// Leases run out on Options.Clock. By default that is the time since New was called, and a timer expires
// each lease at the instant it is due: inside a testing/synctest bubble both follow the fake clock, so a
// test of a ten second lease takes no time at all. Create the Medium and its clients inside the bubble and
// close them there. (The client's watches would keep the fake clock from running: this package changes that
// for the whole test binary, see bubble.go.) With a clock of your own no timer runs: leases that are due go at
// the next request, or when Sweep is called.
//
// # Use
//
//	m := coordtest.Start(t, coordtest.Options{})
//	cli := m.Client(t)
//
//	// The reply of the next transaction is lost after its commit.
//	lost := m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.LoseReply(nil)})
//	_, err := cli.Txn(ctx).Then(clientv3.OpPut("k", "v")).Commit() // ctx ends; the key is there
//
// A Rule picks calls by method and by predicate, lets some pass, and applies its Action to the next ones.
// An Action is a function around the commit of one Call, so what the package does not offer is a few lines
// in the test. Rules are asked in the order in which they were injected; the first that fits is applied.
//
// Everything else the test does to the store itself (Put, Delete, Revoke, Expire, Compact, ...) bypasses
// clients, rules and counters.
//
// # What happens at each fault
//
//	Refuse        nothing is committed; the caller gets the error
//	LoseRequest   nothing is committed; the caller hears nothing
//	LoseReply     it is committed; the caller gets the error, or hears nothing
//	Late, LateBy  the caller hears nothing; it is committed after the caller gave up
//	Delay         it is committed and answered later, or not at all if the caller gives up first
//	Before, After a function of the test runs right before, right after the commit
//	StaleAck      a renewal is acknowledged in an older term, without effect
//	Stop          a member accepts connections and bytes and does nothing with them, until Cont
//	Kill          a member's connections break, and new ones are refused, until Revive
//	NoQuorum      what needs a quorum hangs; serializable reads and transactions of compares are answered
//	NoSpace       grants and transactions or requests that put are refused; the rest works
//	Restart       every connection breaks, the term rises, all leases start over with their full TTL
//	MoveLeader    the term rises, all leases start over
//	Restore       the store goes back to a Snapshot, revisions included
//	Disconnect    a member's connections break once
//	HoldWatches   no watch hears anything until they are let go
//	EndWatches    the streams of all watches end; the client opens them again
//	CancelWatches the server cancels all watches; their channels close
//
// "Hears nothing" means until the caller's context ends, or its stream, or the Medium is closed. The client
// retries reads that were refused with code Unavailable by itself, and reopens watches; so a refused Range
// is seen by the caller only with another code, or with Times set to Forever and a context that ends.
package coordtest
