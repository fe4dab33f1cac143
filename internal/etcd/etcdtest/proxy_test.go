package etcdtest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// echo answers each line with itself.
func echo(t *testing.T) string {
	t.Helper()
	return listen(t, func(c net.Conn) { _, _ = io.Copy(c, c) })
}

type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, address string) conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return conn{c, bufio.NewReader(c)}
}

func (c conn) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (c conn) hears(t *testing.T, want string) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	if got, err := c.r.ReadString('\n'); got != want+"\n" {
		t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

func (c conn) hearsNothing(t *testing.T) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got, err := c.r.ReadString('\n'); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %q, %v, want silence", got, err)
	}
}

func (c conn) isReset(t *testing.T) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	if got, err := c.r.ReadString('\n'); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("got %q, %v, want a reset", got, err)
	}
}

// turnsAway says that whoever connects to address is reset, at once or soon.
func turnsAway(t *testing.T, address string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if errors.Is(err, syscall.ECONNRESET) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	conn{c, bufio.NewReader(c)}.isReset(t)
}

func TestProxyRelays(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t))
	c := dial(t, p.Addr())
	c.say(t, "a")
	c.hears(t, "a")
	if p.Open() != 1 {
		t.Fatalf("%d connections", p.Open())
	}
}

func TestProxyBlackholeHoldsEverythingUntilRevive(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t))
	old := dial(t, p.Addr())
	old.say(t, "a")
	old.hears(t, "a")
	p.Blackhole()
	fresh := dial(t, p.Addr())
	old.say(t, "b")
	fresh.say(t, "c")
	old.hearsNothing(t)
	fresh.hearsNothing(t)
	p.Revive()
	old.hears(t, "b")
	fresh.hears(t, "c")
}

func TestProxyCutResetsOldAndNewConnections(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, echo(t))
	old := dial(t, p.Addr())
	old.say(t, "a")
	old.hears(t, "a")
	p.Cut()
	old.isReset(t)
	turnsAway(t, p.Addr())
	p.Revive()
	c := dial(t, p.Addr())
	c.say(t, "b")
	c.hears(t, "b")
	p.Reset()
	c.isReset(t)
}

func TestProxyDelayIsPaidInEachDirection(t *testing.T) {
	t.Parallel()
	const d = 50 * time.Millisecond
	p := NewProxy(t, echo(t))
	p.Delay(d)
	c := dial(t, p.Addr())
	start := time.Now()
	c.say(t, "a")
	c.hears(t, "a")
	if took := time.Since(start); took < 2*d {
		t.Fatalf("there and back in %v", took)
	}
}

func TestProxyDropRepliesLetsRequestsThrough(t *testing.T) {
	t.Parallel()
	heard := make(chan string, 1)
	target := listen(t, func(c net.Conn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, line)
		heard <- line
		_, _ = io.Copy(io.Discard, c)
	})
	p := NewProxy(t, target)
	p.DropReplies()
	c := dial(t, p.Addr())
	c.say(t, "a")
	if got := <-heard; got != "a\n" {
		t.Fatalf("the target heard %q", got)
	}
	c.hearsNothing(t)
	p.Revive()
	c.isReset(t)
}

func TestProxyWithoutATargetResets(t *testing.T) {
	t.Parallel()
	turnsAway(t, NewProxy(t, Refused(t)).Addr())
	turnsAway(t, NewProxy(t, "unix:///nonexistent/socket").Addr())
}

func TestProxyInFrontOfEtcdLosesOnlyTheReply(t *testing.T) {
	t.Parallel()
	s := Shared(t)
	direct, key := s.Client(t), Prefix(t)+"k"
	p := NewProxy(t, s.Endpoint())
	c := Client(t, p.Addr())
	put(t, c, key, "1")
	p.DropReplies()
	if _, err := c.Put(briefly(t), key, "2"); err == nil {
		t.Fatal("the reply came")
	}
	if got := get(t, direct, key); got != "2" {
		t.Fatalf("%q was committed", got)
	}
	p.Revive()
	// A call may still meet the connection that is being reset; a later one finds a new connection.
	var err error
	for range 20 {
		if _, err = c.Put(within(t), key, "3"); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func TestPeersThatAreNotEtcd(t *testing.T) {
	t.Parallel()
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		c := dial(t, Silent(t))
		c.say(t, "a")
		c.hearsNothing(t)
	})
	t.Run("not gRPC", func(t *testing.T) {
		t.Parallel()
		c := dial(t, NotGRPC(t))
		c.say(t, "a")
		c.hears(t, "HTTP/1.1 400 Bad Request\r")
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		if _, err := net.Dial("tcp", Refused(t)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("got %v", err)
		}
	})
}
