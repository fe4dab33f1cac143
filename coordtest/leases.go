package coordtest

import (
	"context"
	"errors"
	"io"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// leaseServer is the Lease service of one member.
type leaseServer struct {
	pb.UnimplementedLeaseServer
	*member
}

func (sv *leaseServer) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	return serve(sv.member, ctx, Grant, r, func(ctx context.Context) (*pb.LeaseGrantResponse, error) {
		if sv.m.state.full() {
			return nil, rpctypes.ErrGRPCNoSpace
		}
		if err := sv.awaitQuorum(ctx); err != nil {
			return nil, err
		}
		s := sv.m.store
		s.lock()
		defer s.unlock()
		l, err := s.grant(r.ID, r.TTL)
		if err != nil {
			return nil, err
		}
		s.dirty = true
		return &pb.LeaseGrantResponse{Header: sv.header(s.rev), ID: l.id, TTL: l.ttl}, nil
	})
}

func (sv *leaseServer) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	return serve(sv.member, ctx, Revoke, r, func(ctx context.Context) (*pb.LeaseRevokeResponse, error) {
		if err := sv.awaitQuorum(ctx); err != nil {
			return nil, err
		}
		s := sv.m.store
		s.lock()
		defer s.unlock()
		if err := s.revoke(r.ID); err != nil {
			return nil, err
		}
		return &pb.LeaseRevokeResponse{Header: sv.header(s.rev)}, nil
	})
}

func (sv *leaseServer) LeaseTimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	return serve(sv.member, ctx, TimeToLive, r, func(ctx context.Context) (*pb.LeaseTimeToLiveResponse, error) {
		if err := sv.awaitQuorum(ctx); err != nil {
			return nil, err
		}
		s := sv.m.store
		s.lock()
		defer s.unlock()
		resp := &pb.LeaseTimeToLiveResponse{Header: sv.header(s.rev), ID: r.ID, TTL: -1}
		if l := s.leases[r.ID]; l != nil {
			resp.TTL, resp.GrantedTTL = int64(s.remaining(l)/time.Second), l.ttl
			if r.Keys {
				for _, k := range l.sortedKeys() {
					resp.Keys = append(resp.Keys, []byte(k))
				}
			}
		}
		return resp, nil
	})
}

func (sv *leaseServer) LeaseLeases(ctx context.Context, r *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	return serve(sv.member, ctx, Leases, r, func(context.Context) (*pb.LeaseLeasesResponse, error) {
		s := sv.m.store
		s.lock()
		defer s.unlock()
		resp := &pb.LeaseLeasesResponse{Header: sv.header(s.rev)}
		for _, l := range s.byEnd() {
			resp.Leases = append(resp.Leases, &pb.LeaseStatus{ID: l.id})
		}
		return resp, nil
	})
}

// LeaseKeepAlive answers one renewal after the other: one that hangs holds up the stream, and an error ends
// it.
func (sv *leaseServer) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	ctx := stream.Context()
	requests := received(sv.member, ctx, stream.Recv)
	for {
		var in arrival[*pb.LeaseKeepAliveRequest]
		select {
		case in = <-requests:
		case <-ctx.Done():
			return ctx.Err()
		}
		if errors.Is(in.err, io.EOF) {
			return nil
		}
		if in.err != nil {
			return in.err
		}
		resp, err := serve(sv.member, ctx, KeepAlive, in.msg, func(ctx context.Context) (*pb.LeaseKeepAliveResponse, error) {
			return sv.renew(ctx, in.msg.ID)
		})
		if err != nil {
			return err
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
}

// renew fills the header before it renews, as etcd does: a renewal may be younger than its header says.
func (sv *leaseServer) renew(ctx context.Context, id int64) (*pb.LeaseKeepAliveResponse, error) {
	s := sv.m.store
	s.lock()
	resp := &pb.LeaseKeepAliveResponse{Header: sv.header(s.rev), ID: id}
	s.unlock()

	// A lease that has ended but is not revoked yet is not found either, once it is revoked.
	for {
		if err := sv.awaitQuorum(ctx); err != nil {
			return nil, err
		}
		gone, ttl := s.renew(id)
		if gone == nil {
			resp.TTL = ttl
			return resp, nil
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// renew gives a lease its full TTL again and returns that; 0 if there is none such. A lease that has ended
// but stands is left alone: then gone is closed when it is revoked.
func (s *store) renew(id int64) (gone <-chan struct{}, ttl int64) {
	s.lock()
	defer s.unlock()
	l := s.leases[id]
	switch {
	case l == nil:
		return nil, 0
	case s.remaining(l) <= 0:
		return l.gone, 0
	}
	s.refresh(l)
	s.dirty = true
	return nil, l.ttl
}

// arrival is what a stream received: a message, or the error that ends it.
type arrival[M any] struct {
	msg M
	err error
}

// received reads a stream in the background, so that its handler can end for other reasons. The reader ends
// with the stream, soon after its handler has returned.
func received[M any](mb *member, ctx context.Context, recv func() (M, error)) <-chan arrival[M] {
	ch := make(chan arrival[M])
	mb.m.late.Go(func() {
		for {
			msg, err := recv()
			select {
			case ch <- arrival[M]{msg, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
	return ch
}
