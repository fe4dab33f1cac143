package coordtest

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/version"
)

// maintenanceServer answers Status and nothing else.
type maintenanceServer struct {
	pb.UnimplementedMaintenanceServer
	*member
}

func (sv *maintenanceServer) Status(ctx context.Context, r *pb.StatusRequest) (*pb.StatusResponse, error) {
	return serve(sv.member, ctx, Status, r, func(context.Context) (*pb.StatusResponse, error) {
		s := sv.m.store
		s.lock()
		h := sv.header(s.rev)
		s.unlock()
		resp := &pb.StatusResponse{Header: h, Version: version.Version, RaftTerm: h.RaftTerm}
		select {
		case <-sv.m.state.leaderless():
			resp.Errors = append(resp.Errors, "etcdserver: no leader")
		default:
			resp.Leader = sv.m.members[sv.m.Leader()].id
		}
		if sv.m.state.full() {
			resp.Errors = append(resp.Errors, fmt.Sprintf("memberID:%d alarm:NOSPACE ", sv.id))
		}
		return resp, nil
	})
}

// clusterServer answers MemberList and nothing else.
type clusterServer struct {
	pb.UnimplementedClusterServer
	*member
}

func (sv *clusterServer) MemberList(ctx context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return serve(sv.member, ctx, MemberList, r, func(ctx context.Context) (*pb.MemberListResponse, error) {
		if r.Linearizable {
			if err := sv.awaitQuorum(ctx); err != nil {
				return nil, err
			}
		}
		resp := &pb.MemberListResponse{Header: sv.header(0)}
		for i, url := range sv.m.Endpoints() {
			resp.Members = append(resp.Members, &pb.Member{ID: sv.m.members[i].id, Name: fmt.Sprintf("member%d", i), ClientURLs: []string{url}})
		}
		return resp, nil
	})
}
