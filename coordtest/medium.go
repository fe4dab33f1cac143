package coordtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// ErrInvalidOption is returned by New when an option has no meaning.
var ErrInvalidOption = errors.New("coordtest: invalid option")

// Options describe a Medium. The zero value is one member that behaves as etcd does by default.
type Options struct {
	// Members is the number of members, each an endpoint with a member id of its own. Default 1.
	Members int
	// MinTTL is the floor of granted TTLs, in whole seconds. Default 2 s, as etcd's default election
	// timeout gives.
	MinTTL time.Duration
	// RevokeLag is how long after its end a lease is really revoked: until then its keys stand, and a
	// renewal of it blocks. etcd looks for such leases twice a second. Default 0.
	RevokeLag time.Duration
	// Clock is what leases are timed by. Default: the time since New. With another clock, no lease ends
	// by itself: see Sweep.
	Clock func() time.Duration
	// RequestTimeout ends a call that waits for a quorum with "etcdserver: request timed out", which etcd
	// does after 7 s. Default 0: it waits until its caller gives up.
	RequestTimeout time.Duration
	// NoLeaderAfter is how long after NoQuorum(true) the streams that require a leader are ended and calls
	// that do are refused. Default 3 s, three election timeouts.
	NoLeaderAfter time.Duration
	// ProgressInterval is how often a watch that asked for progress and saw no event hears of it.
	// Default 10 min.
	ProgressInterval time.Duration
	// ClusterID is the id in all headers. Default: a constant.
	ClusterID uint64
}

// withDefaults fills in what was left zero and refuses what makes no sense.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Members < 0 || o.Members > 99:
		return o, fmt.Errorf("%w: Members = %d", ErrInvalidOption, o.Members)
	case o.MinTTL < 0 || o.MinTTL%time.Second != 0:
		return o, fmt.Errorf("%w: MinTTL = %v", ErrInvalidOption, o.MinTTL)
	case o.RevokeLag < 0 || o.RequestTimeout < 0 || o.NoLeaderAfter < 0 || o.ProgressInterval < 0:
		return o, fmt.Errorf("%w: negative duration", ErrInvalidOption)
	}
	o.Members = cmp.Or(o.Members, 1)
	o.MinTTL = cmp.Or(o.MinTTL, 2*time.Second)
	o.NoLeaderAfter = cmp.Or(o.NoLeaderAfter, 3*time.Second)
	o.ProgressInterval = cmp.Or(o.ProgressInterval, 10*time.Minute)
	o.ClusterID = cmp.Or(o.ClusterID, 0xc0047d7e57c1a5)
	return o, nil
}

// Medium is an etcd cluster in memory. All methods may be called from any goroutine.
//
// Lock order: the members' and the rules' locks are leaves; the store's lock is never held while a function
// of the test runs.
type Medium struct {
	opts    Options
	store   *store
	members []*member
	rules   rules
	state   cluster

	ctx    context.Context // ends when Close begins: whatever hangs, hangs no longer
	cancel context.CancelFunc
	late   sync.WaitGroup // requests that outlived their callers
	closed sync.Once
}

// New starts a cluster. Close ends it.
func New(o Options) (*Medium, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Medium{opts: o}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.state.init(o)
	m.rules.init()
	m.store = newStore(o)

	// Every member is a server of its own; they share all that is behind it.
	for i := range o.Members {
		m.members = append(m.members, newMember(m, i))
	}
	return m, nil
}

// Start is New for a test: bad options fail it, and the Medium is closed when the test has ended, after the
// clients that Client made later.
func Start(t testing.TB, o Options) *Medium {
	t.Helper()
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// Close ends all calls, servers and connections, and returns when none of their goroutines is left. Late
// requests that were not released are dropped. It is idempotent. The store may still be looked at.
func (m *Medium) Close() {
	m.closed.Do(func() {
		m.cancel()
		m.store.stop()
		m.state.stop()
		for _, mb := range m.members {
			mb.close()
		}
		m.late.Wait()
	})
}

// Endpoints are the addresses of all members, in order. Only the dialer of Config knows them.
func (m *Medium) Endpoints() []string {
	eps := make([]string, 0, len(m.members))
	for _, mb := range m.members {
		eps = append(eps, "http://"+mb.addr)
	}
	return eps
}

// Config is a client configuration that reaches the given members, or all if none is given, and logs
// nothing. It may be changed, as long as its DialOptions stay.
func (m *Medium) Config(members ...int) clientv3.Config {
	eps := m.Endpoints()
	if len(members) > 0 {
		eps = nil
		for _, i := range members {
			eps = append(eps, "http://"+m.members[i].addr)
		}
	}
	return clientv3.Config{
		Endpoints:   eps,
		Logger:      zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(m.dial)},
	}
}

// NewClient makes a client of the given members, or of all if none is given. The caller closes it.
func (m *Medium) NewClient(members ...int) (*clientv3.Client, error) {
	cli, err := clientv3.New(m.Config(members...))
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return cli, nil
}

// Client is NewClient for a test, which fails if that does. The client is closed when the test has ended.
func (m *Medium) Client(t testing.TB, members ...int) *clientv3.Client {
	t.Helper()
	cli, err := m.NewClient(members...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cli.Close() }) // it says that its own context has ended
	return cli
}

// Await returns when cond holds. It is asked again whenever the store, a counter or the cluster's state has
// changed, and must not block. The error is that of ctx, or of a Medium that was closed meanwhile.
func (m *Medium) Await(ctx context.Context, cond func() bool) error {
	for {
		changed := m.store.changed()
		called := m.rules.changed()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-called:
		case <-ctx.Done():
			return fmt.Errorf("await: %w", ctx.Err())
		case <-m.ctx.Done():
			return fmt.Errorf("await: %w", m.ctx.Err())
		}
	}
}
