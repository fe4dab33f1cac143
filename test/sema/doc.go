// Package sema holds the tests of coord's semaphores and pools on a real etcd: that what the etcd in memory answers to
// their transactions is what etcd answers, and that many contenders in a hurry are never more than were let in.
package sema
