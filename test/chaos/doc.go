//go:build linux

// Command chaos breaks a real cluster, and audits what happened meanwhile.
//
//	go run ./test/chaos [-for 60s] [-seed N] [-faults LIST] [-workloads LIST] [-dir DIR] [-bin DIR] [-no-netns] [-v] [-json]
//
// Three etcd members and the commands as they are shipped, from bin/ (make build tools), each in a network namespace of its own, do
// their work while faults happen to them: processes are killed and stopped, members too, the network is cut, lossy and slow, and keys
// and leases go. Who is not root, or says -no-netns, has all of it on sockets of this machine, without the faults of the network.
//
// # What is not guaranteed
//
// A run without a violation proves nothing that it did not meet: it says how many faults of which kind it met. The same seed
// gives the same faults to the same targets at the same moments; what the kernel and etcd make of it is another story each time.
// So a violation is kept as it was: its history and a picture of it are what counts, and the seed is where to begin.
//
// Time is that of one machine: clocks of different rates are for the simulation, disks that lose what was synced and machines that are
// suspended are for other tests. docs/faults.md says of each row of the matrix what covers it.
//
// # How it is made
//
//	chaos           makes a folder, adopts whatever is orphaned, ends what is left, and removes the folder
//	└─ chaos (inner), in a network namespace with nothing but a bridge
//	   ├─ etcd ×3, each in a namespace of its own
//	   └─ parts of workloads, on five hosts, each a namespace: conch, conchd, programs; started again when they end
//	      └─ their guards, and below these chaos (child): it writes what it does into the ledger
//
// The inner process is killed by the kernel when the outer one dies, and so are the processes that it starts; a namespace ends
// with the processes in it. So no process and no network outlives a run, however that ends; only its folder does where the outer
// process is killed with -9.
//
// # How it judges
//
// Whoever does something that counts writes a line into the ledger, in one write to a file that is appended to: with the
// time of CLOCK_BOOTTIME, its process, its token. What the run does to them, and how processes end, goes into the history. Both
// are lists of events; an auditor needs nothing else, and so is tested with events made by hand.
//
// That two children were alive at once the kernel says: each has a lock on the file of its office or slot, which everything that
// it starts inherits, and which is free when the last of them is gone. A child that finds it taken writes that down as an overlap.
// Stop lines and the order of tokens are a second, weaker witness.
//
// Where wrapper and guard are stopped or killed together two children may be alive at once: that is the one case that only the
// token helps. It happens to the workload that is judged by its writes, and to no other.
package main
