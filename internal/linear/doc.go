// Package linear looks for an order in which all that clients were told is right: for locks by the contract of package coordination, and
// for a register that is fenced. The search is porcupine's; what is right is the models'.
//
// # What is not promised
//
// Where many calls were not answered a search can take longer than anybody waits. Then it is given up, and ErrUndecided is no verdict:
// neither that there is an order nor that there is none.
//
// A call without an answer may have happened at any time since, or never. In a history it returns at the end of time.
//
// # What it is for
//
// Package locktest judges Lockers by it, ours and our users'; test/chaos judges what was told while a cluster was broken. Nothing that is
// shipped imports it.
package linear
