package coordtest

import (
	"fmt"
	"math/rand/v2"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// gossip makes requests at random, the same ones for the same seed.
type gossip struct {
	*rand.Rand
	base, rev int64 // the revisions of the story go from base to about rev
}

// tellAtRandom asks both for whatever comes to mind. Few keys meet often, and so few that etcd sorts equal
// ones stably.
func tellAtRandom(seed uint64) func(*teller) {
	return func(s *teller) {
		g := &gossip{Rand: rand.New(rand.NewPCG(seed, 0)), base: s.base}
		// Reads may not look at what the story before left behind.
		s.puts("a=", "b=", "c=")
		s.compact(2)
		w := s.watch()
		defer w.cancel()
		w.create(&pb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}, PrevKv: true})
		w.hears(1)
		for range 250 {
			g.rev++
			switch g.IntN(10) {
			case 0, 1:
				s.put(g.put())
			case 2:
				s.del(g.delete())
			case 3:
				s.grant(g.lease(), 1000)
			case 4:
				if g.IntN(2) == 0 {
					s.revoke(g.lease())
				}
			case 5:
				s.timeToLive(g.lease())
			case 6:
				s.get(g.get())
			default:
				s.txn("at random", g.txn(2))
			}
		}
		s.all()
		s.put(&pb.PutRequest{Key: []byte("the end")})
		w.hearsOf("the end")
	}
}

func (g *gossip) key() []byte { return []byte{byte('a' + g.IntN(6))} }

func (g *gossip) value() []byte { return fmt.Appendf(nil, "%d", g.IntN(3)) }

func (g *gossip) lease() int64 { return int64(g.IntN(4)) + 1001 }

// end makes one key, a range that may be empty or upside down, or all keys from one on.
func (g *gossip) end() []byte {
	switch g.IntN(4) {
	case 0:
		return g.key()
	case 1:
		return []byte{0}
	}
	return nil
}

// maybe picks a number near those that matter, or 0.
func (g *gossip) maybe() int64 {
	if g.IntN(3) > 0 {
		return 0
	}
	return 1 + g.Int64N(g.rev+2)
}

func (g *gossip) get() *pb.RangeRequest {
	return &pb.RangeRequest{
		Key: g.key(), RangeEnd: g.end(), Revision: g.maybe(), Limit: int64(g.IntN(4)),
		SortOrder: pb.RangeRequest_SortOrder(g.IntN(3)), SortTarget: pb.RangeRequest_SortTarget(g.IntN(5)),
		KeysOnly: g.IntN(4) == 0, CountOnly: g.IntN(6) == 0, Serializable: g.IntN(2) == 0,
		MinModRevision: g.maybe() / 2, MaxCreateRevision: g.maybe(),
	}
}

func (g *gossip) put() *pb.PutRequest {
	r := &pb.PutRequest{Key: g.key(), Value: g.value(), PrevKv: g.IntN(2) == 0}
	switch g.IntN(6) {
	case 0, 1:
		r.Lease = g.lease()
	case 2:
		r.IgnoreLease = true
	case 3:
		r.Value, r.IgnoreValue = nil, true
	}
	return r
}

func (g *gossip) delete() *pb.DeleteRangeRequest {
	r := &pb.DeleteRangeRequest{Key: g.key(), PrevKv: g.IntN(2) == 0}
	if g.IntN(3) == 0 {
		r.RangeEnd = g.key()
	}
	return r
}

func (g *gossip) compare() *pb.Compare {
	c := &pb.Compare{Key: g.key(), RangeEnd: g.end(), Result: pb.Compare_CompareResult(g.IntN(4)), Target: pb.Compare_CompareTarget(g.IntN(5))}
	switch c.Target {
	case pb.Compare_VERSION:
		c.TargetUnion = &pb.Compare_Version{Version: int64(g.IntN(3))}
	case pb.Compare_CREATE:
		c.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: g.base + g.maybe()}
	case pb.Compare_MOD:
		c.TargetUnion = &pb.Compare_ModRevision{ModRevision: g.base + g.maybe()}
	case pb.Compare_VALUE:
		c.TargetUnion = &pb.Compare_Value{Value: g.value()}
	case pb.Compare_LEASE:
		c.TargetUnion = &pb.Compare_Lease{Lease: g.lease()}
	}
	return c
}

// txn nests up to depth levels. Many are refused, for one reason or another.
func (g *gossip) txn(depth int) *pb.TxnRequest {
	r := &pb.TxnRequest{}
	for range g.IntN(3) {
		r.Compare = append(r.Compare, g.compare())
	}
	for range g.IntN(4) {
		r.Success = append(r.Success, g.op(depth))
	}
	for range g.IntN(4) {
		r.Failure = append(r.Failure, g.op(depth))
	}
	return r
}

func (g *gossip) op(depth int) *pb.RequestOp {
	switch g.IntN(6) {
	case 0, 1:
		p := g.put()
		p.IgnoreLease, p.IgnoreValue = false, false // or hardly any would pass
		return putOp(p)
	case 2:
		return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: g.delete()}}
	case 3:
		if depth > 0 {
			return nest(g.txn(depth - 1))
		}
	}
	r := g.get()
	if r.Revision > 0 {
		r.Revision += g.base
	}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
}
