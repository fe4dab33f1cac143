package coordtest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// member is one door to the store: a gRPC server behind a listener in memory.
type member struct {
	m     *Medium
	index int
	id    uint64
	addr  string
	gate  *gate
	srv   *grpc.Server

	accept  chan net.Conn
	closing chan struct{} // the listener is closed
	served  chan struct{} // the server is done
	once    sync.Once

	mu    sync.Mutex
	dead  bool
	conns []*conn // server's ends
}

func newMember(m *Medium, i int) *member {
	mb := &member{
		m: m, index: i,
		id:      0x8e9e05c52164694d + uint64(i),
		addr:    fmt.Sprintf("member%d.coordtest:2379", i),
		gate:    newGate(),
		accept:  make(chan net.Conn),
		closing: make(chan struct{}),
		served:  make(chan struct{}),
	}
	mb.srv = grpc.NewServer(
		grpc.WaitForHandlers(true),
		grpc.MaxConcurrentStreams(1<<31),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}),
		grpc.UnaryInterceptor(m.requireLeaderUnary),
		grpc.StreamInterceptor(m.requireLeaderStream),
	)
	pb.RegisterKVServer(mb.srv, &kvServer{member: mb})
	pb.RegisterLeaseServer(mb.srv, &leaseServer{member: mb})
	pb.RegisterWatchServer(mb.srv, &watchServer{member: mb})
	pb.RegisterMaintenanceServer(mb.srv, &maintenanceServer{member: mb})
	pb.RegisterClusterServer(mb.srv, &clusterServer{member: mb})
	go func() {
		defer close(mb.served)
		_ = mb.srv.Serve(mb) // ends by Stop; there is nothing else that can fail in memory
	}()
	return mb
}

// Accept is the listener's.
func (mb *member) Accept() (net.Conn, error) {
	select {
	case c := <-mb.accept:
		return c, nil
	case <-mb.closing:
		return nil, net.ErrClosed
	}
}

// Close is the listener's.
func (mb *member) Close() error {
	mb.once.Do(func() { close(mb.closing) })
	return nil
}

// Addr is the listener's.
func (mb *member) Addr() net.Addr { return addr(mb.addr) }

// close ends the server. Connections are cut first: it would wait for those that are frozen.
func (mb *member) close() {
	mb.kill()
	mb.srv.Stop()
	<-mb.served
}

// connect is a client's dial.
func (mb *member) connect(ctx context.Context) (net.Conn, error) {
	client, server := newConn(mb.gate)
	mb.mu.Lock()
	if mb.dead {
		mb.mu.Unlock()
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: mb.Addr(), Err: syscall.ECONNREFUSED}
	}
	mb.conns = append(slices.DeleteFunc(mb.conns, (*conn).closed), server)
	mb.mu.Unlock()

	// The server takes it even while the gate is frozen, as a kernel does for a stopped process.
	select {
	case mb.accept <- server:
		return client, nil
	case <-mb.closing:
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: mb.Addr(), Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cut breaks all connections.
func (mb *member) cut() {
	mb.mu.Lock()
	defer mb.mu.Unlock()
	for _, c := range mb.conns {
		c.cut()
	}
	mb.conns = nil
}

func (mb *member) kill() {
	mb.mu.Lock()
	mb.dead = true
	mb.mu.Unlock()
	mb.cut()
	mb.gate.set(false)
}

func (mb *member) revive() {
	mb.mu.Lock()
	defer mb.mu.Unlock()
	mb.dead = false
}

// header is what the member writes above an answer given at rev.
func (mb *member) header(rev int64) *pb.ResponseHeader {
	clusterID, term := mb.m.state.ids()
	return &pb.ResponseHeader{ClusterId: clusterID, MemberId: mb.id, Revision: rev, RaftTerm: term}
}

// MemberID is the id of member i, as it stands in the headers of its answers.
func (m *Medium) MemberID(i int) uint64 { return m.members[i].id }

// dial finds the member with the given address.
func (m *Medium) dial(ctx context.Context, address string) (net.Conn, error) {
	for _, mb := range m.members {
		if mb.addr == address {
			return mb.connect(ctx)
		}
	}
	return nil, &net.DNSError{Err: "no such member", Name: address, IsNotFound: true}
}

// Stop freezes member i as SIGSTOP does: it accepts connections and requests and answers none, until Cont.
// Then it reads what has arrived meanwhile, also requests whose callers gave up long ago, and may commit
// those or not: see Late for certainty. Requests that a rule holds back are inside the member already and
// are not affected.
func (m *Medium) Stop(i int) { m.members[i].gate.set(true) }

// Cont undoes Stop.
func (m *Medium) Cont(i int) { m.members[i].gate.set(false) }

// Kill breaks the connections of member i, with whatever is under way in them, and refuses new ones.
func (m *Medium) Kill(i int) { m.members[i].kill() }

// Revive undoes Kill.
func (m *Medium) Revive(i int) { m.members[i].revive() }

// Disconnect breaks the connections of member i once: the client reconnects.
func (m *Medium) Disconnect(i int) { m.members[i].cut() }
