// Package house holds the tests of the house itself: which package may import which, what a source file
// may not contain, and what the documents must keep.
//
// What is not guaranteed: that the code is good. These tests read names, import lists and syntax trees;
// they compile one thing, the example of the README. A rule that needs judgement stands in
// CONTRIBUTING.md and is kept by people.
//
// Each rule is data with its reason beside it, and a break prints the reason: who breaks a rule should
// learn why it stands before deciding whether the rule or the code is to change. A rule about a package
// that does not exist yet is silent, and starts to bite on the day the package appears.
//
// Coverage minimums are in coverage.txt, one place, read by the program in cover/.
package house
