// Package wire holds the tests that coord speaks etcd's election protocol: etcd's own concurrency package
// and etcdctl elect queue with it, see it lead, and are seen by it, on a real etcd. And that etcd's watches do what
// coord stands on.
package wire
