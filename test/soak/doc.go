// Package soak runs for long what otherwise runs for moments, and looks whether anything grows: etcd's data under days of
// jobs, and the memory, goroutines and file descriptors of processes under churn.
//
// # What is not shown
//
// Correctness under faults: see test/chaos and test/sim. Nothing is synced to disk here, so the pace says nothing about that of a
// real etcd. A leak that is slower than what a run can tell from noise stays unseen: the longer, the finer.
//
// # Days of jobs
//
// A real etcd, and three hosts that do with it what daemons do, by the store of the daemons: claim, mark, finish, prune, on
// leases shared by time. Only what takes its time is left out: there is no process, and all times are divided by one
// number, the pace: those of ticks, those for which claims and results are kept, that between two compactions. A lease lasts for
// whole seconds, so at a great pace it lasts a little longer than its share.
//
// # Churn
//
// In one process hosts and watchers come and go, offices and slots are held and handed over, leases are revoked under their
// holders; beside it a daemon runs jobs of a moment each second. Samples are taken at equal distances; from what follows
// the first fifth a line is fitted, whose rise over the run has to be small against the mean.
//
// Both run briefly with the tests, and as long as one likes by "make soak".
package soak
