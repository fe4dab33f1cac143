// Package faults runs the built commands as processes and hurts them: kill -9, SIGSTOP, keys deleted,
// leases revoked, members of a three-member etcd stopped, killed and paused, and the network between them cut: that in
// network namespaces of the test's own, with packet filters and a link that goes down. It takes iproute2, nftables and either root
// or user namespaces; a test says so where they are missing.
//
// The witness of an overlap is the kernel: each child takes an exclusive lock on a file of its office without
// waiting, and keeps it until it is dead. A child that finds it taken says so, and the test fails. Children write
// down what they do with readings of CLOCK_BOOTTIME, so that times of several processes compare.
//
// Orders are asserted exactly. Upper bounds have slack for a busy machine; the bench has the sharp ones.
package faults
