// Package supervise runs one child while something is held: the single loop behind every command that
// does so. It knows the hold and the guard by their contracts only, never etcd and never a process id.
//
// # What is not guaranteed
//
// Two children never overlap under the assumptions that docs name: clocks whose rates agree, a guard that
// is scheduled within the margin, children that stay killable and stay descendants, and wrapper and guard
// not stopped or killed at the same moment. Work that the child hands to a daemon is out of reach. What
// cannot be killed is reported, the hold is then left to its TTL, and the exit code is 70.
//
// # What is authoritative
//
// The hold says whether it is held, and until when. The guard says what is alive: its word that nothing of
// a run is left is proof, and a sweep that ended empty is proof where the guard is dead. Local time may
// end a hold (a deadline passed without a verified renewal is loss) and never prolong one. The guard owns
// the timers that end a child; the clock here is a backup for a guard that does not answer, and notices a
// deadline that passed while this process was frozen.
//
// A hold with a TTL of 0 does not run out: a lock that the guard and the child have, too. Then there are no deadlines,
// nothing is lost but with the guard, and what cannot be ended keeps the hold.
//
// # States
//
//	waiting --won--> held --OpStart--> starting --started--> running
//	   |              |  ^                |  |                 |  |
//	   |              |  +--too late------+  +--guard gone--+  |  |
//	   |              |                   |                 |  |  |
//	   |              |          refused, gone         sweeping <-+ guard gone, or silent past its time
//	   |              |                   |                 |  |
//	   |              +--> releasing <----+--proven empty---+--+ gone
//	   |                       |
//	   +--not won-->  done  <--+ released, or given up with a reason
//
// Loss, signals and evictions do not change the state by themselves: they are facts that are remembered (lost,
// signal, evicted), and they make the guard end the child. The way out is always the same: gone, release, done.
//
// # Hooks
//
// On-acquire goes through held, starting and running before the child does, under the same deadlines, and back
// to held when nothing of it is left. On-lose has a state of its own, clearing, between "gone" and releasing:
// whatever of the two others was started makes it due, once. While it runs the hold is renewed, and a loss is
// noted and changes nothing: what it has to undo stands all the same. Its deadlines are its own.
//
// # What happens at each failure
//
//   - guard not ready in time, or dead before the child started: nothing was started; give up or release; 69
//   - guard dead later: as loss; this process sweeps what reparented to it; empty: release; else not; 70
//   - guard silent past the last moment: it is killed, then as above
//   - evicted by an operator: SIGTERM now, SIGKILL after kill-after, the hold kept meanwhile; on-lose, release; 70
//   - hold lost: SIGTERM now, SIGKILL at the earlier of kill-after and the deadline; then say so; 70
//   - on-acquire fails, or takes too long: on-lose, release; 75
//   - on-lose fails, takes too long, or cannot be run for want of a guard: a WARN line, and release; under
//     FenceOnLose no release; 71
//   - release fails: again until it is definite or the deadline passes; then the TTL decides; the child's code
//   - this process frozen or killed: the guard acts by itself; on waking, the clock is looked at first
//
// # Invariants
//
//	I1  Release is asked for only when nothing of the child is left: it never started, the guard said
//	    gone, or a sweep ended empty.
//	I2  Nothing is started after loss, but on-lose; nor the child after an eviction or a signal.
//	I3  There is no way back from loss: deadlines never rise after it.
//	I4  Every path that acquired ends in a release, or in a WARN line and a reason why there was none.
//	I5  There is exactly one outcome, and nothing is done after it.
//	I6  Under FenceOnLose nothing is released unless on-lose, where it was due, exited 0 in time; nor does
//	    the guard have a testament by which it would. (A place in the queue has one: there nothing ran.)
//
// The decisions are made by a machine (machine.go) that has no clock, no goroutine and no input or output:
// events go in, each with the time at which it was seen, and actions come out. Run is its driver.
package supervise
