package etcdtest

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy is a TCP relay in front of an endpoint that misbehaves on request. It starts well behaved.
type Proxy struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup

	mu      sync.Mutex
	mode    mode
	delay   time.Duration
	changed chan struct{} // closed and replaced at each change of mode
	links   map[*link]struct{}
	closed  bool
}

type mode int

const (
	relay mode = iota
	blackhole
	cut
	dropReplies
)

// link is one client connection and its counterpart.
type link struct {
	client, server net.Conn
	lossy          bool // bytes of it were dropped: it can never be whole again
}

// NewProxy starts a proxy in front of target, which is host:port or "unix:" and a path.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("etcdtest: start proxy: %v", err)
	}
	p := &Proxy{target: target, listener: l, changed: make(chan struct{}), links: map[*link]struct{}{}}
	p.work.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Blackhole stops all reading: connections are still accepted, and neither they nor the open ones move a
// byte. Revive lets them go on where they were.
func (p *Proxy) Blackhole() { p.set(blackhole, 0) }

// Cut resets the open connections, and every new one at once, until Revive.
func (p *Proxy) Cut() {
	p.set(cut, 0)
	p.Reset()
}

// Delay makes every byte late by d, in each direction.
func (p *Proxy) Delay(d time.Duration) { p.set(relay, d) }

// DropReplies lets requests through and swallows what comes back.
func (p *Proxy) DropReplies() { p.set(dropReplies, 0) }

// Revive ends every fault. Connections of which replies were dropped are reset: they make no sense any more.
func (p *Proxy) Revive() {
	p.set(relay, 0)
	p.reset(func(l *link) bool { return l.lossy })
}

// Reset resets the open connections. New ones are treated as before.
func (p *Proxy) Reset() { p.reset(func(*link) bool { return true }) }

// Open is the number of connections now.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

func (p *Proxy) set(m mode, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode, p.delay = m, delay
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) reset(which func(*link) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if which(l) {
			l.abort()
		}
	}
}

// abort ends both connections with a reset, not with an orderly close.
func (l *link) abort() {
	for _, c := range []net.Conn{l.client, l.server} {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		c.Close()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(client) })
	}
}

// serve relays one client until either side ends.
func (p *Proxy) serve(client net.Conn) {
	l := &link{client: client}
	// A connection that is cut, or leads nowhere, is reset. The target is dialled in a blackhole too: what
	// a client sees does not depend on it.
	network, address := "tcp", p.target
	if path, ok := strings.CutPrefix(p.target, "unix:"); ok {
		network, address = "unix", "/"+strings.TrimLeft(path, "/")
	}
	server, err := net.Dial(network, address)
	if err != nil {
		server = client
	}
	l.server = server
	if !p.add(l) || err != nil {
		p.remove(l)
		return
	}

	// One end of stream ends both.
	var pumps sync.WaitGroup
	pumps.Go(func() { p.pump(l, l.server, l.client, false); p.abortLink(l) })
	pumps.Go(func() { p.pump(l, l.client, l.server, true); p.abortLink(l) })
	pumps.Wait()
	p.remove(l)
}

// add takes part in resets from now on. It is false when the connection is to be reset at once.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[l] = struct{}{}
	return !p.closed && p.mode != cut
}

func (p *Proxy) abortLink(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.abort()
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.abort()
	delete(p.links, l)
}

// chunk is some bytes and when they are due.
type chunk struct {
	data []byte
	due  time.Time
}

// pump moves bytes from src to dst until one of them ends. What is read waits for its due time in a
// buffer, so that a delay costs no throughput.
func (p *Proxy) pump(l *link, dst, src net.Conn, reply bool) {
	pending := make(chan chunk, 1024)
	var writer sync.WaitGroup
	writer.Go(func() {
		broken := false
		for c := range pending {
			if broken {
				continue
			}
			time.Sleep(time.Until(c.due)) // the delay that was asked for
			if _, err := dst.Write(c.data); err != nil {
				broken = true
				src.Close()
			}
		}
	})
	defer writer.Wait()
	defer close(pending)

	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		delay, keep := p.pass(l, reply, n > 0)
		if n > 0 && keep {
			pending <- chunk{append([]byte(nil), buf[:n]...), time.Now().Add(delay)}
		}
		if err != nil {
			return
		}
	}
}

// pass waits while the proxy is a blackhole and says what to do with bytes that were read.
func (p *Proxy) pass(l *link, reply, data bool) (delay time.Duration, keep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == blackhole && !p.closed {
		changed := p.changed
		p.mu.Unlock()
		<-changed
		p.mu.Lock()
	}
	if p.mode == dropReplies && reply && data {
		l.lossy = true
		return 0, false
	}
	return p.delay, !p.closed
}

// close ends the proxy and waits until nothing of it runs.
func (p *Proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	p.Reset()
	p.work.Wait()
}
