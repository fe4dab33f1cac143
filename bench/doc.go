//go:build linux

// Command bench measures conch, conchd and package coord side by side with what else does the same: etcdctl lock, the
// client's own package concurrency, and etcd itself, as the limit.
//
//	go run ./bench [-bin bin] [-rounds n] [-only case,...] [-json] [-check] [-write] [-from file]
//
// # What is not promised
//
// Numbers of two runs, or of two machines, say nothing about each other. The ratios of one run do, and only on a
// machine that does nothing else: contestants take turns in short slices, so that what disturbs one disturbs the
// others, and medians are compared. A ratio comes with its spread, the least and the greatest of the rounds, and with the load
// of the machine: where the spread takes in the target, the verdict says so. Everything is on one machine, etcd too: what
// is measured is work, not networks.
//
// # What is measured
//
// Each case is a file of its own, named in case.go, with its targets. The children of the wrappers stamp their own
// times on a clock that all processes share: see bench/act. Cases that are about sizes (of a fleet, of a queue of changes) give
// curves as well; docs/scale.md is made of these.
//
// # What becomes of it
//
// A table, or with -json an object a line. With -write the run is kept as docs/plots/bench.json, and the documents are made
// anew from it: the charts, and in docs/performance.md and docs/scale.md what stands between marks. -from reads a kept run
// instead of measuring: with -write it makes the documents again, without it it prints the table. -check ends with 1 if a target
// was missed.
//
// The binaries have to be built and stripped: conch, conchd, holdguard, etcdctl and etcd in -bin. `make bench` sees to it.
package main
