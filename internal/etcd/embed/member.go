package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
)

// ErrNoLeader is returned when a member runs but found no quorum before the context ended.
var ErrNoLeader = errors.New("embed: member found no quorum")

// Config describes one member. The zero value of every field but Dir means its default.
type Config struct {
	// Dir is the data directory. It is created with mode 0700. A directory with data of an earlier run
	// is continued: revisions, and so fencing tokens, go on rising.
	Dir string

	// Listen is where clients are served: "unix:" and an absolute path, or a loopback host and port;
	// port 0 takes a free one. Default 127.0.0.1:0.
	Listen string

	// Name is the member's name in its cluster. Default "conch-dev".
	Name string

	// Tick is the heartbeat interval, Election the time without a heartbeat after which a follower
	// campaigns, both in milliseconds. Defaults 10 and 100: a lone member is ready at once, and leases of
	// one second are possible (etcd grants no less than 1.5 elections, rounded up).
	Tick, Election uint

	// Unsynced skips every fsync: faster, and a crash of the machine may lose what was committed. Tests only.
	Unsynced bool

	// Cluster is etcd's initial-cluster ("a=url,b=url"), which has to name Peer for Name. Default: a
	// cluster of this one member, which listens for no peers at all.
	Cluster string
	Peer    string

	// TLS serves clients with TLS, at "https://" and Listen. Default: without.
	TLS TLS

	// TokenTTL is how many seconds the token of a user is good for if nobody uses it. Default 300, etcd's own.
	TokenTTL uint

	// CheapPasswords hashes passwords with little work: quick to check, and to guess. Tests only.
	CheapPasswords bool

	// Logger receives what etcd logs. Default: nothing is logged.
	Logger *zap.Logger

	// Server are further options of the client side's gRPC server.
	Server []grpc.ServerOption
}

// TLS are the files with which a member identifies itself to clients, and clients to it.
type TLS struct {
	Cert, Key string // PEM; empty: no TLS
	ClientCA  string // PEM; clients have to show a certificate that one of these signed. Empty: none is asked for
}

// Member is a running etcd member inside this process.
type Member struct {
	etcd     *embed.Etcd
	endpoint string
	close    func()
}

// Launch starts a member and returns when its listeners are open. It may not serve yet: see Ready.
func Launch(c Config) (*Member, error) {
	// A free port is found by binding it; between that and etcd's own bind another process may take it.
	const attempts = 5
	var err error
	for range attempts {
		var m *Member
		if m, err = launch(c); err == nil || !errors.Is(err, syscall.EADDRINUSE) || !freePort(c.Listen) {
			return m, err
		}
	}
	return nil, err
}

func launch(c Config) (*Member, error) {
	// What etcd complains about while it is closed (its own listeners being gone) says nothing to anybody.
	var closing atomic.Bool
	log := cmp.Or(c.Logger, zap.NewNop())
	c.Logger = log.WithOptions(zap.IncreaseLevel(zap.LevelEnablerFunc(func(l zapcore.Level) bool {
		return log.Core().Enabled(l) && !closing.Load()
	})))

	ec, endpoint, err := c.etcd()
	if err != nil {
		return nil, err
	}
	e, err := embed.StartEtcd(ec)
	if err != nil {
		return nil, fmt.Errorf("start etcd member: %w", err)
	}
	return &Member{etcd: e, endpoint: endpoint, close: sync.OnceFunc(func() {
		// etcd lets open streams, such as watches, live until its request timeout: several seconds for
		// nothing. Ending the raft side first ends them.
		closing.Store(true)
		e.Server.HardStop()
		e.Close()
	})}, nil
}

// Start launches a member and waits until it serves clients. When ctx ends first nothing is left running.
func Start(ctx context.Context, c Config) (*Member, error) {
	m, err := Launch(c)
	if err != nil {
		return nil, err
	}
	if err := m.Ready(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Ready waits until the member serves clients, which takes a leader. It returns an error that wraps
// ErrNoLeader when ctx ends first, and etcd's own when the member failed.
func (m *Member) Ready(ctx context.Context) error {
	select {
	case <-m.etcd.Server.ReadyNotify():
		return nil
	case err := <-m.etcd.Err():
		return fmt.Errorf("run etcd member: %w", err)
	case <-m.etcd.Server.StopNotify():
		return errors.New("run etcd member: stopped")
	case <-ctx.Done():
		return fmt.Errorf("start etcd member: %w: %w", ErrNoLeader, context.Cause(ctx))
	}
}

// Endpoint is what a client is told: "127.0.0.1:port", with "https://" before it where it is TLS, or "unix:"
// and a path.
func (m *Member) Endpoint() string { return m.endpoint }

// Failed yields when the member stopped serving by itself.
func (m *Member) Failed() <-chan error { return m.etcd.Err() }

// Close stops the member and waits until it has stopped. A second call does nothing new.
func (m *Member) Close() { m.close() }

// etcd translates c into etcd's own configuration and names the endpoint that clients will use.
func (c Config) etcd() (*embed.Config, string, error) {
	if c.Dir == "" {
		return nil, "", errors.New("start etcd member: no data directory")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, "", fmt.Errorf("start etcd member: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("start etcd member: %w", err)
	}
	client, endpoint, err := listenURL(cmp.Or(c.Listen, "127.0.0.1:0"))
	if err != nil {
		return nil, "", err
	}
	if c.TLS.Cert != "" && client.Scheme == "http" {
		client.Scheme, endpoint = "https", "https://"+endpoint
	}

	// A lone member opens no peer listener: nobody else could have business there.
	ec := embed.NewConfig()
	ec.Dir, ec.Name = dir, cmp.Or(c.Name, "conch-dev")
	ec.ListenClientUrls, ec.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	peer := cmp.Or(c.Peer, "unix://alone:1")
	peerURL, err := url.Parse(peer)
	if err != nil {
		return nil, "", fmt.Errorf("start etcd member: %w", err)
	}
	ec.ListenPeerUrls, ec.AdvertisePeerUrls = nil, []url.URL{*peerURL}
	if c.Cluster != "" {
		ec.ListenPeerUrls = []url.URL{*peerURL}
	}
	ec.InitialCluster = cmp.Or(c.Cluster, ec.Name+"="+peer)

	// Who is who.
	if c.TLS.Cert != "" {
		ec.ClientTLSInfo.CertFile, ec.ClientTLSInfo.KeyFile = c.TLS.Cert, c.TLS.Key
		ec.ClientTLSInfo.TrustedCAFile, ec.ClientTLSInfo.ClientCertAuth = c.TLS.ClientCA, c.TLS.ClientCA != ""
	}
	ec.AuthTokenTTL = cmp.Or(c.TokenTTL, ec.AuthTokenTTL)
	if c.CheapPasswords {
		ec.BcryptCost = 4 // the least that bcrypt knows
	}

	// Timing and noise.
	ec.TickMs, ec.ElectionMs = cmp.Or(c.Tick, 10), cmp.Or(c.Election, 100)
	ec.UnsafeNoFsync = c.Unsynced
	ec.EnableGRPCGateway = false
	ec.ZapLoggerBuilder = embed.NewZapLoggerBuilder(c.Logger)
	ec.GRPCAdditionalServerOptions = c.Server
	return ec, endpoint, nil
}

// freePort reports whether listen leaves the port to the kernel.
func freePort(listen string) bool {
	return listen == "" || (!strings.HasPrefix(listen, "unix:") && strings.HasSuffix(listen, ":0"))
}

// listenURL gives the URL that etcd listens at and the endpoint that a client needs. Port 0 is resolved
// here, because etcd would advertise the 0.
func listenURL(listen string) (url.URL, string, error) {
	if path, ok := strings.CutPrefix(listen, "unix:"); ok {
		path = "/" + strings.TrimLeft(path, "/")
		// The kernel's limit for a socket's path is 108 bytes with the closing zero.
		if len(path) > 107 {
			return url.URL{}, "", fmt.Errorf("listen at %s: %w", path, ErrLongPath)
		}
		return url.URL{Scheme: "unix", Path: path}, "unix://" + path, nil
	}
	if freePort(listen) {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			return url.URL{}, "", fmt.Errorf("find free port: %w", err)
		}
		listen = l.Addr().String()
		l.Close()
	}
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return url.URL{}, "", fmt.Errorf("listen at %q: %w", listen, err)
	}
	return url.URL{Scheme: "http", Host: listen}, listen, nil
}

// ErrLongPath is returned when a socket's path is longer than the kernel allows.
var ErrLongPath = errors.New("path is too long for a unix socket")
