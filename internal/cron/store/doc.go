// Package store is what distributed cron asks of etcd: the transactions of the daemon and those of the command line.
//
// # What is not promised
//
// That an answer comes. A transaction whose reply is lost may have been committed, or be committed later. Each call
// here that creates something carries a nonce, so that Fired can tell afterwards whose it is.
//
// # What is authoritative
//
// The transaction. A claim is one, and compares all that the decision rests on:
//
//	nobody claimed this id            fire/<name>/<id> is not there
//	the job is the one that was read  mod revision of job/<name>
//	nothing is paused                 mod revision of state/pause; a job's own pause is in its spec
//	this node is not drained          state/drain/<host> is not there
//	no tick is passed over            mod revision of cursor/<name>
//	nothing of it runs (if asked)     no key under state/open/<name>/
//	the request stands (of one)       mod revision of state/want/<name>/<id>
//
// and its revision is the fencing token of what is started. So a pause, an edit or a drain that was acknowledged is never
// followed by a claim that does not know of it.
//
// What is asked for about different jobs at the same moment may go to etcd as one transaction (joint.go), each part under its own
// conditions. It is won by itself, and shares its revision with those that are won with it: the token rises with each start of a job.
//
// # Leases
//
// A run marker is on the session lease of its daemon. A claim and a result are on leases that are shared by all that are
// written within an eighth of their time, and that nobody renews: they go by themselves, a little late.
package store
