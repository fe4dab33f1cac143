package etcdtest

import (
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Silent gives an address that accepts connections and never says a word.
func Silent(t testing.TB) string {
	t.Helper()
	return listen(t, func(c net.Conn) {
		_, _ = io.Copy(io.Discard, c) // until the client, or the test, gives up
	})
}

// NotGRPC gives an address where something else than etcd is at home: it answers HTTP/1.1 400 to
// whatever it is told, and hangs up.
func NotGRPC(t testing.TB) string {
	t.Helper()
	return listen(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	})
}

// Untouched gives an address that nobody may contact: whoever does fails the test.
func Untouched(t testing.TB) string {
	t.Helper()
	return listen(t, func(net.Conn) { t.Error("an endpoint was contacted that nobody may contact") })
}

// Refused gives an address that refuses connections, and that nobody else gets, while the test lives: a
// socket that is bound and does not listen.
func Refused(t testing.TB) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatalf("etcdtest: bind: %v", err)
	}
	unix.CloseOnExec(fd)
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatalf("etcdtest: bind: %v", err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatalf("etcdtest: bind: %v", err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*unix.SockaddrInet4).Port))
}

// listen serves each connection with serve until the test ends.
func listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("etcdtest: listen: %v", err)
	}
	var (
		work   sync.WaitGroup
		mu     sync.Mutex
		conns  []net.Conn
		closed bool
	)
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if closed {
				c.Close()
			}
			conns = append(conns, c)
			mu.Unlock()
			work.Go(func() { defer c.Close(); serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		closed = true
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		work.Wait()
	})
	return l.Addr().String()
}
