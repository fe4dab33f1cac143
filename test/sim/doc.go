// Package sim lives through worlds that are drawn from a seed: hosts whose clocks run at rates of their own, an etcd in
// memory, and weather. In each host the real session and candidate of package coord and the real loop of package supervise
// run, in the other kind of world the real daemon of package cron; what is simulated is the guard, the child, and the network.
//
// # What is not shown
//
// Nothing about processes, signals and pipes: those are real in test/faults and test/chaos. Nothing about what etcd itself
// does in trouble: the medium of package coordtest is one store behind several doors. And a green run is no proof: it says
// that so many worlds were tried. What is searched in full is the model (docs/model).
//
// A seed fixes all that is drawn: rates, faults, and when each of them comes; how long each child lasts and how late each
// guard is. It does not fix in which order goroutines go that are woken at the same instant, so a world that failed is
// replayed by the command it prints, with -count where one time does not show it.
//
// # Clocks
//
// The bubble's own time is the fastest clock there is. All others, etcd's included, read a share of it between 1/spread and
// 1. So timers, which follow the bubble, fire early by a host's own clock, never late: what judges by its clock
// looks again, and is exact; what does not (how often is renewed, how long one request may take) is up to a tenth early,
// which costs attempts and moves no deadline. Were it the other way round, a host with a fast clock would settle for
// longer than it promises, and be forgiven what it should answer for. The simulated guard sleeps by its host's clock.
//
// # Pauses
//
// A goroutine cannot be frozen, so a process is frozen where it touches the world: nothing comes or goes over its
// connections (the doors of its host are stopped, as by SIGSTOP), and the loop waits in its next reading of the clock, or
// word to the guard: in half of the pauses after the reading, so that it goes on with a time that is long gone. What the
// session decides by itself meanwhile, it decides without news and cannot tell anybody before the end of the pause; a real
// one would decide later, and by then know no more.
//
// A pause hits the wrapper, or the guard, never both: then nothing is promised. Or it hits all of a machine, the child
// included; past its deadline what the child does when it wakes is for the fence (I3), and it has to be gone when the
// margin is over.
//
// # What is held
//
//	I1  No two children of an office are alive; of a semaphore never more than it lets in, nor two in one slot.
//	I2  Nothing starts at or past the end of its term, as the session has it, by its own clock.
//	I3  Tokens rise with every start, of an office and of each slot.
//	I4  When all is healed, the office is taken again; when all have left, no key, record or lease is left.
//	I5  Each tick of a job starts at most once, and under "forbid" nothing of it runs beside itself.
//
// # That it can fail
//
// The same worlds are lived through with one thing broken, and it has to be found: clocks that differ by 30 %, no settling,
// a guard without deadlines, deadlines that count from the reply, a guard that is scheduled too late.
package sim
