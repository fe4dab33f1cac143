package coord

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// streamLeases is how many leases share a stream at most: the server renews those of one stream one after the
// other, and what ends a stream ends it for all of them.
const streamLeases = 256

// stream is where the renewals of some leases go. It has one connection at a time, opened by the first
// renewal asked for and given up when a reply is late; the next one goes to another member where there is one.
type stream struct {
	h      *hub
	proves bool
	alone  bool
	leases int // guarded by hub.mu

	mu   sync.Mutex
	conn *conn                  // nil: none is open
	kept map[*Session]time.Time // sessions that the stream renews by itself, and when (keep.go)
	next time.Time              // the first of these, or zero
	tick *time.Timer            // runs for it
}

// conn is one gRPC stream of renewals, and those asked for over it that were not answered yet, in order: the
// server answers in the order of asking. Two goroutines serve it, one that opens and sends, one that receives.
type conn struct {
	st     *stream
	ctx    context.Context
	cancel context.CancelFunc
	more   chan struct{} // asks has something to send

	// Guarded by st.mu.
	asks  []*ask
	sent  int         // so many of asks were sent
	late  *time.Timer // runs for the first of asks
	first time.Time   // when that became the first
}

// ask is one renewal asked for.
type ask struct {
	lease int64
	bound time.Duration // how long a reply may take from when it is the first that is waited for
	done  chan reply    // holds one; nil for a kept session
	kept  *Session
	sent  time.Duration // of a kept session: its clock before this was asked for
}

// reply is what became of an ask.
type reply struct {
	ack *pb.LeaseKeepAliveResponse
	err error
}

var (
	// errLate is what the ask gets whose reply did not come in time.
	errLate = errors.New("no reply in time")
	// errMoved is what the asks behind it get: the stream was given up, which says nothing of their leases.
	errMoved = errors.New("the stream was given up for another lease's sake")
	// errLeft is what asks get of a stream that nobody is on any more.
	errLeft = errors.New("nobody is on the stream")
)

// renew asks for one renewal and waits for what becomes of it, or for the end of ctx.
func (st *stream) renew(ctx context.Context, lease int64, bound time.Duration) (*pb.LeaseKeepAliveResponse, error) {
	a := &ask{lease: lease, bound: bound, done: make(chan reply, 1)}
	st.mu.Lock()
	st.add(a)
	st.mu.Unlock()
	select {
	case got := <-a.done:
		return got.ack, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// add puts a renewal behind those that wait, on the open connection or on a new one (st.mu held).
func (st *stream) add(a *ask) {
	if st.conn == nil {
		c := &conn{st: st, more: make(chan struct{}, 1)}
		c.ctx, c.cancel = context.WithCancel(st.h.ctx)
		c.late = time.AfterFunc(time.Hour, c.judge)
		st.conn = c
		st.h.wg.Go(c.run)
	}
	c := st.conn
	c.asks = append(c.asks, a)
	if len(c.asks) == 1 {
		c.arm()
	}
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// close gives the connection up, if there is one.
func (st *stream) close() {
	st.mu.Lock()
	c := st.conn
	st.tick.Stop()
	st.mu.Unlock()
	if c != nil {
		c.fail(errLeft, errLeft)
	}
}

// arm lets the time of the first ask run from now (st.mu held). A connection that opens late is late too.
func (c *conn) arm() {
	if len(c.asks) > 0 {
		c.first = time.Now()
		c.late.Reset(c.asks[0].bound)
	} else {
		c.late.Stop()
	}
}

// judge gives the connection up if the first ask has waited for too long. A timer that ran for the one before
// it, and comes all the same, finds one that has not.
func (c *conn) judge() {
	c.st.mu.Lock()
	late := len(c.asks) > 0 && time.Since(c.first) >= c.asks[0].bound
	c.st.mu.Unlock()
	if late {
		c.fail(errLate, errMoved)
	}
}

// run opens the gRPC stream and sends what is asked for, until the connection is over.
func (c *conn) run() {
	grpc, err := pb.NewLeaseClient(c.st.h.cli.ActiveConnection()).LeaseKeepAlive(c.ctx)
	if err != nil {
		c.fail(err, err)
		return
	}
	c.st.h.wg.Go(func() { c.receive(grpc) })
	for {
		select {
		case <-c.more:
		case <-c.ctx.Done():
			return
		}
		for _, a := range c.unsent() {
			_ = grpc.Send(&pb.LeaseKeepAliveRequest{ID: a.lease}) // where it fails, Recv says why
		}
	}
}

// unsent takes what is to be sent.
func (c *conn) unsent() []*ask {
	c.st.mu.Lock()
	defer c.st.mu.Unlock()
	out := append([]*ask(nil), c.asks[c.sent:]...)
	c.sent = len(c.asks)
	return out
}

// receive hands each reply to the first that waits, until the stream ends.
func (c *conn) receive(grpc pb.Lease_LeaseKeepAliveClient) {
	for {
		ack, err := grpc.Recv()
		var first *ask
		if err == nil {
			first, err = c.answer(ack)
		}
		if err != nil {
			c.fail(err, err)
			return
		}
		c.st.tell(first, ack, nil)
	}
}

// answer takes the first ask off, which the reply is for.
func (c *conn) answer(ack *pb.LeaseKeepAliveResponse) (*ask, error) {
	c.st.mu.Lock()
	defer c.st.mu.Unlock()
	if len(c.asks) == 0 || c.asks[0].lease != ack.ID {
		return nil, fmt.Errorf("reply for lease %x, which was not next", ack.ID)
	}
	first := c.asks[0]
	c.asks, c.sent = c.asks[1:], c.sent-1
	c.arm()
	return first, nil
}

// fail gives the connection up: first is what the ask that is waited for gets, rest what those behind it get.
// Only the first call counts.
func (c *conn) fail(first, rest error) {
	c.st.mu.Lock()
	asks := c.asks
	c.asks, c.sent = nil, 0
	if c.st.conn == c {
		c.st.conn = nil
	}
	c.arm()
	c.st.mu.Unlock()
	c.cancel()
	for i, a := range asks {
		if i == 0 {
			c.st.tell(a, nil, first)
		} else {
			c.st.tell(a, nil, rest)
		}
	}
}

// tell gives an ask what became of it.
func (st *stream) tell(a *ask, ack *pb.LeaseKeepAliveResponse, err error) {
	if a.kept != nil {
		st.answered(a, ack, err)
	} else {
		a.done <- reply{ack, err}
	}
}
