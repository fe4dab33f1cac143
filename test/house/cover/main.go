// Command cover holds coverage profiles against the minimums of a table.
//
//	cover TABLE PROFILE...
//
// It is not a measure of how good the tests are: a statement that ran may still be wrong. It says that no
// branch was left without any test at all, package by package, so that a well-tested package cannot pay
// for one that nobody looked at.
//
// Several profiles are one: a statement counts as reached if any of them reached it. A package of this
// module that has statements and stands in no profile counts as 0 %: a package without a test file would
// otherwise pass unseen. It prints every package, and ends with 1 if one is below its minimum.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: cover TABLE PROFILE...")
		os.Exit(64)
	}
	report, ok, err := check(os.Args[1], os.Args[2:])
	fmt.Print(report)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cover:", err)
		os.Exit(1)
	}
	if !ok {
		fmt.Fprintln(os.Stderr, "cover: a package is below its minimum of", os.Args[1])
		os.Exit(1)
	}
}
