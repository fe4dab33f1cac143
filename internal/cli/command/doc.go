// Package command holds the commands of conch, one file each. A command is a function of a context and a
// cli.Env to an exit code.
//
// # What is not guaranteed
//
// Nothing about two children that overlap is decided here: coord says what is held, the supervisor and the
// guard see to it that nothing of a child is left before the hold is given up. What is decided here is what
// is asked of them, and what the user is told.
//
// # conch elect
//
//	parse and check ── 64 ──► end, nothing contacted
//	resolve CMD ── 126, 127 ──► end, nothing contacted
//	start the guard, begin to connect (neither is waited for)
//	acquire: session, campaign ── 69, 75, 77, 128+n ──► own key gone, lease revoked
//	   ▲   └─ session or key lost while waiting: once more, at the end of the queue
//	   └──────┘
//	supervise: child, renewals, loss, signals, release
//	revoke the lease, say good-bye to the guard, write the status file
//
// The lease is revoked only where the hold was given up. Where something of the child could not be ended, the
// session is left as it is: revoking it would give the office away beside a child that lives.
//
// # conch fence
//
//	parse and check ── 64 ──► end, nothing touched
//	resolve CMD ── 126, 127 ──► end, nothing touched
//	lock FILE.lock ── 75, 128+n ──► end, nothing stored
//	compare the tokens ── 76, 64 ──► end, nothing stored
//	store ours, on the disk ── 69 ──► end
//	start the guard, which keeps the lock ── 69 ──► end
//	supervise: child, signals, leftovers; the lock is a hold that does not run out
//
// The lock goes when the last process that has it open has ended or closed it. Where something of the child could
// not be ended, this process ends with 70, and the guard stays with the lock.
//
// # At each failure
//
//   - etcd does not answer at the start: 69 within the dial timeout. Later, while waiting: the session is lost
//     by its own clock, and a new one is asked for until the wait ends, with a warning each dial timeout
//   - the wait runs out, or a signal comes: the own key is deleted before the command ends. Where etcd does
//     not answer, that is given up after a moment, and the key goes with its lease
//   - the status file cannot be written: a warning; the exit code stays what it is
package command
