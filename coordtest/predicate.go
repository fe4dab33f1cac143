package coordtest

import (
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// use is what a request does with a key that it names.
type use int

const (
	reads use = iota // or compares, or watches
	stores
	drops
)

// Touches is a Rule's When: the request names a key with the given prefix, to read, write, compare or watch
// it, in any branch. A range counts by its first key.
func Touches(prefix string) func(*Call) bool { return names(prefix, reads, stores, drops) }

// Writes is a Rule's When: the request puts or deletes a key with the given prefix, in any branch.
func Writes(prefix string) func(*Call) bool { return names(prefix, stores, drops) }

// Puts is a Rule's When: the request puts a key with the given prefix, in any branch.
func Puts(prefix string) func(*Call) bool { return names(prefix, stores) }

// Deletes is a Rule's When: the request deletes a key with the given prefix, in any branch.
func Deletes(prefix string) func(*Call) bool { return names(prefix, drops) }

func names(prefix string, uses ...use) func(*Call) bool {
	return func(c *Call) bool {
		found := false
		visit := func(key []byte, u use) {
			for _, wanted := range uses {
				found = found || u == wanted && strings.HasPrefix(string(key), prefix)
			}
		}
		switch r := c.Request.(type) {
		case *pb.RangeRequest:
			visit(r.Key, reads)
		case *pb.WatchCreateRequest:
			visit(r.Key, reads)
		case *pb.PutRequest:
			visit(r.Key, stores)
		case *pb.DeleteRangeRequest:
			visit(r.Key, drops)
		case *pb.TxnRequest:
			visitTxn(r, visit)
		}
		return found
	}
}

func visitTxn(r *pb.TxnRequest, visit func([]byte, use)) {
	for _, c := range r.GetCompare() {
		visit(c.Key, reads)
	}
	for _, op := range branches(r) {
		switch o := op.GetRequest().(type) {
		case *pb.RequestOp_RequestRange:
			visit(o.RequestRange.GetKey(), reads)
		case *pb.RequestOp_RequestPut:
			visit(o.RequestPut.GetKey(), stores)
		case *pb.RequestOp_RequestDeleteRange:
			visit(o.RequestDeleteRange.GetKey(), drops)
		case *pb.RequestOp_RequestTxn:
			visitTxn(o.RequestTxn, visit)
		}
	}
}
