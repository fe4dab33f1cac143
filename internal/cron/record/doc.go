// Package record is what distributed cron has in etcd: the keys, and the values at them. It decides nothing and
// knows no etcd client; the daemon and the command line share it.
//
// # What is not promised
//
// Whoever may write to etcd can write anything at these keys. What is decoded here has the right types and bounded
// sizes; its text is hostile until it went through hold.Escape.
//
// # What is authoritative
//
//	job/<name>          what is to run, and when: the job spec. Its mod revision is the "spec revision"
//	fire/<name>/<id>    the claim of one start, or the decision that there is none. Created once, never changed;
//	                    on a lease that outlives every doubt about it, and not on the claiming daemon's
//	cursor/<name>       the highest tick that is decided: at or below it nothing is claimed any more
//	run/<name>/<id>     a start that lives, on the session lease of the daemon that runs it
//	state/open/<name>/<id>
//	                    a start whose end is not proven: put with the claim, deleted with the result. It outlives a
//	                    daemon, so that a run marker that went early frees nothing (see "settling" in docs/guarantees.md)
//	result/<name>/<id>  how it ended, or why there was no start. The key goes with its lease
//
// An id is a tick, in unix seconds UTC, and what tells apart several starts of it:
//
//	1805007600          the claim of the tick itself
//	1805007600.2        the second further claim of it: a retry, a run by hand, a backfill, one that was queued
//	1805007600@host     the claim of one host, of a job that runs on all of them
//
// Beside these there are requests, which are deleted when they are met (want, kill), and what daemons and operators
// say of themselves (node, card, drain, pause).
package record
