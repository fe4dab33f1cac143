// Mutants breaks the rules of the safety core on purpose, one at a time, and sees to it that a test turns red each
// time. A test that cannot fail proves nothing; this is the proof that those named in docs/claims.md can.
//
// What it does not do: it makes up no changes of its own. Each mutant is written by hand, breaks one rule that somebody
// could break by a plausible edit, and names the one test that has to notice. A mutant that no test notices is a missing
// test; that every mutant is noticed says nothing about rules of which there is no mutant.
//
//	go run ./test/mutants                 break, build, test all of them
//	go run ./test/mutants -run settle     those whose names match
//	go run ./test/mutants -list           print them
//	go run ./test/mutants -check          only look whether texts match, tests exist, and the table is up to date
//	go run ./test/mutants -write          write the table of docs/guarantees.md
//
// Mutants are files *.txt beside this one, whose format read.go describes. Of each:
//
//	killed    its test failed
//	survived  its test passed: an error
//	broken    it does not compile, or the text to replace is not there exactly once: an error
//	hung      its test did not end in time: an error, unless the mutant says that it hangs, which is how it is killed
//
// Before that, the tests have to pass on the code as it is.
//
// How they are built. One build a mutant takes some seconds, nearly all of it for linking what has not changed, so all
// mutants that one test binary is to judge are built into it together: each function that one of them changes
// begins with a branch to its changed copy, and which mutant is in force is a number in the binary, which is
// patched in a copy of it. A number in the environment would not reach the guard, which starts with none. What changes
// no function's body (a constant, say), and what cannot be built with the others, has a build of its own; with
// -alone each has.
package main
