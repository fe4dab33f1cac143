package embed

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// peer listens and does with each connection what serve says.
func peer(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { defer c.Close(); serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().String()
}

func TestProbe(t *testing.T) {
	t.Parallel()
	m, err := Start(within(t), Config{Dir: t.TempDir(), Unsynced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	silent := peer(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	web := peer(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	closed := peer(t, func(net.Conn) {})

	for _, tt := range []struct {
		what      string
		endpoints []string
		answers   bool
	}{
		{"a member", []string{m.Endpoint()}, true},
		{"a member's URL", []string{"http://" + m.Endpoint()}, true},
		{"nobody asked", nil, false},
		{"a missing socket", []string{"unix:///nonexistent/socket"}, false},
		{"a peer that says nothing", []string{silent}, false},
		{"a web server", []string{web}, false},
		{"a peer that hangs up", []string{closed}, false},
		{"no address at all", []string{"\x00"}, false},
		{"one live endpoint among dead ones", []string{silent, closed, m.Endpoint()}, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			// Whoever never answers is waited for; the others are waited for longer than they need.
			wait := limit
			if len(tt.endpoints) == 1 && !tt.answers {
				wait = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			if got := Answers(ctx, tt.endpoints); got != tt.answers {
				t.Fatalf("answers: %v, want %v", got, tt.answers)
			}
		})
	}
}
