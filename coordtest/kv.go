package coordtest

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// kvServer is the KV service of one member.
type kvServer struct {
	pb.UnimplementedKVServer
	*member
}

func (sv *kvServer) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	return serve(sv.member, ctx, Range, r, func(ctx context.Context) (*pb.RangeResponse, error) {
		if err := checkRange(r); err != nil {
			return nil, err
		}
		if !r.Serializable {
			if err := sv.awaitQuorum(ctx); err != nil {
				return nil, err
			}
		}
		s := sv.m.store
		s.lock()
		defer s.unlock()
		resp, err := s.rangeAt(r, s.rev)
		return headed(sv.member, resp, err)
	})
}

func (sv *kvServer) Put(ctx context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	return serve(sv.member, ctx, Put, r, func(ctx context.Context) (*pb.PutResponse, error) {
		if sv.m.state.full() {
			return nil, rpctypes.ErrGRPCNoSpace
		}
		if err := checkPut(r); err != nil {
			return nil, err
		}
		if err := sv.awaitQuorum(ctx); err != nil {
			return nil, err
		}
		s := sv.m.store
		s.lock()
		defer s.unlock()
		if err := s.canPut(r); err != nil {
			return nil, err
		}
		b := s.begin()
		resp := b.putRequest(r)
		b.commit()
		return headed(sv.member, resp, nil)
	})
}

func (sv *kvServer) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	return serve(sv.member, ctx, Delete, r, func(ctx context.Context) (*pb.DeleteRangeResponse, error) {
		if len(r.Key) == 0 {
			return nil, rpctypes.ErrGRPCEmptyKey
		}
		if err := sv.awaitQuorum(ctx); err != nil {
			return nil, err
		}
		s := sv.m.store
		s.lock()
		defer s.unlock()
		b := s.begin()
		resp := b.deleteRequest(r)
		b.commit()
		return headed(sv.member, resp, nil)
	})
}

func (sv *kvServer) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	return serve(sv.member, ctx, Txn, r, func(ctx context.Context) (*pb.TxnResponse, error) {
		if sv.m.state.full() && puts(r) {
			return nil, rpctypes.ErrGRPCNoSpace
		}
		if err := checkTxn(r); err != nil {
			return nil, err
		}
		if !answeredAlone(r) {
			if err := sv.awaitQuorum(ctx); err != nil {
				return nil, err
			}
		}
		s := sv.m.store
		s.lock()
		defer s.unlock()
		resp, err := s.txn(r)
		return headed(sv.member, resp, err)
	})
}

func (sv *kvServer) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	return serve(sv.member, ctx, Compact, r, func(ctx context.Context) (*pb.CompactionResponse, error) {
		if err := sv.awaitQuorum(ctx); err != nil {
			return nil, err
		}
		s := sv.m.store
		s.lock()
		defer s.unlock()
		if err := s.compact(r.Revision); err != nil {
			return nil, err
		}
		return &pb.CompactionResponse{Header: sv.header(s.rev)}, nil
	})
}

func (mb *member) awaitQuorum(ctx context.Context) error {
	return mb.m.state.awaitQuorum(ctx, mb.m.opts.RequestTimeout)
}

// headed completes the header of an answer, which knows its revision already.
func headed[R interface{ GetHeader() *pb.ResponseHeader }](mb *member, resp R, err error) (R, error) {
	if err != nil {
		var none R
		return none, err
	}
	h := resp.GetHeader()
	h.MemberId = mb.id
	h.ClusterId, h.RaftTerm = mb.m.state.ids()
	return resp, nil
}

func checkRange(r *pb.RangeRequest) error {
	_, order := pb.RangeRequest_SortOrder_name[int32(r.GetSortOrder())]
	_, target := pb.RangeRequest_SortTarget_name[int32(r.GetSortTarget())]
	switch {
	case len(r.GetKey()) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case !order || !target:
		return rpctypes.ErrGRPCInvalidSortOption
	}
	return nil
}

func checkPut(r *pb.PutRequest) error {
	switch {
	case len(r.GetKey()) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case r.IgnoreValue && len(r.Value) != 0:
		return rpctypes.ErrGRPCValueProvided
	case r.IgnoreLease && r.Lease != 0:
		return rpctypes.ErrGRPCLeaseProvided
	}
	return nil
}

// canRange tells whether a revision may be read.
func (s *store) canRange(r *pb.RangeRequest, current int64) error {
	switch {
	case r.Revision > current:
		return rpctypes.ErrGRPCFutureRev
	case r.Revision > 0 && r.Revision < s.compacted:
		return rpctypes.ErrGRPCCompacted
	}
	return nil
}

// rangeAt answers a range. current is the newest revision that it may see.
func (s *store) rangeAt(r *pb.RangeRequest, current int64) (*pb.RangeResponse, error) {
	if err := s.canRange(r, current); err != nil {
		return nil, err
	}
	rev := current
	if r.Revision > 0 {
		rev = r.Revision
	}
	kvs := s.live(newSpan(r.Key, r.RangeEnd), rev)
	resp := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: current}, Count: int64(len(kvs))}
	if r.CountOnly {
		return resp, nil
	}

	// A limit without an order cuts before anything is sorted: one more is kept, to tell that there are more.
	unordered := r.SortOrder == pb.RangeRequest_NONE ||
		r.SortTarget == pb.RangeRequest_KEY && r.SortOrder == pb.RangeRequest_ASCEND
	if r.Limit > 0 && unordered && !filters(r) && int64(len(kvs)) > r.Limit+1 {
		kvs = kvs[:r.Limit+1]
	}
	kvs = slices.DeleteFunc(kvs, func(kv *mvccpb.KeyValue) bool { return filtered(r, kv) })
	sortKVs(kvs, r.SortTarget, r.SortOrder)
	if r.Limit > 0 && int64(len(kvs)) > r.Limit {
		kvs, resp.More = kvs[:r.Limit], true
	}
	for _, kv := range kvs {
		resp.Kvs = append(resp.Kvs, shown(r, kv))
	}
	return resp, nil
}

func filters(r *pb.RangeRequest) bool {
	return r.MinModRevision != 0 || r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0
}

func filtered(r *pb.RangeRequest, kv *mvccpb.KeyValue) bool {
	outside := func(rev, low, high int64) bool { return low != 0 && rev < low || high != 0 && rev > high }
	return outside(kv.ModRevision, r.MinModRevision, r.MaxModRevision) ||
		outside(kv.CreateRevision, r.MinCreateRevision, r.MaxCreateRevision)
}

// shown is what a range tells of a key. Without values it is answered from the index, which knows no
// leases, unless the values were needed for the order.
func shown(r *pb.RangeRequest, kv *mvccpb.KeyValue) *mvccpb.KeyValue {
	if !r.KeysOnly {
		return kv
	}
	k := &mvccpb.KeyValue{Key: kv.Key, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version}
	if r.SortTarget == pb.RangeRequest_VALUE {
		k.Lease = kv.Lease
	}
	return k
}

// sortKVs orders what is in order of the keys. Equal ones stay in that order; etcd promises none for them.
func sortKVs(kvs []*mvccpb.KeyValue, target pb.RangeRequest_SortTarget, order pb.RangeRequest_SortOrder) {
	if target == pb.RangeRequest_KEY && order != pb.RangeRequest_DESCEND {
		return
	}
	compare := func(a, b *mvccpb.KeyValue) int {
		switch target {
		case pb.RangeRequest_VERSION:
			return cmp.Compare(a.Version, b.Version)
		case pb.RangeRequest_CREATE:
			return cmp.Compare(a.CreateRevision, b.CreateRevision)
		case pb.RangeRequest_MOD:
			return cmp.Compare(a.ModRevision, b.ModRevision)
		case pb.RangeRequest_VALUE:
			return bytes.Compare(a.Value, b.Value)
		}
		return bytes.Compare(a.Key, b.Key)
	}
	slices.SortStableFunc(kvs, func(a, b *mvccpb.KeyValue) int {
		if order == pb.RangeRequest_DESCEND {
			a, b = b, a
		}
		return compare(a, b)
	})
}

// canPut tells whether a put would be accepted now.
func (s *store) canPut(r *pb.PutRequest) error {
	if r.Lease != 0 && s.leases[r.Lease] == nil {
		return rpctypes.ErrGRPCLeaseNotFound
	}
	if (r.IgnoreValue || r.IgnoreLease) && s.at(string(r.Key), s.rev) == nil {
		return rpctypes.ErrGRPCKeyNotFound
	}
	return nil
}

// putRequest puts. canPut has agreed.
func (b *batch) putRequest(r *pb.PutRequest) *pb.PutResponse {
	key, value, leaseID := string(r.Key), r.Value, r.Lease
	prev := b.s.at(key, b.rev())
	if r.IgnoreValue {
		value = prev.GetValue()
	}
	if r.IgnoreLease {
		leaseID = prev.GetLease()
	}
	b.put(key, value, leaseID)
	resp := &pb.PutResponse{Header: &pb.ResponseHeader{Revision: b.rev()}}
	if r.PrevKv {
		resp.PrevKv = prev
	}
	return resp
}

func (b *batch) deleteRequest(r *pb.DeleteRangeRequest) *pb.DeleteRangeResponse {
	at := newSpan(r.Key, r.RangeEnd)
	resp := &pb.DeleteRangeResponse{}
	if r.PrevKv {
		resp.PrevKvs = b.s.live(at, b.rev())
	}
	resp.Deleted = b.deleteRange(at)
	resp.Header = &pb.ResponseHeader{Revision: b.rev()}
	return resp
}
