// Package daemon is conchd: flags and their variables, a connection, one guard for all runs, a node of package cron, and what
// the service manager is told.
//
// # What is not promised
//
// That a daemon which is stopped waits for what it runs: --drain-timeout bounds that. That two daemons on one host are told
// apart by anything but their --host: the second one of a name is refused.
//
// # At each failure
//
// etcd that cannot be reached at the start is exit code 69. After that the daemon stays, whatever becomes of etcd, and says so.
// A first SIGTERM, SIGINT or SIGHUP ends claiming, and lets what runs finish; a second one ends what runs.
package daemon
