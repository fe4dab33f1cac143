package coordtest

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// watchServer is the Watch service of one member.
type watchServer struct {
	pb.UnimplementedWatchServer
	*member
}

// Watch serves one stream of watches. What is sent on it is queued in one place and sent by one goroutine.
func (sv *watchServer) Watch(stream pb.Watch_WatchServer) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	ws := &watchStream{member: sv.member, end: cancel, wake: make(chan struct{}, 1)}
	s := sv.m.store
	s.mu.Lock()
	s.streams[ws] = struct{}{}
	s.mu.Unlock()

	// The stream is not given back to gRPC before its sender is done with it.
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		ws.send(ctx, stream)
	}()
	err := ws.serve(ctx, received(sv.member, ctx, stream.Recv))
	s.lock()
	delete(s.streams, ws)
	s.dirty = true
	s.unlock()
	cancel(err)
	<-sent
	return err
}

// watchStream is the watches that share a stream.
type watchStream struct {
	*member
	end context.CancelCauseFunc // ends the stream with the given error

	// Guarded by the store's lock.
	watchers []*watcher
	nextID   int64

	mu    sync.Mutex
	queue []*pb.WatchResponse
	wake  chan struct{} // yields after something was queued
}

// serve reads requests until the stream ends.
func (ws *watchStream) serve(ctx context.Context, requests <-chan arrival[*pb.WatchRequest]) error {
	for {
		select {
		case in := <-requests:
			if errors.Is(in.err, io.EOF) {
				requests = nil // the client sends no more and still listens
				continue
			}
			if in.err != nil {
				return in.err
			}
			if err := ws.handle(ctx, in.msg); err != nil {
				return err
			}
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return rpctypes.ErrGRPCWatchCanceled
			}
			return context.Cause(ctx)
		}
	}
}

func (ws *watchStream) handle(ctx context.Context, r *pb.WatchRequest) error {
	switch u := r.RequestUnion.(type) {
	case *pb.WatchRequest_CreateRequest:
		return ws.create(ctx, u.CreateRequest)
	case *pb.WatchRequest_CancelRequest:
		ws.cancelWatch(u.CancelRequest.GetWatchId())
	case *pb.WatchRequest_ProgressRequest:
		ws.tellProgressOfAll()
	}
	return nil
}

// create makes a watch and announces it. Events from the commit on are its own, but none is sent before
// the announcement, and a lost announcement loses them.
func (ws *watchStream) create(ctx context.Context, r *pb.WatchCreateRequest) error {
	var made *watcher
	created, err := serve(ws.member, ctx, Watch, r, func(context.Context) (*pb.WatchResponse, error) {
		s := ws.m.store
		s.lock()
		defer s.unlock()
		w, reason := ws.add(r)
		made = w
		if reason != "" {
			return &pb.WatchResponse{Header: ws.header(s.rev), WatchId: clientv3.InvalidWatchID, Created: true, Canceled: true, CancelReason: reason}, nil
		}
		ws.replay(w)
		return &pb.WatchResponse{Header: ws.header(s.rev), WatchId: w.id, Created: true}, nil
	})
	if err != nil {
		if context.Cause(ctx) != nil {
			return context.Cause(ctx)
		}
		return err
	}
	s := ws.m.store
	s.lock()
	defer s.unlock()
	ws.enqueue(created)
	if made != nil {
		made.held = false
		ws.enqueue(made.kept...)
		made.kept = nil
	}
	return nil
}

// cancelWatch is what the client asks for.
func (ws *watchStream) cancelWatch(id int64) {
	s := ws.m.store
	s.lock()
	defer s.unlock()
	if w := ws.find(id); w != nil {
		ws.watchers = slices.DeleteFunc(ws.watchers, func(o *watcher) bool { return o == w })
		s.dirty = true
		ws.enqueue(&pb.WatchResponse{Header: ws.header(s.rev), WatchId: id, Canceled: true})
	}
}

// tellProgressOfAll answers a request for progress: once for the whole stream, and only if every watch has
// reached the revision that it starts from.
func (ws *watchStream) tellProgressOfAll() {
	s := ws.m.store
	s.lock()
	defer s.unlock()
	for _, w := range ws.watchers {
		if w.dead || s.rev < w.start {
			return
		}
	}
	if len(ws.watchers) > 0 {
		ws.enqueue(&pb.WatchResponse{Header: ws.header(s.rev), WatchId: clientv3.InvalidWatchID})
	}
}

// tellProgress is what happens from time to time: watches that asked for it and heard nothing hear that
// there is nothing.
func (ws *watchStream) tellProgress() {
	s := ws.m.store
	s.lock()
	defer s.unlock()
	for _, w := range ws.watchers {
		if w.progress && w.quiet && !w.dead && s.rev >= w.start {
			ws.deliver(w, &pb.WatchResponse{Header: ws.header(s.rev), WatchId: w.id})
		}
		w.quiet = true
	}
}

func (ws *watchStream) enqueue(rs ...*pb.WatchResponse) {
	ws.mu.Lock()
	ws.queue = append(ws.queue, rs...)
	ws.mu.Unlock()
	select {
	case ws.wake <- struct{}{}:
	default:
	}
}

// send sends what is queued, in order, until the stream ends.
func (ws *watchStream) send(ctx context.Context, stream pb.Watch_WatchServer) {
	progress := time.NewTicker(ws.m.opts.ProgressInterval)
	defer progress.Stop()
	for {
		select {
		case <-ws.wake:
		case <-progress.C:
			ws.tellProgress()
		case <-ctx.Done():
			return
		}
		select {
		case <-ws.m.state.speaking():
		case <-ctx.Done():
			return
		}
		ws.mu.Lock()
		batch := ws.queue
		ws.queue = nil
		ws.mu.Unlock()
		for _, r := range batch {
			if stream.Send(r) != nil {
				return // the stream has ended; so will its context
			}
		}
	}
}
