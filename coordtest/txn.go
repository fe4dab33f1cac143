package coordtest

import (
	"bytes"
	"cmp"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// maxOps is the longest list of a transaction that etcd takes by default.
const maxOps = 128

// plan is a transaction whose compares have been judged, nested ones too: all of them see the store as it
// was before the first operation.
type plan struct {
	succeeded bool
	ops       []*pb.RequestOp
	nested    map[*pb.RequestOp]plan
}

func (s *store) plan(r *pb.TxnRequest) plan {
	p := plan{succeeded: true, nested: make(map[*pb.RequestOp]plan)}
	for _, c := range r.GetCompare() {
		p.succeeded = p.succeeded && s.holds(c)
	}
	p.ops = r.GetFailure()
	if p.succeeded {
		p.ops = r.GetSuccess()
	}
	for _, op := range p.ops {
		if t := op.GetRequestTxn(); t != nil {
			p.nested[op] = s.plan(t)
		}
	}
	return p
}

// holds judges one compare. A range without keys compares as one key that never was; its value compares as
// false whatever it is compared with.
func (s *store) holds(c *pb.Compare) bool {
	kvs := s.live(newSpan(c.Key, c.RangeEnd), s.rev)
	if len(kvs) == 0 {
		return c.Target != pb.Compare_VALUE && compareKV(c, &mvccpb.KeyValue{})
	}
	for _, kv := range kvs {
		if !compareKV(c, kv) {
			return false
		}
	}
	return true
}

func compareKV(c *pb.Compare, kv *mvccpb.KeyValue) bool {
	var result int
	switch c.Target {
	case pb.Compare_VALUE:
		result = bytes.Compare(kv.Value, c.GetValue())
	case pb.Compare_CREATE:
		result = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
	case pb.Compare_MOD:
		result = cmp.Compare(kv.ModRevision, c.GetModRevision())
	case pb.Compare_VERSION:
		result = cmp.Compare(kv.Version, c.GetVersion())
	case pb.Compare_LEASE:
		result = cmp.Compare(kv.Lease, c.GetLease())
	}
	switch c.Result {
	case pb.Compare_EQUAL:
		return result == 0
	case pb.Compare_NOT_EQUAL:
		return result != 0
	case pb.Compare_GREATER:
		return result > 0
	case pb.Compare_LESS:
		return result < 0
	}
	return true
}

// txn runs a transaction whole or not at all.
func (s *store) txn(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	p := s.plan(r)
	if err := s.canRun(p); err != nil {
		return nil, err
	}
	b := s.begin()
	resp, err := b.run(p)
	b.commit()
	if err != nil {
		return nil, err
	}
	resp.Header.Revision = b.rev()
	return resp, nil
}

// canRun asks everything that may refuse an operation on the chosen path, before anything is changed.
func (s *store) canRun(p plan) error {
	for _, op := range p.ops {
		var err error
		switch o := op.GetRequest().(type) {
		case *pb.RequestOp_RequestRange:
			err = s.canRange(o.RequestRange, s.rev)
		case *pb.RequestOp_RequestPut:
			err = s.canPut(o.RequestPut)
		case *pb.RequestOp_RequestTxn:
			err = s.canRun(p.nested[op])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run executes a plan in order. Every operation sees those before it.
func (b *batch) run(p plan) (*pb.TxnResponse, error) {
	resp := &pb.TxnResponse{Header: &pb.ResponseHeader{}, Succeeded: p.succeeded}
	for _, op := range p.ops {
		answer := &pb.ResponseOp{}
		switch o := op.GetRequest().(type) {
		case *pb.RequestOp_RequestRange:
			r, err := b.s.rangeAt(o.RequestRange, b.rev())
			if err != nil {
				return nil, err
			}
			answer.Response = &pb.ResponseOp_ResponseRange{ResponseRange: r}
		case *pb.RequestOp_RequestPut:
			answer.Response = &pb.ResponseOp_ResponsePut{ResponsePut: b.putRequest(o.RequestPut)}
		case *pb.RequestOp_RequestDeleteRange:
			answer.Response = &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: b.deleteRequest(o.RequestDeleteRange)}
		case *pb.RequestOp_RequestTxn:
			t, err := b.run(p.nested[op])
			if err != nil {
				return nil, err
			}
			answer.Response = &pb.ResponseOp_ResponseTxn{ResponseTxn: t}
		}
		resp.Responses = append(resp.Responses, answer)
	}
	return resp, nil
}

// answeredAlone tells whether a member answers a transaction without asking the others: it only reads, and
// none of its reads is linearizable. A transaction of nothing but compares is such a one.
func answeredAlone(r *pb.TxnRequest) bool {
	for _, op := range branches(r) {
		if g := op.GetRequestRange(); g == nil || !g.Serializable {
			return false
		}
	}
	return true
}

// puts tells whether any branch puts anything: then a full store refuses the transaction.
func puts(r *pb.TxnRequest) bool {
	for _, op := range branches(r) {
		if op.GetRequestPut() != nil || op.GetRequestTxn() != nil && puts(op.GetRequestTxn()) {
			return true
		}
	}
	return false
}

// branches lists the operations of both branches.
func branches(r *pb.TxnRequest) []*pb.RequestOp {
	return append(append([]*pb.RequestOp(nil), r.GetSuccess()...), r.GetFailure()...)
}

// checkTxn refuses what is malformed, wherever it stands.
func checkTxn(r *pb.TxnRequest) error {
	if err := checkOps(r, maxOps); err != nil {
		return err
	}
	// Each branch by itself: the same key may be put in both.
	if _, err := writesOf(r.Success); err != nil {
		return err
	}
	_, err := writesOf(r.Failure)
	return err
}

// checkOps checks lengths and requests. A nested transaction may be as long as what is left.
func checkOps(r *pb.TxnRequest, limit int) error {
	longest := max(len(r.GetCompare()), len(r.GetSuccess()), len(r.GetFailure()))
	if longest > limit {
		return rpctypes.ErrGRPCTooManyOps
	}
	for _, c := range r.GetCompare() {
		if len(c.Key) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
	}
	for _, op := range branches(r) {
		if err := checkOp(op, limit-longest); err != nil {
			return err
		}
	}
	return nil
}

func checkOp(op *pb.RequestOp, limit int) error {
	switch o := op.GetRequest().(type) {
	case *pb.RequestOp_RequestRange:
		return checkRange(o.RequestRange)
	case *pb.RequestOp_RequestPut:
		return checkPut(o.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		if len(o.RequestDeleteRange.GetKey()) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
		return nil
	case *pb.RequestOp_RequestTxn:
		return checkOps(o.RequestTxn, limit)
	}
	return rpctypes.ErrGRPCKeyNotFound
}

// writes are the keys that a list of operations may put and the spans that it may delete.
type writes struct {
	puts map[string]bool
	dels []span
}

// add notes a put, unless the key is written already.
func (w *writes) add(key string, allowed bool) error {
	if w.puts[key] && !allowed {
		return rpctypes.ErrGRPCDuplicateKey
	}
	for _, d := range w.dels {
		if d.contains(key) {
			return rpctypes.ErrGRPCDuplicateKey
		}
	}
	w.puts[key] = true
	return nil
}

// writesOf refuses a list that puts a key twice, or puts a key that it also deletes. The branches of a
// nested transaction exclude each other, so both may put the same key.
func writesOf(ops []*pb.RequestOp) (writes, error) {
	w := writes{puts: make(map[string]bool)}
	for _, op := range ops {
		// etcd does not see that a delete without an end reaches the keys behind its start.
		if d := op.GetRequestDeleteRange(); d != nil && string(d.RangeEnd) != "\x00" {
			w.dels = append(w.dels, newSpan(d.Key, d.RangeEnd))
		}
	}
	for _, op := range ops {
		if t := op.GetRequestTxn(); t != nil {
			if err := w.merge(t); err != nil {
				return w, err
			}
		}
	}
	for _, op := range ops {
		if p := op.GetRequestPut(); p != nil {
			if err := w.add(string(p.Key), false); err != nil {
				return w, err
			}
		}
	}
	return w, nil
}

func (w *writes) merge(t *pb.TxnRequest) error {
	then, err := writesOf(t.Success)
	if err != nil {
		return err
	}
	otherwise, err := writesOf(t.Failure)
	if err != nil {
		return err
	}
	for key := range then.puts {
		if err := w.add(key, false); err != nil {
			return err
		}
	}
	for key := range otherwise.puts {
		if err := w.add(key, then.puts[key]); err != nil {
			return err
		}
	}
	w.dels = append(append(w.dels, then.dels...), otherwise.dels...)
	return nil
}
