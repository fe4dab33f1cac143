package coordtest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test with a medium and a client of all its members on the fake clock.
func bubble(t *testing.T, o Options, f func(t *testing.T, m *Medium, cli *clientv3.Client)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := Start(t, o)
		f(t, m, m.Client(t))
	})
}

// within is a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// do fails the test if what it is given failed.
func do[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// renewals is one stream of renewals.
type renewals struct {
	t      *testing.T
	stream pb.Lease_LeaseKeepAliveClient
}

func renewing(t *testing.T, cli *clientv3.Client) renewals {
	t.Helper()
	stream, err := pb.NewLeaseClient(cli.ActiveConnection()).LeaseKeepAlive(t.Context())
	return renewals{t, do(stream, err)(t)}
}

func (r renewals) renew(id clientv3.LeaseID) (*pb.LeaseKeepAliveResponse, error) {
	r.t.Helper()
	if err := r.stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
		r.t.Fatal(err)
	}
	return r.stream.Recv()
}

// created opens a watch and returns when it is there.
func created(t *testing.T, ctx context.Context, cli *clientv3.Client, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	t.Helper()
	w := cli.Watch(ctx, key, append(opts, clientv3.WithCreatedNotify())...)
	if r := <-w; !r.Created {
		t.Fatalf("watch said %+v", r)
	}
	return w
}

func TestLeaseEndsInFakeTimeUnlessRenewed(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		lease := do(cli.Grant(t.Context(), 10))(t).ID
		do(cli.Put(t.Context(), "k", "v", clientv3.WithLease(lease)))(t)
		w := created(t, clientv3.WithRequireLeader(t.Context()), cli, "k", clientv3.WithPrevKV())
		stream := renewing(t, cli)
		start := time.Now()
		for range 5 {
			time.Sleep(9 * time.Second) // in fake time
			if r := do(stream.renew(lease))(t); r.TTL != 10 {
				t.Fatalf("renewed to %d", r.TTL)
			}
		}
		r := <-w
		if got := time.Since(start); got != 55*time.Second {
			t.Errorf("the key went after %v", got)
		}
		if e := r.Events[0]; e.Type != clientv3.EventTypeDelete || e.PrevKv.Lease != int64(lease) {
			t.Errorf("the watch said %v", r)
		}
	})
}

// The fake clock would stand still, and this test hang, if anything of a watch waited on a channel from
// outside the bubble: see bubble.go.
func TestWatchInBubble(t *testing.T) {
	bubble(t, Options{Members: 3}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		w := created(t, clientv3.WithRequireLeader(t.Context()), cli, "k")
		time.Sleep(24 * time.Hour) // in fake time
		do(m.Put("k", "v", 0))(t)
		if r := <-w; len(r.Events) != 1 {
			t.Errorf("the watch said %v", r)
		}
	})
}

func TestClientKeepsItsLeaseAlive(t *testing.T) {
	bubble(t, Options{Members: 2}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		lease := do(cli.Grant(t.Context(), 10))(t).ID
		replies := do(cli.KeepAlive(t.Context(), lease))(t)
		deadline := time.Now().Add(time.Hour)
		for time.Now().Before(deadline) {
			if r := <-replies; r == nil || r.TTL != 10 {
				t.Fatalf("renewed to %v after %v", r, time.Until(deadline))
			}
		}
		m.Expire(lease)
		for range replies { // it is closed
		}
	})
}

func TestElectionOfTheEtcdClientRunsOnIt(t *testing.T) {
	bubble(t, Options{Members: 3}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		one := do(concurrency.NewSession(cli, concurrency.WithTTL(5)))(t)
		two := do(concurrency.NewSession(m.Client(t), concurrency.WithTTL(5)))(t)
		first, second := concurrency.NewElection(one, "office"), concurrency.NewElection(two, "office")
		if err := first.Campaign(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		won := make(chan error, 1)
		go func() { won <- second.Campaign(t.Context(), "two") }()
		time.Sleep(time.Minute) // in fake time
		if r := do(first.Leader(t.Context()))(t); string(r.Kvs[0].Value) != "one" {
			t.Errorf("the leader is %s", r.Kvs[0].Value)
		}
		m.Expire(one.Lease())
		if err := <-won; err != nil {
			t.Error(err)
		}
		if r := do(first.Leader(t.Context()))(t); string(r.Kvs[0].Value) != "two" {
			t.Errorf("the leader is %s", r.Kvs[0].Value)
		}
		one.Orphan()
		if err := two.Close(); err != nil {
			t.Error(err)
		}
		if keys := m.Keys(""); keys != nil {
			t.Errorf("left behind: %v", keys)
		}
	})
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{Members: -1}, {Members: 100}, {MinTTL: -time.Second}, {MinTTL: 1500 * time.Millisecond}, {RevokeLag: -1},
		{RequestTimeout: -1}, {NoLeaderAfter: -1}, {ProgressInterval: -1},
	} {
		if m, err := New(o); m != nil || !errors.Is(err, ErrInvalidOption) {
			t.Errorf("New(%+v) = %v, %v", o, m, err)
		}
	}
}

func TestConfigOfSomeMembers(t *testing.T) {
	bubble(t, Options{Members: 3}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		if got := len(m.Config().Endpoints); got != 3 || len(m.Endpoints()) != 3 {
			t.Errorf("%d endpoints", got)
		}
		h := do(m.Client(t, 1).Get(t.Context(), "k"))(t).Header
		if h.MemberId != m.MemberID(1) || h.RaftTerm != m.Term() || h.ClusterId == 0 || h.Revision != 1 {
			t.Errorf("header %v", h)
		}
		if err := cli.Sync(t.Context()); err != nil || len(cli.Endpoints()) != 3 {
			t.Errorf("synchronized to %v, %v", cli.Endpoints(), err)
		}
		stranger := m.Config()
		stranger.Endpoints = []string{"http://nobody:1"}
		lost := do(clientv3.New(stranger))(t)
		defer func() { _ = lost.Close() }()
		if _, err := lost.Get(within(t, time.Second), "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody answered %v", err)
		}
	})
}

func TestCloseEndsWhatHangs(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		m.Inject(Rule{Method: Put, Action: LoseRequest()})
		m.Inject(Rule{Method: Txn, Action: Late(nil)})
		failed := make(chan error, 3)
		go func() { _, err := cli.Put(t.Context(), "k", "v"); failed <- err }()
		go func() {
			_, err := cli.Txn(within(t, time.Second)).Then(clientv3.OpPut("k", "v")).Commit()
			failed <- err
		}()
		go func() { failed <- m.Await(t.Context(), func() bool { return m.Get("k") != nil }) }()
		time.Sleep(2 * time.Second) // in fake time
		m.Close()
		m.Close()
		for range 3 {
			if err := <-failed; err == nil {
				t.Error("it did not fail")
			}
		}
		if m.Get("k") != nil {
			t.Error("something was committed")
		}
	})
}

func TestAwait(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		if err := m.Await(within(t, time.Second), func() bool { return false }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("await says %v", err)
		}
		done := make(chan error, 3)
		go func() { done <- m.Await(t.Context(), func() bool { return m.Get("k") != nil }) }()
		go func() { done <- m.Await(t.Context(), func() bool { return m.Calls(Range) == 2 }) }()
		go func() { done <- m.Await(t.Context(), func() bool { return m.Watches() == 1 }) }()
		synctest.Wait()
		do(m.Put("k", "v", 0))(t)
		do(cli.Get(t.Context(), "k"))(t)
		do(cli.Get(t.Context(), "k"))(t)
		cli.Watch(t.Context(), "k")
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}
