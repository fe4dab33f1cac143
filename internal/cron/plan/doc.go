// Package plan decides what one daemon does about one job at one moment. It has no clock, no etcd and no process: what is
// known goes in, one act comes out, and the moment at which to ask again.
//
// # What is not promised
//
// Nothing here excludes anything. Two daemons may decide the same at the same time, and one that knows old things
// decides wrong: the transaction of the claim compares everything that a decision rests on, so that all but one come to
// nothing. What is decided here is who tries, when, and what the record will say.
//
// # What is authoritative
//
// A tick is what package schedule says it is. The cursor in etcd says up to which tick all is decided; a decision is
// always about the first tick after it, or a range that begins there, so that no tick is passed over without a word.
//
//	              due             due + deadline
//	---------------|--------------------|------------------------>
//	not yet        run, or skip         missed, or caught up with
//
// A tick is due at its own time plus the job's jitter. Floors lie between the cursor and the first tick that counts:
// the last edit of the schedule (nothing before it is a tick) and the end of the last pause (what was due until then is
// one record).
//
// # Who goes first
//
// All daemons see the same tick come due at the same time. Each waits a moment of its own, from the hash of its name,
// the job and the tick, so that the runs spread and most claims meet no other (Options of a job: spread, the default;
// sticky, where the last one goes first; any, where nobody waits).
package plan
