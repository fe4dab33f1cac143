package embed

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// limit bounds waits for things that happen in milliseconds: reached only when they never happen.
const limit = 30 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func client(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func put(t *testing.T, endpoint, key, value string) {
	t.Helper()
	c := client(t, endpoint)
	defer c.Close()
	if _, err := c.Put(within(t), key, value); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, endpoint, key string) string {
	t.Helper()
	c := client(t, endpoint)
	defer c.Close()
	r, err := c.Get(within(t), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Kvs) == 0 {
		return ""
	}
	return string(r.Kvs[0].Value)
}

func TestMemberServesWhereItIsTold(t *testing.T) {
	t.Parallel()
	for name, listen := range map[string]string{
		"free port":   "",
		"unix socket": "unix:" + filepath.Join(t.TempDir(), "s"),
		"unix url":    "unix://" + filepath.Join(t.TempDir(), "s"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := Start(within(t), Config{Dir: t.TempDir(), Listen: listen, Unsynced: true})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if strings.HasSuffix(m.Endpoint(), ":0") {
				t.Fatalf("endpoint %s is not a real one", m.Endpoint())
			}
			put(t, m.Endpoint(), "a", "b")

			// What it advertises is where it is.
			l, err := client(t, m.Endpoint()).MemberList(within(t))
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Members[0].ClientURLs[0]; !strings.HasSuffix(got, m.Endpoint()) {
				t.Fatalf("advertises %s, serves %s", got, m.Endpoint())
			}
		})
	}
}

func TestMemberKeepsItsDataAndRevision(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, want := range []string{"", "1", "2"} {
		m, err := Start(within(t), Config{Dir: dir, Unsynced: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := get(t, m.Endpoint(), "n"); got != want {
			t.Errorf("n = %q, want %q", got, want)
		}
		put(t, m.Endpoint(), "n", map[string]string{"": "1", "1": "2"}[want])
		m.Close()
		m.Close()
	}
}

func TestMemberClosesUnderAnOpenWatch(t *testing.T) {
	t.Parallel()
	m, err := Start(within(t), Config{Dir: t.TempDir(), Unsynced: true})
	if err != nil {
		t.Fatal(err)
	}
	<-client(t, m.Endpoint()).Watch(within(t), "a", clientv3.WithCreatedNotify())
	m.Close()
	if err := Probe(within(t), m.Endpoint()); err == nil {
		t.Fatal("a closed member answers")
	}
}

func TestMemberWithoutQuorumIsNotReady(t *testing.T) {
	t.Chdir(t.TempDir()) // a peer's socket has no directory in its URL
	m, err := Launch(Config{Dir: "data", Name: "a", Cluster: "a=unix://a:1,b=unix://b:1", Peer: "unix://a:1", Unsynced: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := m.Ready(ctx); !errors.Is(err, ErrNoLeader) {
		t.Fatalf("got %v, want ErrNoLeader", err)
	}
}

func TestMemberRefuses(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for name, c := range map[string]Config{
		"no directory":              {},
		"a directory below a file":  {Dir: "/dev/null/x"},
		"a taken port":              {Dir: t.TempDir(), Listen: taken.Addr().String()},
		"a path too long":           {Dir: t.TempDir(), Listen: "unix:/" + strings.Repeat("x", 107)},
		"an address without a port": {Dir: t.TempDir(), Listen: "127.0.0.1"},
		"a peer that is no URL":     {Dir: t.TempDir(), Peer: "%"},
		"a foreign host":            {Dir: t.TempDir(), Listen: "192.0.2.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := Start(within(t), c)
			if err == nil {
				m.Close()
				t.Fatal("started")
			}
		})
	}
}
