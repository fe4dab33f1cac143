// Package shared lets many runs have one guard process between them: the daemon runs its jobs this way, each with a
// supervise.Run of its own.
//
// # What is not guaranteed
//
//   - Runs that share a guard share its fate. When it dies, or one run kills it because it does not answer, it is gone for
//     all, and each run takes that for the loss of its hold.
//   - A sweep ends everything that has come to this process, so this process must have no children of its own beside
//     the guard, except those that it had before the first one was started.
//   - What cannot be killed keeps every new guard from being started, and so every new run on this node: under a
//     guard that counts it among the children from before, nobody would ever end it.
//
// # Generations
//
// A generation is one guard process with its shares, from its start until nothing of it is left.
//
//	(none) --Guard--> alive --Kill, or the guard dies--> ending --sweep, empty--> (none)
//	                    |                                 |    ^
//	                    +--Close: bye--> (none)           +----+ sweep, something is left: again when somebody asks
//
// # Invariants
//
//	S1  There is one guard process at most, and it is started only when the sweep of the generation before ended
//	    empty. A guard that was started earlier would be killed by that sweep, and would take what is left for
//	    somebody else's children.
//	S2  The sweeps of a generation run one at a time, and none after one that ended empty: whoever asks then is
//	    told so. All shares are told the same.
//	S3  Who joins hears what was said to all before: ready, and lost. Nobody joins a generation that is ending.
//	S4  No share waits for another one: what the guard says to a share waits in a queue of its own, which ends with it.
//	S5  A share that is closed leaves nothing behind: what still runs of it is killed, and its testaments are dropped, as
//	    the guard of a single run does at its end.
package shared
