// Package locktest pins the contract of a [coordination.Locker], row by row, and under concurrency.
//
//	func TestMyLocker(t *testing.T) {
//		locktest.Run(t, func(t *testing.T) coordination.Locker { return mylock.New(start(t)) })
//	}
//
// # What it does not prove
//
// That a Locker passes is no proof that it keeps the contract in a trouble that nobody made. [RunWith] takes what a test
// can do to a store: let it fall silent, be slow, lose an answer. Without these the suite still sees a Locker that takes
// no answer for a refusal, by calls whose context has ended; it cannot see one that counts ExpiresAt from the answer.
//
// It says nothing of speed, and nothing of how soon a store lets go of a lease that ran out: it waits for that, and
// complains after a minute.
//
// # What is authoritative
//
// The table in the comment of package coordination. Each row is a test of its own here, with a key of its own; the last
// one lets many clients loose on few keys, with leases that are current, stale or left to run out, and has porcupine look
// for an order in which a lock by the table could have given all those answers. A call without an answer may have
// happened at any time since, or never.
//
// # Time
//
// No verdict depends on how fast the machine is: that somebody else got a key is held against a Locker only if the lease
// before was still good when the call had returned. A machine that stands still for longer than a lease makes the suite
// slow, not wrong.
//
// With [Options.Bubble] each test runs in a bubble of fake time, where minutes cost nothing. That takes a store in this
// process.
package locktest
