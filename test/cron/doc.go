// Package cron proves distributed cron by real processes: conchd as it is installed, against a real etcd, and what an operator sees
// of it: results, exit codes, and what is left behind.
//
// What needs other clocks runs this test binary as conchd, since no flag sets a clock.
//
// Jobs write down each start in a ledger, a file that all of them append to, and hold a lock of the kernel's for as long as
// anything of them lives: what cron says is held against what happened.
package cron
