package etcdtest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/go-coord/coord/internal/etcd/embed"
)

// limit bounds every wait for something that takes a second at most. It is reached only when that never
// comes.
const limit = time.Minute

// Server is a lone member inside the test process.
type Server struct {
	t       testing.TB
	config  embed.Config
	running *embed.Member
	ca      *CA  // where it is secured
	pair    Pair // of the client root, where clients have to show one
}

// One starts a member for this test alone.
func One(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, config: embed.Config{Dir: tempDir(t), Listen: reserve(t), Name: "one", Unsynced: true}}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Endpoint is where the member serves, or did before Stop.
func (s *Server) Endpoint() string {
	if s.ca != nil {
		return "https://" + s.config.Listen
	}
	return s.config.Listen
}

// Endpoints is Endpoint, as a list.
func (s *Server) Endpoints() []string { return []string{s.Endpoint()} }

// Client gives a client of the member that is closed when t ends.
func (s *Server) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	return Client(t, s.config.Listen)
}

// Stop ends the member: connections break and new ones are refused. It does nothing when there is none.
func (s *Server) Stop() {
	if s.running != nil {
		s.running.Close()
		s.running = nil
	}
}

// Start starts the member again, at the same endpoint, with its data.
func (s *Server) Start() {
	s.t.Helper()
	if s.running != nil {
		return
	}
	// Not the test's context: that ends before the cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	m, err := start(ctx, s.config)
	if err != nil {
		s.t.Fatalf("etcdtest: %v", err)
	}
	s.running = m
}

// start starts a member on a reserved port. Nobody else gets that; but what was forked while a member before it listened
// has its listener, too, until its exec.
func start(ctx context.Context, c embed.Config) (*embed.Member, error) {
	for {
		m, err := embed.Start(ctx, c)
		if !errors.Is(err, syscall.EADDRINUSE) || ctx.Err() != nil {
			return m, err
		}
		time.Sleep(time.Millisecond) // nobody tells when a port is free
	}
}

// shared is the one member that all tests of this process may use. It is the package's only state: a
// process-wide thing has to be found from every test.
var shared struct {
	sync.Mutex
	member  *embed.Member
	dir     string
	address string
	release func()
}

// Shared gives a member that all tests of this process share, started at its first use. Tests keep apart
// by Office and Prefix, and must not Stop it. Main ends it; a TestMain of one's own calls CloseShared.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.member == nil {
		if err := startShared(); err != nil {
			t.Fatalf("etcdtest: %v", err)
		}
	}
	return &Server{t: t, config: embed.Config{Listen: shared.address}}
}

func startShared() error {
	dir, err := os.MkdirTemp("", "etcdtest")
	if err != nil {
		return err
	}
	address, release, err := reservePort()
	if err != nil {
		os.RemoveAll(dir)
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	m, err := start(ctx, embed.Config{Dir: dir, Listen: address, Name: "shared", Unsynced: true})
	if err != nil {
		release()
		os.RemoveAll(dir)
		return err
	}
	shared.member, shared.dir, shared.address, shared.release = m, dir, address, release
	return nil
}

// CloseShared ends the Shared member, if there is one.
func CloseShared() {
	shared.Lock()
	defer shared.Unlock()
	if shared.member == nil {
		return
	}
	shared.member.Close()
	shared.release()
	os.RemoveAll(shared.dir)
	shared.member = nil
}

// Client gives a client of the endpoints that is closed when t ends. It logs nothing, and notices within
// some 12 s that a server is frozen.
func Client(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		Logger:               zap.NewNop(),
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 2 * time.Second,
	})
	if err != nil {
		t.Fatalf("etcdtest: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Office gives a valid name that no other test has.
func Office(t testing.TB) string {
	t.Helper()
	return "t-" + strings.ToLower(rand.Text())
}

// Prefix gives a key prefix that no other test has. It ends with a slash.
func Prefix(t testing.TB) string {
	t.Helper()
	return "/test/" + strings.ToLower(rand.Text()) + "/"
}

// tempDir is a directory with a short path, as sockets need one, that is gone when t ends.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "etcdtest")
	if err != nil {
		t.Fatalf("etcdtest: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
