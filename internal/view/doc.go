// Package view says how everything that can be held stands: the one read model behind conch status, --who, --watch and
// conch evict. It is made of keys and revisions, and of nothing else: it knows neither etcd nor the clock, so it is
// proven by tables. Package live, below it, reads etcd and follows it.
//
// # What is not guaranteed
//
// Nothing here is a lock. A Standing is how a name stood at one revision, and it may stand otherwise by the time that
// somebody reads it: who acts on one guards what he does by the revisions in it. And it says what etcd knows. A
// holder that has lost its key and is still ending its child is seen by its open record only; one of a foreign
// client, which opens none, is not seen at all.
//
// # What decides
//
// Keys, revisions and leases. What a value says of a process informs people. Whoever may write below the prefix may
// write anything: texts in a Holder are hostile until they went through hold.Escape, and no value, of whatever size
// or form, changes who holds.
//
// An office:
//
//	key in the queue                                    state
//	------------------------------------------------    --------
//	the oldest, and no open record, or its own          held
//	the same, and its value says so                     fenced
//	the oldest, and the open record of another hold     settling
//	any other                                           waiting
//
// A semaphore, for each max by itself:
//
//	key in the queue, or slot                           state
//	------------------------------------------------    --------
//	with a slot's key on the same lease                 held
//	the same, and its value says so                     fenced
//	put again since it was made, without a slot         leaving
//	a slot's key, without a candidate on its lease      leaving
//	fewer than max older, and each slot that nobody
//	has an open record of an earlier hold               settling
//	any other                                           waiting
//
// A key that is none of these but lies among them, as one of an election nested in another, is told as Odd. An older one
// of these ahead of the oldest candidate of an office keeps that from leading.
//
// # Changes
//
// Changes tells two standings of one name apart by what a person would want to hear: who holds, who settles for an
// office, which slot is free. Who joins or leaves the queue behind them is no change.
package view
