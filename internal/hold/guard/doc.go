// Package guard is the second process of a hold: the one that starts the child, and that ends the child and
// everything the child started when the process that holds (the wrapper) cannot.
//
// # What is not guaranteed
//
//   - Nothing, when wrapper and guard are killed or stopped at the same moment, or when the guard is not
//     scheduled within the margin that the deadlines leave.
//   - A process that the kernel does not kill (state D, or one that belongs to another user after sudo) is
//     reported as stuck, for ever if need be. It is never called gone, so nothing is released.
//   - Work handed to a daemon (docker run, systemd-run, ssh) has no descendant here and is not ended.
//   - Of several runs under one guard, a process that has detached itself *and* whose environment is empty, or may not
//     be read (of another user, by a guard without CAP_SYS_PTRACE), belongs to every run that may have started it: it
//     ends with the first of them.
//   - Other systems than Linux have no subreaper and no parent-death signal: there the loop runs inside the
//     wrapper, knows process groups only, and releases nothing when the wrapper is killed. On Linux that
//     is what InProcess gives, with the sweep but without the second process.
//
// # Who decides what
//
// The wrapper says what is to run and until when; the guard judges time by its own reading of the clock that
// runs through suspend. It starts nothing at or past Deadlines.Term, sends SIGTERM then and SIGKILL at
// Deadlines.Kill, whether or not anybody tells it to. Deadlines only rise, and a run whose Term has passed
// has no way back.
//
//	            start                      forked                      leader exits
//	(nothing) --------> forking ---------------------> running ---------------------> ending --> gone
//	             |         | late, or exec fails          | TERM: Stop, or Term passes   |
//	             |         v                              | KILL: Kill, KillAt, EOF      | leftovers: TERM, then
//	             +-----> refused                          v                              | KILL after KillAfter
//	                                             (the same states, flags set) -----------+
//
// "Gone" is a proof: the guard is the subreaper of all that descends from it, so what is left of a run
// is its leader or hangs below one of the guard's own children. The dead leader is kept as a zombie, which
// keeps its process group's number from being used again, until no child is left that could belong to the run;
// then it is reaped, and for the last run the kernel's ECHILD is asked for as well.
//
// # At each failure
//
//   - The wrapper is killed (its pipe ends without OpBye): everything is killed at once and seen gone; then,
//     and only then, the release program is executed for each testament. A run without a child is released at once,
//     and so is a place in a queue, for which there is no run.
//   - The wrapper is frozen: a run ends by the guard's own timers. When nobody drops its testament within half
//     a second, the release program is executed once in the mode that closes the open record and leaves the key.
//   - The guard is killed: the parent-death signal kills each direct child; what is left reparents to the
//     wrapper, which is a subreaper too, and Client.Sweep ends it.
//   - The guard is frozen: the wrapper kills it at the deadline, and sweeps.
//   - Wrapper and guard are killed together: a file that was to be kept (Options.Kept) stays open as long as a child
//     has it. A lock on it is then all that is left to tell.
//   - exec hangs, or to open what the child is to read and write (a dead file server): the fork has a thread of its own,
//     so the deadlines of all runs are kept. No other run is started meanwhile.
//   - The release fails: tried again a few times, then left to the lease.
//
// # How it is built
//
// table.go, run.go and wills.go decide, with time passed in and no system call; loop.go brings them the
// events; kernel_*.go, family_linux.go, sweep_linux.go and release_linux.go are the system calls. client.go is the
// wrapper's side.
package guard
