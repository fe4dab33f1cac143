package coordtest

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// cluster is what the members would agree on by raft: who leads, in which term, and whether there is a
// quorum.
type cluster struct {
	mu        sync.Mutex
	clusterID uint64
	term      uint64
	leader    int
	noSpace   bool
	quorum    chan struct{} // closed while there is a quorum
	headless  chan struct{} // closed when streams that require a leader have to end
	timer     *time.Timer   // closes headless some time after the quorum was lost
	ended     bool          // headless is closed
	speak     chan struct{} // closed unless the watches are held
}

func (c *cluster) init(o Options) {
	c.clusterID = o.ClusterID
	c.term = 2 // as a new etcd has it: the election of its first leader took one
	c.quorum = make(chan struct{})
	close(c.quorum)
	c.headless = make(chan struct{})
	c.speak = make(chan struct{})
	close(c.speak)
}

func (c *cluster) ids() (clusterID, term uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clusterID, c.term
}

func (c *cluster) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.noSpace
}

// lose takes the quorum away; after a while there is no leader either. It tells whether that is news.
func (c *cluster) lose(after time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		return false
	}
	c.quorum = make(chan struct{})
	c.timer = time.AfterFunc(after, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.timer != nil && !c.ended {
			c.ended = true
			close(c.headless)
		}
	})
	return true
}

// regain gives the quorum back: a new term begins. It tells whether that is news.
func (c *cluster) regain() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil {
		return false
	}
	c.timer.Stop()
	c.timer = nil
	if c.ended {
		c.ended = false
		c.headless = make(chan struct{})
	}
	c.term++
	close(c.quorum)
	return true
}

// stop ends the timer for good.
func (c *cluster) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
}

// leaderless is closed once there is no leader to be found.
func (c *cluster) leaderless() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headless
}

// awaitQuorum returns when there is one. A call that gave up meanwhile is never committed.
func (c *cluster) awaitQuorum(ctx context.Context, timeout time.Duration) error {
	c.mu.Lock()
	quorum := c.quorum
	c.mu.Unlock()
	select {
	case <-quorum:
		return ctx.Err()
	default:
	}

	// No timeout means a channel that never yields.
	var timedOut <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		timedOut = t.C
	}
	select {
	case <-quorum:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	case <-timedOut:
		return rpctypes.ErrGRPCTimeout
	}
}

// NoQuorum takes the quorum away, or gives it back. Without it, linearizable reads, writes, grants,
// revokes, renewals and time-to-live requests hang until their callers give up (see also
// Options.RequestTimeout), and what hung when its caller gave up is not committed later: see Late for that.
// Serializable reads, transactions of nothing but compares, watches and Status are answered. No lease ends.
// After Options.NoLeaderAfter, calls and streams that require a leader end with "etcdserver: no leader".
//
// When the quorum is back, a new term has begun and all leases start over with their full TTL, as they do
// with every new leader.
func (m *Medium) NoQuorum(lost bool) {
	if lost {
		if m.state.lose(m.opts.NoLeaderAfter) {
			m.store.pause(true)
		}
		return
	}
	if m.state.regain() {
		m.store.pause(false)
	}
}

// Term is the raft term in the headers. A new Medium is in term 2.
func (m *Medium) Term() uint64 {
	_, term := m.state.ids()
	return term
}

// SetTerm sets the raft term and does nothing else.
func (m *Medium) SetTerm(n uint64) {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	m.state.term = n
}

// Leader is the index of the leading member, as Status tells it. At first it is 0.
func (m *Medium) Leader() int {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	return m.state.leader
}

// MoveLeader makes member i the leader: the term rises by one and all leases start over with their full
// TTL. Connections stay.
func (m *Medium) MoveLeader(i int) {
	m.state.mu.Lock()
	m.state.leader = i
	m.state.term++
	m.state.mu.Unlock()
	m.store.rearm()
}

// Restart breaks the connections of all members, raises the term by one and lets all leases start over
// with their full TTL. Members that were killed stay so.
func (m *Medium) Restart() {
	for _, mb := range m.members {
		mb.cut()
	}
	m.MoveLeader(m.Leader())
}

// SetClusterID changes the cluster id in the headers, as a restore from a snapshot may.
func (m *Medium) SetClusterID(id uint64) {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	m.state.clusterID = id
}

// NoSpace turns the NOSPACE alarm on or off: while it is on, Grant, Put and every Txn that holds a put in
// any of its branches, executed or not, are refused with "etcdserver: mvcc: database space exceeded".
// Renewals, deletes, revokes and other transactions work.
func (m *Medium) NoSpace(on bool) {
	m.state.mu.Lock()
	defer m.state.mu.Unlock()
	m.state.noSpace = on
}

// requireLeaderUnary refuses calls that require a leader while there is none.
func (m *Medium) requireLeaderUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if requiresLeader(ctx) {
		select {
		case <-m.state.leaderless():
			return nil, rpctypes.ErrGRPCNoLeader
		default:
		}
	}
	return next(ctx, req)
}

// requireLeaderStream ends streams that require a leader when there is none.
func (m *Medium) requireLeaderStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if !requiresLeader(ss.Context()) {
		return next(srv, ss)
	}
	leaderless := m.state.leaderless()
	ctx, cancel := context.WithCancelCause(ss.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-leaderless:
			cancel(rpctypes.ErrGRPCNoLeader)
		case <-ctx.Done():
		}
	}()
	err := next(srv, streamWithContext{ss, ctx})
	cancel(nil)
	<-done
	if context.Cause(ctx) == rpctypes.ErrGRPCNoLeader {
		return rpctypes.ErrGRPCNoLeader
	}
	return err
}

func requiresLeader(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	v := md.Get(rpctypes.MetadataRequireLeaderKey)
	return len(v) > 0 && v[0] == rpctypes.MetadataHasLeader
}

// streamWithContext is a stream whose handler is told to end by another context.
type streamWithContext struct {
	grpc.ServerStream
	ctx context.Context
}

func (s streamWithContext) Context() context.Context { return s.ctx }
