// Command failover shows a fleet that takes over the work of a host that died: it takes one command, and ends with 0.
//
//	go run ./examples/failover
//
// Three processes are hosts, each with a machine (vm) that runs there. Each registers itself, watches the others, and has a pool
// of elections. One is killed with -9: every other one hears of it, all contend for the office of that death, one at a
// time leads it, and the first to do so moves the machine to itself. The others then see that there is nothing left to
// do. Then a second host is killed, and the last one has everything.
//
// Two things make it exactly one. The election, which is named for the host and for its life, has one of them at it at a time,
// and the next one where that died in the middle of it. And the move itself is one transaction, which compares that the term
// is not over and that the machine is still the dead host's: whoever was paused finds that it is not.
//
// What it does not show: that the dead host is dead. A host that was cut off looks the same, and its machine may still run. What
// must not run twice needs a host that ends it in time (coord.HostLiveness.Proven), or storage that refuses its token.
package main
