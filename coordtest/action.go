package coordtest

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Action is what happens to a call: it returns the reply or the error that the caller gets, and commits
// the call or does not. An error that ends a KeepAlive or a Watch call ends its stream.
type Action func(*Call) (proto.Message, error)

// Refuse answers with err and commits nothing. Errors of package rpctypes (the ErrGRPC ones) arrive as
// etcd's own; the client retries reads that are refused with code Unavailable.
func Refuse(err error) Action {
	return func(*Call) (proto.Message, error) { return nil, err }
}

// LoseRequest commits nothing, and the caller hears nothing until it gives up.
func LoseRequest() Action {
	return func(c *Call) (proto.Message, error) { return nil, c.silence() }
}

// LoseReply commits, and then answers with err, or with nothing until the caller gives up if err is nil.
// What a broken connection gives is Unavailable("").
func LoseReply(err error) Action {
	return func(c *Call) (proto.Message, error) {
		if _, failed := c.Commit(c.Context); failed != nil {
			return nil, failed
		}
		if err != nil {
			return nil, err
		}
		return nil, c.silence()
	}
}

// Late is a request that is delayed under way until release is closed or yields. If the caller has given up
// by then, it is committed all the same and nobody hears of it. It is dropped when the Medium is closed.
func Late(release <-chan struct{}) Action {
	return func(c *Call) (proto.Message, error) {
		select {
		case <-release:
			return c.Commit(c.Context)
		case <-c.Context.Done():
		}
		c.outlive(func(ctx context.Context) bool {
			select {
			case <-release:
				return true
			case <-ctx.Done():
				return false
			}
		})
		return nil, c.Context.Err()
	}
}

// LateBy is Late, released after d.
func LateBy(d time.Duration) Action {
	return func(c *Call) (proto.Message, error) {
		release := make(chan struct{})
		time.AfterFunc(d, func() { close(release) })
		return Late(release)(c)
	}
}

// Delay waits for d and then commits and answers. A caller that gives up first has nothing committed.
func Delay(d time.Duration) Action {
	return func(c *Call) (proto.Message, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return c.Commit(c.Context)
		case <-c.Context.Done():
			return nil, c.Context.Err()
		}
	}
}

// Before runs do, then commits. do may use the Medium and other clients, and may block the call.
func Before(do func()) Action {
	return func(c *Call) (proto.Message, error) {
		do()
		return c.Commit(c.Context)
	}
}

// After commits, runs do, and then lets the reply go.
func After(do func()) Action {
	return func(c *Call) (proto.Message, error) {
		reply, err := c.Commit(c.Context)
		do()
		return reply, err
	}
}

// StaleAck is for KeepAlive: it acknowledges the renewal in the given term without any effect, as a leader
// does that was deposed while it was paused. Term 0 is the one before the current.
func StaleAck(term uint64) Action {
	return func(c *Call) (proto.Message, error) {
		r, ok := c.Request.(*pb.LeaseKeepAliveRequest)
		if !ok {
			return nil, status.Errorf(codes.Internal, "coordtest: StaleAck of %s", c.Method)
		}
		s := c.door.m.store
		s.lock()
		defer s.unlock()
		resp := &pb.LeaseKeepAliveResponse{Header: c.door.header(s.rev), ID: r.ID}
		if l := s.leases[r.ID]; l != nil {
			resp.TTL = l.ttl
		}
		resp.Header.RaftTerm--
		if term != 0 {
			resp.Header.RaftTerm = term
		}
		return resp, nil
	}
}

// Unavailable is the error of a connection that broke or a member that cannot answer. The client retries
// reads on it.
func Unavailable(text string) error { return status.Error(codes.Unavailable, text) }

// silence returns when the caller has given up.
func (c *Call) silence() error {
	<-c.Context.Done()
	return c.Context.Err()
}

// outlive commits the call in the background once wait says so.
func (c *Call) outlive(wait func(context.Context) bool) {
	m := c.door.m
	m.late.Go(func() {
		if wait(m.ctx) {
			_, _ = c.Commit(m.ctx) // nobody is left to hear of it
		}
	})
}
