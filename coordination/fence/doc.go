// Package fence is the half of locking that works: the side that is written to remembers the highest fencing token that
// it has seen of a key and refuses lower ones, in one step with the write.
//
// # Why
//
// Whoever holds a lock can be paused, by a debugger, a garbage collector, a virtual machine that moves, for longer than
// the lock lasts. It wakes, does not know, and goes on where it was: it writes, beside its successor or over what that
// wrote. No look at a clock or at the lock right before the write helps, because the pause can come after the look. The
// token helps: each grant has a higher one, and the write carries it along.
//
//	holder A    token 33 ── looks: I hold ── paused ─────────────────── write(33): refused
//	holder B                                        token 34 ── write(34)
//	the guard   seen: 33                                        seen: 34
//
// # The rule
//
// One everywhere: a token that is lower than the highest seen is refused, an equal one is accepted. The highest seen is
// stored with the data that it protects, and no write of a lower token can come between the check and the write of a
// higher one. What is refused is an [*ErrFenced].
//
// A token is seen when a guard accepts it, whether or not the write after it succeeds: from then on lower ones are refused.
// In a transaction it is seen when that commits, with what was written.
//
// # What is not guaranteed
//
//   - What carries no token is not protected: mails, calls of services that do not check, processes that were started.
//   - A guard beside the data protects less than one with it. [SQL] and package etcdfence check in the transaction that
//     writes: nothing can come between. [Memory], [File] and the handler of package httpfence keep others out while the
//     write runs, so they hold for writes that go through them, and for those whose writer is really gone when they return.
//     A write that was handed on (to a queue, a daemon, a page cache of another machine) may land later.
//   - A store that went back, restored from a backup or with its file deleted, has forgotten what it had seen; an etcd that
//     was restored without --bump-revision, or a Redis that lost its last writes, hands out tokens that are lower than
//     those seen (refused: safe, and loud) or equal to them (accepted: two holders have the same one).
//   - A guard does not keep anybody from reading what is about to change.
//   - Tokens compare within one key only. Of a semaphore they rise by slot: the key is its name and slot.
//
// # At each failure
//
//   - The guard cannot store a token: an error, and the write does not run.
//   - What is stored is no token (a file cut short, a value put by hand): [ErrDamaged]. Nothing is accepted until somebody
//     has looked: to begin at 0 would let anybody in.
//   - A token is 0 or a key empty: [ErrInvalid]. No Locker grants that; it is a mistake of the caller's.
//   - The write panics: the others are let in again.
//
// # Where the guards are
//
//	data in                          guard
//	memory of one process            [Memory]
//	PostgreSQL, SQLite               [SQL], in your transaction
//	files, whatever a command does   [File], and "conch fence" for scripts
//	etcd                             etcdfence.Guard, in your Txn
//	a service behind HTTP            httpfence.New there, httpfence.Transport at the caller's
//
// This package needs the standard library only, and no net/http; what needs more stands below it. [Check] is the
// rule itself, for a guard of your own.
package fence
