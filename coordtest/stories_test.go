package coordtest

import (
	"fmt"
	"maps"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The parts that transactions are made of.

func op(o clientv3.Op) *pb.RequestOp {
	switch {
	case o.IsGet():
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: o.KeyBytes(), RangeEnd: o.RangeBytes(), Revision: o.Rev(), Serializable: o.IsSerializable()}}}
	case o.IsPut():
		return putOp(&pb.PutRequest{Key: o.KeyBytes(), Value: o.ValueBytes()})
	}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: o.KeyBytes(), RangeEnd: o.RangeBytes(), PrevKv: true}}}
}

func putOp(r *pb.PutRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}}
}

func nest(r *pb.TxnRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: r}}
}

func get(key string) *pb.RequestOp { return op(clientv3.OpGet(key)) }
func put(key string) *pb.RequestOp { return op(clientv3.OpPut(key, "txn")) }
func del(key string) *pb.RequestOp { return op(clientv3.OpDelete(key)) }
func delPrefix(key string) *pb.RequestOp {
	return op(clientv3.OpDelete(key, clientv3.WithPrefix()))
}

func list[T any](items ...T) []T { return items }

func exists(key string) *pb.Compare {
	return &pb.Compare{Key: []byte(key), Target: pb.Compare_VERSION, Result: pb.Compare_GREATER, TargetUnion: &pb.Compare_Version{Version: 0}}
}

func times[T any](n int, item T) []T {
	var many []T
	for range n {
		many = append(many, item)
	}
	return many
}

var stories = []story{
	{"a put counts versions and keeps the create revision until the key is deleted", func(s *teller) {
		s.puts("k=1", "k=2")
		s.put(&pb.PutRequest{Key: []byte("k"), Value: []byte("3"), PrevKv: true})
		s.del(&pb.DeleteRangeRequest{Key: []byte("k")})
		s.put(&pb.PutRequest{Key: []byte("k"), Value: []byte("4"), PrevKv: true})
		s.put(&pb.PutRequest{Key: []byte("k"), IgnoreValue: true, PrevKv: true})
		s.all()
	}},
	{"a put that makes no sense is refused", func(s *teller) {
		s.put(&pb.PutRequest{Value: []byte("v")})
		s.put(&pb.PutRequest{Key: []byte("none"), IgnoreValue: true})
		s.put(&pb.PutRequest{Key: []byte("none"), IgnoreLease: true})
		s.put(&pb.PutRequest{Key: []byte("k"), Value: []byte("v"), IgnoreValue: true})
		s.put(&pb.PutRequest{Key: []byte("k"), Lease: 7, IgnoreLease: true})
		s.put(&pb.PutRequest{Key: []byte("k"), Lease: 7})
		s.all()
	}},
	{"a range shows what was asked for", tellRanges},
	{"a range is sorted and limited", tellSorted},
	{"a range may look back", func(s *teller) {
		s.puts("k=1", "j=1", "k=2")
		s.del(&pb.DeleteRangeRequest{Key: []byte("j")})
		for rev := int64(1); rev <= 5; rev++ {
			s.get(&pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), Revision: rev})
			s.get(&pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), Revision: rev, CountOnly: true})
		}
		s.get(&pb.RangeRequest{Key: []byte("k"), Revision: -1})
	}},
	{"a delete tells how many, and which", func(s *teller) {
		s.puts("a/1=", "a/2=", "a/3=", "b=")
		s.del(&pb.DeleteRangeRequest{Key: []byte("a/1")})
		s.del(&pb.DeleteRangeRequest{Key: []byte("a/1"), PrevKv: true})
		s.del(&pb.DeleteRangeRequest{Key: []byte("a/"), RangeEnd: []byte("a0"), PrevKv: true})
		s.del(&pb.DeleteRangeRequest{Key: []byte("z"), RangeEnd: []byte("a")})
		s.del(&pb.DeleteRangeRequest{})
		s.puts("a=", "c=")
		s.del(&pb.DeleteRangeRequest{Key: []byte("b"), RangeEnd: []byte{0}, PrevKv: true})
		s.all()
	}},
	{"every compare holds where it should", tellCompares},
	{"a transaction runs its operations in order, in one revision", tellTxn},
	{"a transaction in a transaction sees what was before", tellNested},
	{"a transaction that is malformed is refused", tellMalformed},
	{"a transaction that cannot run changes nothing", tellAtomic},
	{"compaction takes the past away", tellCompaction},
	{"a lease has a floor, a ceiling and an id", func(s *teller) {
		s.grant(101, 100)
		s.grant(101, 100)
		s.grant(0, 100)
		s.grant(102, 0)
		s.grant(103, -5)
		s.grant(104, 9000000000)
		s.grant(105, 9000000001)
		s.grant(-106, 100)
		s.timeToLive(104)
	}},
	{"a key hangs on the lease of its last put", tellAttach},
	{"a revoke deletes the keys of a lease in one revision", func(s *teller) {
		s.grant(301, 100)
		for _, k := range []string{"c", "a", "b"} {
			s.put(&pb.PutRequest{Key: []byte(k), Lease: 301})
		}
		w := s.watch()
		defer w.cancel()
		w.create(&pb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}, PrevKv: true})
		w.hears(1)
		s.revoke(301)
		w.hears(1)
		s.revoke(301)
		s.timeToLive(301)
		s.renew(301)
		s.grant(302, 100)
		s.revoke(302)
		s.listLeases()
		s.all()
	}},
	{"a renewal tells the TTL, or 0", func(s *teller) {
		s.grant(401, 100)
		s.renew(401, 402, 401)
		s.puts("k=1")
		s.renew(401)
	}},
	{"a lease that ends deletes its keys", func(s *teller) {
		s.grant(501, 1)
		s.put(&pb.PutRequest{Key: []byte("k"), Value: []byte("v"), Lease: 501})
		w := s.watch()
		defer w.cancel()
		w.create(&pb.WatchCreateRequest{Key: []byte("k"), PrevKv: true})
		w.hears(2)
		s.timeToLive(501)
		s.renew(501)
		s.put(&pb.PutRequest{Key: []byte("k"), Lease: 501})
		s.all()
	}},
	{"leases are listed by their end", func(s *teller) {
		s.grant(601, 300)
		s.grant(602, 100)
		s.grant(603, 200)
		s.listLeases()
	}},
	{"a watch tells what happens", tellWatch},
	{"a watch replays what has happened", tellReplay},
	{"a watch that makes no sense is refused", func(s *teller) {
		w := s.watch()
		defer w.cancel()
		w.create(&pb.WatchCreateRequest{Key: []byte("b"), RangeEnd: []byte("a")})
		w.create(&pb.WatchCreateRequest{Key: []byte("b"), RangeEnd: []byte("b")})
		w.create(&pb.WatchCreateRequest{Key: []byte("b"), StartRevision: -1})
		w.create(&pb.WatchCreateRequest{Key: []byte("b"), WatchId: 9})
		w.create(&pb.WatchCreateRequest{Key: []byte("b"), WatchId: 9})
		w.create(&pb.WatchCreateRequest{Key: []byte("b")})
		w.hears(6)
	}},
	{"a watch tells its progress when asked", tellProgress},
	{"a full store refuses what could make it fuller", func(s *teller) {
		s.grant(701, 100)
		s.puts("k=1", "d=1")
		s.noSpace(true)
		defer s.noSpace(false)
		s.grant(702, 100)
		s.puts("k=2")
		s.txn("that puts", &pb.TxnRequest{Success: list(put("k"))})
		s.txn("that would put", &pb.TxnRequest{Success: list(get("k")), Failure: list(put("k"))})
		s.txn("that puts in a nested one", &pb.TxnRequest{Success: list(nest(&pb.TxnRequest{Failure: list(put("k"))}))})
		s.txn("that reads", &pb.TxnRequest{Success: list(get("k"))})
		s.txn("that deletes", &pb.TxnRequest{Success: list(del("d"))})
		s.renew(701)
		s.del(&pb.DeleteRangeRequest{Key: []byte("k")})
		s.revoke(701)
		s.all()
	}},
	{"whatever comes to mind", tellAtRandom(1)},
	{"whatever else comes to mind", tellAtRandom(2)},
	{"and what not", tellAtRandom(3)},
}

func tellRanges(s *teller) {
	s.grant(201, 100)
	s.put(&pb.PutRequest{Key: []byte("p/a"), Value: []byte("2"), Lease: 201})
	s.puts("p/b=1", "p/a/x=3", "q=4")
	prefix := func(change func(*pb.RangeRequest)) {
		r := &pb.RangeRequest{Key: []byte("p/"), RangeEnd: []byte("p0")}
		change(r)
		s.get(r)
	}
	prefix(func(*pb.RangeRequest) {})
	prefix(func(r *pb.RangeRequest) { r.Serializable = true })
	prefix(func(r *pb.RangeRequest) { r.CountOnly = true })
	prefix(func(r *pb.RangeRequest) { r.CountOnly, r.Limit = true, 1 })
	prefix(func(r *pb.RangeRequest) { r.KeysOnly = true })
	prefix(func(r *pb.RangeRequest) { r.KeysOnly, r.SortTarget = true, pb.RangeRequest_VALUE })
	prefix(func(r *pb.RangeRequest) { r.MinModRevision = 2 })
	prefix(func(r *pb.RangeRequest) { r.MaxModRevision = 2 })
	prefix(func(r *pb.RangeRequest) { r.MinCreateRevision, r.MaxCreateRevision = 2, 2 })
	prefix(func(r *pb.RangeRequest) { r.MinCreateRevision, r.Limit = 2, 1 })
	s.get(&pb.RangeRequest{Key: []byte("q")})
	s.get(&pb.RangeRequest{Key: []byte("none")})
	s.get(&pb.RangeRequest{Key: []byte("none"), KeysOnly: true})
	s.get(&pb.RangeRequest{Key: []byte("p/b"), RangeEnd: []byte{0}})
	s.get(&pb.RangeRequest{Key: []byte("z"), RangeEnd: []byte("a")})
	s.get(&pb.RangeRequest{})
	s.get(&pb.RangeRequest{Key: []byte("q"), SortOrder: 7})
	s.get(&pb.RangeRequest{Key: []byte("q"), SortTarget: 7})
}

func tellSorted(s *teller) {
	s.puts("d=1", "b=4", "c=2", "a=3", "b=0", "c=5", "c=6")
	for target := pb.RangeRequest_KEY; target <= pb.RangeRequest_VALUE; target++ {
		for order := pb.RangeRequest_NONE; order <= pb.RangeRequest_DESCEND; order++ {
			if target == pb.RangeRequest_VERSION {
				continue // two keys have the same, and etcd sorts those as it likes
			}
			for _, limit := range []int64{0, 1, 2, 4, 5} {
				s.get(&pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), SortTarget: target, SortOrder: order, Limit: limit})
			}
		}
	}
	s.del(&pb.DeleteRangeRequest{Key: []byte("a")})
	for order := pb.RangeRequest_NONE; order <= pb.RangeRequest_DESCEND; order++ {
		s.get(&pb.RangeRequest{Key: []byte("b"), RangeEnd: []byte("z"), SortTarget: pb.RangeRequest_VERSION, SortOrder: order})
	}
}

// tellCompares asks for every target, relation and kind of range, with a value below, at and above the one
// that is there.
func tellCompares(s *teller) {
	s.grant(801, 100)
	s.put(&pb.PutRequest{Key: []byte("m/1"), Value: []byte("b"), Lease: 801})
	s.put(&pb.PutRequest{Key: []byte("m/1"), Value: []byte("b"), Lease: 801})
	s.put(&pb.PutRequest{Key: []byte("m/2"), Value: []byte("b"), Lease: 801})
	s.puts("n=")
	spans := [][2]string{{"m/1"}, {"n"}, {"none"}, {"m/", "m0"}, {"none", "nonf"}, {"m", "\x00"}, {"z", "a"}}
	for _, span := range spans {
		for result := range int32(len(pb.Compare_CompareResult_name)) {
			for _, near := range []int64{-1, 0, 1} {
				for _, c := range []*pb.Compare{
					{Target: pb.Compare_VERSION, TargetUnion: &pb.Compare_Version{Version: 1 + near}},
					{Target: pb.Compare_CREATE, TargetUnion: &pb.Compare_CreateRevision{CreateRevision: s.base + 1 + near}},
					{Target: pb.Compare_CREATE, TargetUnion: &pb.Compare_CreateRevision{CreateRevision: near}},
					{Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: s.base + 2 + near}},
					{Target: pb.Compare_LEASE, TargetUnion: &pb.Compare_Lease{Lease: 801 + near}},
					{Target: pb.Compare_LEASE, TargetUnion: &pb.Compare_Lease{Lease: near}},
					{Target: pb.Compare_VALUE, TargetUnion: &pb.Compare_Value{Value: []byte{byte('b' + near)}}},
					{Target: pb.Compare_VALUE, TargetUnion: &pb.Compare_Value{}},
					{Target: pb.Compare_VALUE},
					{Target: pb.Compare_MOD},
				} {
					c.Key, c.Result = []byte(span[0]), pb.Compare_CompareResult(result)
					if span[1] != "" {
						c.RangeEnd = []byte(span[1])
					}
					s.txn(fmt.Sprintf("on %v %v %v %d", span, c.Target, c.Result, near), &pb.TxnRequest{Compare: list(c)})
				}
			}
		}
	}
	s.txn("of two", &pb.TxnRequest{Compare: list(exists("m/1"), exists("n"))})
	s.txn("of two, one false", &pb.TxnRequest{Compare: list(exists("m/1"), exists("none"))})
	s.txn("of a target that is none", &pb.TxnRequest{Compare: list(&pb.Compare{Key: []byte("n"), Target: 9})})
	s.txn("of a relation that is none", &pb.TxnRequest{Compare: list(&pb.Compare{Key: []byte("n"), Result: 9})})
}

func tellTxn(s *teller) {
	s.txn("of nothing", &pb.TxnRequest{})
	s.puts("k=1")
	s.txn("around a put", &pb.TxnRequest{Success: list(get("k"), put("k"), get("k"), put("j"), get("j"))})
	s.txn("of reads", &pb.TxnRequest{Success: list(get("k"), get("none"))})
	s.txn("of reads by one member", &pb.TxnRequest{Success: list(op(clientv3.OpGet("k", clientv3.WithSerializable())))})
	s.txn("else", &pb.TxnRequest{Compare: list(exists("none")), Success: list(put("k")), Failure: list(put("k"), put("i"))})
	s.txn("around a delete", &pb.TxnRequest{Success: list(get("i"), del("i"), get("i"), put("h"), del("i"))})
	s.txn("that deletes nothing", &pb.TxnRequest{Success: list(del("none"), get("k"))})
	s.txn("that deletes a range", &pb.TxnRequest{Success: list(delPrefix("h"), delPrefix("j"))})
	s.txn("with the old value", &pb.TxnRequest{Success: list(putOp(&pb.PutRequest{Key: []byte("k"), Value: []byte("9"), PrevKv: true}), putOp(&pb.PutRequest{Key: []byte("f"), PrevKv: true}))})
	s.txn("that keeps the value", &pb.TxnRequest{Success: list(putOp(&pb.PutRequest{Key: []byte("k"), IgnoreValue: true, IgnoreLease: true}))})
	s.txn("that looks back", &pb.TxnRequest{Success: list(put("k"), op(clientv3.OpGet("k", clientv3.WithRev(s.base+1))))})
	s.txn("that looks ahead", &pb.TxnRequest{Success: list(put("k"), op(clientv3.OpGet("k", clientv3.WithRev(s.base+100))))})
	s.all()
}

func tellNested(s *teller) {
	s.puts("k=1")
	inner := &pb.TxnRequest{Compare: list(exists("new")), Success: list(get("k")), Failure: list(put("inner"), get("k"), get("new"))}
	s.txn("whose inner one asks for a key that the outer one puts", &pb.TxnRequest{Success: list(put("new"), nest(inner), get("inner"))})
	s.txn("again", &pb.TxnRequest{Success: list(nest(inner), put("new"))})
	deep := &pb.TxnRequest{Compare: list(exists("none")), Failure: list(nest(&pb.TxnRequest{Success: list(put("deep"), nest(&pb.TxnRequest{}))}), get("deep"))}
	s.txn("three deep", &pb.TxnRequest{Success: list(nest(deep), nest(inner), get("deep"))})
	either := &pb.TxnRequest{Success: list(put("x")), Failure: list(put("x"))}
	s.txn("that puts a key either way", &pb.TxnRequest{Success: list(nest(either))})
	s.txn("of nothing in nothing", &pb.TxnRequest{Success: list(nest(&pb.TxnRequest{}))})
	s.txn("that reads", &pb.TxnRequest{Success: list(nest(&pb.TxnRequest{Success: list(get("k"))}))})
	s.all()
}

func tellMalformed(s *teller) {
	s.puts("k=1")
	bad := map[string][]*pb.RequestOp{
		"01 twice the same put":              list(put("k"), put("k")),
		"02 a put of what is deleted":        list(del("k"), put("k")),
		"03 a put inside a deleted range":    list(put("k/1"), delPrefix("k/")),
		"04 a put that an inner one has":     list(put("k"), nest(&pb.TxnRequest{Failure: list(put("k"))})),
		"05 a put that an inner one drops":   list(put("k"), nest(&pb.TxnRequest{Success: list(delPrefix("k"))})),
		"06 an inner put that is dropped":    list(del("k"), nest(&pb.TxnRequest{Success: list(put("k"))})),
		"07 an inner else that is dropped":   list(del("k"), nest(&pb.TxnRequest{Failure: list(put("k"))})),
		"08 two inner ones with one put":     list(nest(&pb.TxnRequest{Success: list(put("k"))}), nest(&pb.TxnRequest{Success: list(put("k"))})),
		"09 two inner elses with one put":    list(nest(&pb.TxnRequest{Failure: list(put("k"))}), nest(&pb.TxnRequest{Failure: list(put("k"))})),
		"10 a bad inner then":                list(nest(&pb.TxnRequest{Success: list(put("k"), put("k"))})),
		"11 a bad inner else":                list(nest(&pb.TxnRequest{Failure: list(put("k"), put("k"))})),
		"12 nothing as an operation":         list(&pb.RequestOp{}),
		"13 a range without key":             list(get("")),
		"14 a put without key":               list(put("")),
		"15 a delete without key":            list(op(clientv3.OpDelete("x")), op(clientv3.OpDelete(""))),
		"16 a put with and without value":    list(putOp(&pb.PutRequest{Key: []byte("k"), Value: []byte("v"), IgnoreValue: true})),
		"17 an inner compare without key":    list(nest(&pb.TxnRequest{Compare: list(&pb.Compare{})})),
		"18 129 operations":                  times(129, get("k")),
		"19 an inner one that is too long":   list(nest(&pb.TxnRequest{Success: times(128, get("k"))})),
		"20 a delete of all and a put":       list(put("k"), op(clientv3.OpDelete("a", clientv3.WithFromKey()))),
		"21 a range of an unknown order":     list(&pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte("k"), SortOrder: 9}}}),
		"22 a put below an open delete":      list(put("K"), op(clientv3.OpDelete("a", clientv3.WithFromKey()))),
		"23 128 operations":                  times(128, get("k")),
		"24 an inner one that just fits":     list(nest(&pb.TxnRequest{Success: times(127, get("k"))})),
		"25 a put at the end of a range":     list(put("k0"), op(clientv3.OpDelete("k", clientv3.WithRange("k0")))),
		"26 a put at the start of a range":   list(put("k"), op(clientv3.OpDelete("k", clientv3.WithRange("k0")))),
		"27 a put and an unrelated inner":    list(put("k"), nest(&pb.TxnRequest{Success: list(put("j")), Failure: list(del("i"))})),
		"28 a key dropped by two inner ones": list(nest(&pb.TxnRequest{Success: list(del("k"))}), nest(&pb.TxnRequest{Success: list(del("k"))})),
	}
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		s.txn("then "+name, &pb.TxnRequest{Success: bad[name]})
		s.txn("else "+name, &pb.TxnRequest{Failure: bad[name]})
	}
	s.txn("with 129 compares", &pb.TxnRequest{Compare: times(129, exists("k"))})
	s.txn("with a compare without key", &pb.TxnRequest{Compare: list(&pb.Compare{})})
	s.txn("with the same key in both branches", &pb.TxnRequest{Success: list(put("k")), Failure: list(put("k"))})
	s.all()
}

func tellAtomic(s *teller) {
	s.puts("k=1", "k=2", "k=3")
	s.compact(2)
	dead := putOp(&pb.PutRequest{Key: []byte("lost"), Lease: 999})
	blind := putOp(&pb.PutRequest{Key: []byte("none"), IgnoreValue: true})
	s.txn("on a dead lease", &pb.TxnRequest{Success: list(put("k"), dead)})
	s.txn("whose other branch is on a dead lease", &pb.TxnRequest{Success: list(put("k")), Failure: list(dead)})
	s.txn("in which one is on a dead lease", &pb.TxnRequest{Success: list(put("k"), nest(&pb.TxnRequest{Success: list(dead)}))})
	s.txn("in which the other branch is", &pb.TxnRequest{Success: list(put("k"), nest(&pb.TxnRequest{Failure: list(dead)}))})
	s.txn("that keeps a value that is not there", &pb.TxnRequest{Success: list(put("k"), blind)})
	s.txn("that keeps a value that it puts", &pb.TxnRequest{Success: list(nest(&pb.TxnRequest{Success: list(put("new"))}), putOp(&pb.PutRequest{Key: []byte("new2"), IgnoreLease: true}))})
	s.txn("that looks back too far", &pb.TxnRequest{Success: list(put("k"), op(clientv3.OpGet("k", clientv3.WithRev(s.base+1))))})
	s.txn("that looks at its own revision", &pb.TxnRequest{Success: list(put("k"), op(clientv3.OpGet("k", clientv3.WithRev(s.base+6))))})
	s.all()
}

func tellCompaction(s *teller) {
	s.puts("k=1", "j=1", "k=2")
	s.del(&pb.DeleteRangeRequest{Key: []byte("j")})
	s.puts("k=3", "j=2")
	s.compact(4)
	s.compact(4)
	s.compact(3)
	s.compact(7)
	for rev := int64(2); rev <= 6; rev++ {
		s.get(&pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), Revision: rev})
		s.get(&pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("z"), Revision: rev, CountOnly: true})
	}
	s.txn("below", &pb.TxnRequest{Success: list(op(clientv3.OpGet("k", clientv3.WithRev(s.base+3))))})
	// A watch from each revision, on a stream of its own: what is told first is not a matter of order then.
	for rev := int64(3); rev <= 6; rev++ {
		w := s.watch()
		w.create(&pb.WatchCreateRequest{Key: []byte("a"), RangeEnd: []byte("z"), StartRevision: rev, PrevKv: true})
		w.hears(2)
		w.cancel()
	}
	// The client confirms a cancelled watch, and asks for progress.
	w := s.watch()
	defer w.cancel()
	w.create(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 1})
	w.hears(2)
	w.cancelWatch(0)
	w.hears(1)
	w.create(&pb.WatchCreateRequest{Key: []byte("k")})
	w.hears(1)
	s.puts("k=4")
	s.compact(7)
	s.all()
	w.hears(1)
}

func tellAttach(s *teller) {
	s.grant(901, 100)
	s.grant(902, 100)
	show := func() {
		s.timeToLive(901)
		s.timeToLive(902)
	}
	s.put(&pb.PutRequest{Key: []byte("a"), Lease: 901})
	s.put(&pb.PutRequest{Key: []byte("b"), Lease: 901})
	show()
	s.put(&pb.PutRequest{Key: []byte("a"), Lease: 902})
	show()
	s.put(&pb.PutRequest{Key: []byte("a"), Value: []byte("v"), IgnoreLease: true})
	show()
	s.puts("b=")
	show()
	s.txn("that moves one", &pb.TxnRequest{Success: list(putOp(&pb.PutRequest{Key: []byte("b"), Lease: 901}), del("a"))})
	show()
	s.revoke(902)
	s.puts("a=")
	s.revoke(901)
	s.all()
}

func tellWatch(s *teller) {
	watches := []*pb.WatchCreateRequest{
		{Key: []byte("k"), PrevKv: true},
		{Key: []byte("k"), Filters: list(pb.WatchCreateRequest_NOPUT)},
		{Key: []byte("k"), Filters: list(pb.WatchCreateRequest_NODELETE), PrevKv: true},
		{Key: []byte("k"), Filters: list(pb.WatchCreateRequest_NODELETE, pb.WatchCreateRequest_NOPUT)},
		{Key: []byte("a"), RangeEnd: []byte("z")},
		{Key: []byte("l"), RangeEnd: []byte{0}, WatchId: 77},
		{RangeEnd: []byte{0}, PrevKv: true},
		{Key: []byte("k"), StartRevision: 4, PrevKv: true},
	}
	// One stream each, so that the order of the watches does not matter.
	streams := []*watching{}
	for _, r := range watches {
		w := s.watch()
		defer w.cancel()
		w.create(r)
		w.hears(1)
		streams = append(streams, w)
	}
	s.puts("k=1", "k=2")
	s.txn("of many", &pb.TxnRequest{Success: list(put("m"), del("k"), put("l"), put("b"))})
	s.puts("k=3")
	s.txn("of none", &pb.TxnRequest{Success: list(get("k"))})
	s.txn("of a delete and a put", &pb.TxnRequest{Success: list(del("k"), put("y"))})
	for i, n := range []int{5, 2, 3, 0, 5, 2, 5, 2} {
		streams[i].hears(n)
	}
	// Nothing is left that was not told: the next thing heard is that the watch is cancelled.
	for i, w := range streams {
		w.cancelWatch(watches[i].WatchId)
		w.hears(1)
	}
}

func tellReplay(s *teller) {
	s.puts("k=1", "k=2", "j=1")
	s.del(&pb.DeleteRangeRequest{Key: []byte("k")})
	s.txn("of two", &pb.TxnRequest{Success: list(put("k"), put("i"))})
	for _, r := range []*pb.WatchCreateRequest{
		{Key: []byte("k"), StartRevision: 1},
		{Key: []byte("k"), StartRevision: 1, PrevKv: true},
		{Key: []byte("k"), StartRevision: 2, Filters: list(pb.WatchCreateRequest_NOPUT), PrevKv: true},
		{Key: []byte("a"), RangeEnd: []byte("z"), StartRevision: 3},
		{Key: []byte("k"), StartRevision: 5},
		{Key: []byte{0}, RangeEnd: []byte{0}, StartRevision: 4, Filters: list(pb.WatchCreateRequest_NODELETE)},
	} {
		w := s.watch()
		w.create(r)
		w.hears(2)
		w.cancel()
	}
	// What happened is told before what happens.
	w := s.watch()
	defer w.cancel()
	w.create(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 4})
	w.hears(2)
	s.puts("k=6")
	w.hears(1)
	w.create(&pb.WatchCreateRequest{Key: []byte("j"), StartRevision: 4})
	w.hears(1)
	s.puts("j=7")
	w.hears(1)
}

func tellProgress(s *teller) {
	w := s.watch()
	defer w.cancel()
	w.progress() // there is no watch yet: no answer
	w.create(&pb.WatchCreateRequest{Key: []byte("k")})
	w.hears(1)
	w.progress()
	w.hears(1)
	s.puts("other=1")
	w.progress()
	w.hears(1)
	w.create(&pb.WatchCreateRequest{Key: []byte("k"), StartRevision: 3})
	w.hears(1)
	w.progress() // one of them starts later: no answer
	s.puts("k=1")
	w.hears(1)
	w.cancelWatch(0)
	w.hears(1)
	s.puts("k=2")
	w.hears(1)
	w.cancelWatch(0) // there is none such: no answer
	w.progress()
	w.hears(1)
	s.all()
}
