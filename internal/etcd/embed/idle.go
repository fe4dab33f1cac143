package embed

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// clients counts the connections of a member and decides when it has been without one for long enough.
//
// Invariant: once idle is closed no call is answered any more, and it is closed only while open is zero.
// So a client that got an answer was counted before the decision, and the time runs from its leaving.
type clients struct {
	grace time.Duration // zero or less: never idle

	mu    sync.Mutex
	open  int
	since time.Time // when open became zero
	ended bool
	timer *time.Timer
	idle  chan struct{}
}

func newClients(grace time.Duration) *clients {
	c := &clients{grace: grace, since: time.Now(), idle: make(chan struct{})}
	if grace > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timer = time.AfterFunc(grace, c.expire)
	}
	return c
}

// options hooks c into the member's gRPC server.
func (c *clients) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.StatsHandler(c), grpc.InTapHandle(c.admit)}
}

// admit refuses calls once the member is about to end.
func (c *clients) admit(ctx context.Context, _ *tap.Info) (context.Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, status.Error(codes.Unavailable, "the member is about to end")
	}
	return ctx, nil
}

// HandleConn counts connections.
func (c *clients) HandleConn(_ context.Context, s stats.ConnStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		c.open++
	case *stats.ConnEnd:
		c.open--
		c.since = time.Now()
		if c.open == 0 && c.timer != nil {
			c.timer.Reset(c.grace)
		}
	}
}

// expire runs when the timer fires. It may fire although a client has come, or come and gone, since.
func (c *clients) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open > 0 || c.ended || time.Since(c.since) < c.grace {
		return
	}
	c.ended = true
	close(c.idle)
}

// end stops the counting and refuses all further calls; for a member that ends for another reason.
func (c *clients) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.timer != nil {
		c.timer.Stop()
	}
}

// The rest of the interface says nothing of interest here.

func (c *clients) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (c *clients) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (c *clients) HandleRPC(context.Context, stats.RPCStats)                         {}
