package coord

import (
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// prefixOf is the range of an election: it ends in "/", so that "a" never sees the keys of "ab".
func prefixOf(key string) string { return strings.TrimSuffix(key, "/") + "/" }

// candidateKey is the key of a candidate. The layout is that of etcd's own concurrency.Election (lease
// id in hex, not padded), so that its clients and etcdctl queue with ours.
func candidateKey(prefix string, lease clientv3.LeaseID) string {
	return prefix + leaseName(lease)
}

// leaseName is a lease in hexadecimal digits, not padded, as etcdctl prints it.
func leaseName(lease clientv3.LeaseID) string { return strconv.FormatInt(int64(lease), 16) }

// nested reports whether key, found under prefix, belongs to another election inside this one.
func nested(prefix, key string) bool { return strings.Contains(key[len(prefix):], "/") }
