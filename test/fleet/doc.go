// Package fleet holds the tests of hosts in numbers, and of what a host watcher tells of them, on a real etcd:
// many schedules of changes and faults, and ten thousand hosts.
package fleet
