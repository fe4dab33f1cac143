package redistest

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Wire is the way from clients to a server: it can be slow, and lose the answer to a script. Its methods may be called
// from any goroutine.
type Wire struct {
	mu   sync.Mutex
	late time.Duration
	lose bool
}

// Over has a client use the wire: for Server.Client.
func (w *Wire) Over(o *redis.Options) {
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c, wire: w}, nil
	}
}

// Slow makes each answer come d later than it does.
func (w *Wire) Slow(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = d
}

// LoseReply has the next script carried out, and ends its connection instead of an answer.
func (w *Wire) LoseReply() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose = true
}

// take reports whether the answer to a script that is sent now is to be lost.
func (w *Wire) take() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	lose := w.lose
	w.lose = false
	return lose
}

func (w *Wire) delay() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late
}

// conn is one connection. A client uses it from one goroutine at a time.
type conn struct {
	net.Conn
	wire *Wire
	lose bool
}

func (c *conn) Write(b []byte) (int, error) {
	if bytes.Contains(bytes.ToLower(b), []byte("\r\neval")) {
		c.lose = c.wire.take()
	}
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		time.Sleep(c.wire.delay()) // what was asked for
	}
	switch {
	case !c.lose:
	case bytes.HasPrefix(b[:n], []byte("-NOSCRIPT")):
		c.wire.LoseReply() // nothing was carried out: it is sent again in full
	default:
		_ = c.Conn.Close()
		return 0, io.EOF
	}
	return n, err
}
