// Package etcdtest gives a test a running etcd in one call, and the faults to try it with.
//
// One and Shared run a lone member inside the test process: ready in a tenth of a second, but it cannot be
// stopped or killed like a machine. Cluster runs real processes, by re-executing the test binary, which
// can. Proxy stands between a client and an endpoint and misbehaves as a network does.
//
// What is not guaranteed: nothing is synced to disk, so a crash of the machine (not of a process) loses
// data; and times are those of a busy machine: assert order, not speed.
//
// Everything ends with its test: members are killed in t.Cleanup, and a member process dies with the test
// process, however that ends, because the kernel signals it. That signal is bound to the thread that
// forked, so each Cluster keeps one thread for its forks that lives as long as the cluster does.
package etcdtest
