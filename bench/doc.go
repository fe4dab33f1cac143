//go:build linux

// Command bench compares conch with etcdctl lock, each a wrapper that runs a command while it holds
// something, on one etcd and in one run.
//
//	go run ./bench [-bin bin] [-rounds n] [-only what] [-json] [-check]
//
// Only the ratios of one run mean anything, and only on a machine that does nothing else: the two take
// turns, so that what disturbs one disturbs the other. Medians are compared; a single slow round says
// nothing. What is measured:
//
//	whole process   from fork to reaped, with a command that does nothing
//	hand-over       from the last act of one child to the first act of the next, ten queued wrappers
//	orphan          from kill -9 of the wrapper to the first act of the successor's child, while the first
//	                child ignores SIGTERM and has a grandchild in a session of its own
//	memory          proportional set size of what is resident while a child runs, but for the child
//	binary          size on disk
//
// The binaries have to be built and stripped: conch, holdguard, etcdctl and etcd in -bin. With -check the
// exit code is 1 when a target was missed. The children stamp their own times: see bench/act.
package main
