package coord

import (
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
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

// noneUnder compares that there is no key under prefix. It is what the client's Compare makes, which copies it at each step.
func noneUnder(prefix string) clientv3.Cmp {
	var none clientv3.Cmp
	c := none.GetCompare()
	c.Key, c.RangeEnd = []byte(prefix), []byte(clientv3.GetPrefixRangeEnd(prefix))
	c.Target, c.Result, c.TargetUnion = pb.Compare_CREATE, pb.Compare_EQUAL, &pb.Compare_CreateRevision{CreateRevision: 0}
	return none
}

// nested reports whether key, found under prefix, belongs to another election inside this one.
func nested(prefix, key string) bool { return strings.Contains(key[len(prefix):], "/") }
