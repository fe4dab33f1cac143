package coordtest

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// gate is what stands between a member and all of its connections: while it is frozen, bytes are accepted
// and kept, and nobody reads them.
type gate struct {
	mu     sync.Mutex
	cond   *sync.Cond // one for all: connections are few
	frozen bool
}

func newGate() *gate {
	g := &gate{}
	g.cond = sync.NewCond(&g.mu)
	return g
}

func (g *gate) set(frozen bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.frozen = frozen
	g.cond.Broadcast()
}

// half is one direction of a connection: a queue of bytes without a bound, guarded by the gate's lock.
type half struct {
	gate     *gate
	buf      []byte
	closed   bool // no more bytes will come; those that are here may still be read
	broken   bool // nothing can be read or written any more
	deadline time.Time
	timer    *time.Timer
}

func (h *half) read(b []byte) (int, error) {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	for {
		switch {
		case h.broken:
			return 0, io.EOF
		case h.expired():
			return 0, os.ErrDeadlineExceeded
		case h.gate.frozen: // wait
		case len(h.buf) > 0:
			n := copy(b, h.buf)
			h.buf = h.buf[n:]
			return n, nil
		case h.closed:
			return 0, io.EOF
		}
		h.gate.cond.Wait()
	}
}

func (h *half) write(b []byte) (int, error) {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	if h.broken || h.closed {
		return 0, io.ErrClosedPipe
	}
	h.buf = append(h.buf, b...)
	h.gate.cond.Broadcast()
	return len(b), nil
}

// finish ends the direction: at once, or when what is in it has been read.
func (h *half) finish(atOnce bool) {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	h.closed = true
	h.broken = h.broken || atOnce
	if h.timer != nil {
		h.timer.Stop()
	}
	h.gate.cond.Broadcast()
}

func (h *half) expired() bool {
	return !h.deadline.IsZero() && !time.Now().Before(h.deadline)
}

// setDeadline bounds reads. Writes never block.
func (h *half) setDeadline(t time.Time) {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	h.deadline = t
	if !t.IsZero() && !h.closed {
		h.timer = time.AfterFunc(time.Until(t), h.wake)
	}
	h.gate.cond.Broadcast()
}

func (h *half) wake() {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	h.gate.cond.Broadcast()
}

// conn is one end of a connection in memory.
type conn struct{ in, out *half }

// newConn makes a connection through g: its two ends.
func newConn(g *gate) (client, server *conn) {
	up, down := &half{gate: g}, &half{gate: g}
	return &conn{in: down, out: up}, &conn{in: up, out: down}
}

func (c *conn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *conn) Write(b []byte) (int, error) { return c.out.write(b) }

// Close leaves the other end what was written before.
func (c *conn) Close() error {
	c.in.finish(true)
	c.out.finish(false)
	return nil
}

// cut breaks both directions at once, as the death of a process does.
func (c *conn) cut() {
	c.in.finish(true)
	c.out.finish(true)
}

// closed tells whether this end was closed or cut.
func (c *conn) closed() bool {
	c.in.gate.mu.Lock()
	defer c.in.gate.mu.Unlock()
	return c.in.broken
}

func (c *conn) LocalAddr() net.Addr  { return addr("coordtest") }
func (c *conn) RemoteAddr() net.Addr { return addr("coordtest") }

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(t)
	return nil
}

func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// addr names an end of a connection in memory.
type addr string

func (a addr) Network() string { return "memory" }
func (a addr) String() string  { return string(a) }
