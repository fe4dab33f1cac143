package coordtest

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// speaking is closed unless the watches are held.
func (c *cluster) speaking() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.speak
}

// HoldWatches makes all watches silent, or lets them speak again: nothing is sent on their streams, not
// even that a watch was created, until HoldWatches(false), when all of it is.
func (m *Medium) HoldWatches(hold bool) {
	c := &m.state
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.speak:
		if hold {
			c.speak = make(chan struct{})
		}
	default:
		if !hold {
			close(c.speak)
		}
	}
}

// EndWatches ends all watch streams with err; nil stands for the Unavailable of a broken connection. The
// client opens them again by itself, unless the error tells it not to.
func (m *Medium) EndWatches(err error) {
	if err == nil {
		err = Unavailable("")
	}
	s := m.store
	s.lock()
	defer s.unlock()
	for ws := range s.streams {
		ws.end(err)
	}
}

// CancelWatches cancels every watch from the server's side, as etcd does when a watch is no longer allowed.
// The client drops the reason and closes the channel without a last response.
func (m *Medium) CancelWatches(reason string) {
	s := m.store
	s.lock()
	defer s.unlock()
	for ws := range s.streams {
		for _, w := range ws.watchers {
			if !w.dead {
				w.dead, s.dirty = true, true
				ws.deliver(w, &pb.WatchResponse{Header: ws.header(s.rev), WatchId: w.id, Canceled: true, CancelReason: reason})
			}
		}
	}
}

// Watches is how many watches are open, counting those that are not announced yet.
func (m *Medium) Watches() int {
	s := m.store
	s.lock()
	defer s.unlock()
	n := 0
	for ws := range s.streams {
		for _, w := range ws.watchers {
			if !w.dead {
				n++
			}
		}
	}
	return n
}
