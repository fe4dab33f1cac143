package coordtest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestStoppedMemberAnswersNothingUntilItGoesOn(t *testing.T) {
	bubble(t, Options{Members: 2}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		stopped, other := m.Client(t, 0), m.Client(t, 1)
		do(stopped.Get(t.Context(), "k"))(t)
		m.Stop(0)
		if _, err := stopped.Put(within(t, time.Second), "k", "late"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it answered %v", err)
		}
		// It takes connections all the same.
		if _, err := m.Client(t, 0).Get(within(t, time.Minute), "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it answered %v", err)
		}
		do(other.Put(t.Context(), "k", "early"))(t)
		waiting := make(chan error, 1)
		go func() { _, err := stopped.Put(t.Context(), "k2", "v"); waiting <- err }()
		synctest.Wait()
		if len(waiting) != 0 || m.Get("k2") != nil {
			t.Error("it works")
		}
		m.Cont(0)
		if err := <-waiting; err != nil || m.Get("k2") == nil {
			t.Errorf("it goes on with %v", err)
		}
	})
}

func TestWatchOnStoppedMemberMovesOnlyWithKeepalive(t *testing.T) {
	bubble(t, Options{Members: 2}, func(t *testing.T, m *Medium, deaf *clientv3.Client) {
		cfg := m.Config()
		cfg.DialKeepAliveTime, cfg.DialKeepAliveTimeout = 10*time.Second, 2*time.Second
		alert := do(clientv3.New(cfg))(t)
		t.Cleanup(func() { _ = alert.Close() })
		var door int
		m.Inject(Rule{Method: Watch, Times: Forever, When: func(c *Call) bool { door = c.Member; return false }})
		for _, cli := range []*clientv3.Client{alert, deaf} {
			w := created(t, t.Context(), cli, "k", clientv3.WithRev(m.Rev()+1))
			stopped := door
			m.Stop(stopped)
			do(m.Put("k", "v", 0))(t)
			start := time.Now()
			select {
			case r := <-w:
				if got := time.Since(start); cli == deaf || len(r.Events) != 1 || got > 13*time.Second || door == stopped {
					t.Errorf("the watch on member %d said %v after %v", door, r, got)
				}
			case <-time.After(time.Hour):
				if cli == alert {
					t.Error("the watch was silent")
				}
			}
			m.Cont(stopped)
		}
	})
}

func TestKilledMemberRefusesUntilItIsRevived(t *testing.T) {
	bubble(t, Options{Members: 2}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		one := m.Client(t, 0)
		stream := renewing(t, one)
		lease := do(m.Grant(0, 100))(t)
		do(stream.renew(lease))(t)
		m.Inject(Rule{Method: Put, Action: LoseRequest()})
		broken := make(chan error, 1)
		go func() { _, err := one.Put(t.Context(), "k", "v"); broken <- err }()
		synctest.Wait()
		m.Stop(0)
		m.Kill(0)
		if err := <-broken; status.Code(err) != codes.Unavailable {
			t.Errorf("the call ended with %v", err)
		}
		if _, err := stream.stream.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("the stream ended with %v", err)
		}
		if _, err := one.Get(within(t, time.Minute), "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it answered %v", err)
		}
		for range 4 {
			if h := do(cli.Get(t.Context(), "k"))(t).Header; h.MemberId != m.MemberID(1) {
				t.Errorf("it answered with %v", h)
			}
		}
		m.Revive(0)
		do(one.Get(t.Context(), "k"))(t)
	})
}

func TestWatchGoesOnAfterItsConnectionBroke(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		w := created(t, t.Context(), cli, "k")
		for i := range 3 {
			m.Disconnect(0)
			do(m.Put("k", "v", 0))(t)
			if r := <-w; len(r.Events) != 1 || r.Events[0].Kv.Version != int64(i+1) {
				t.Errorf("the watch said %v", r)
			}
		}
	})
}

func TestNoQuorum(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		ctx := t.Context()
		do(m.Put("k", "v", 0))(t)
		lease := do(m.Grant(0, 10))(t)
		stream := renewing(t, cli)
		m.NoQuorum(true)
		m.NoQuorum(true)
		hangs := map[string]func(context.Context) error{
			"get":     func(ctx context.Context) error { _, err := cli.Get(ctx, "k"); return err },
			"put":     func(ctx context.Context) error { _, err := cli.Put(ctx, "k", "lost"); return err },
			"delete":  func(ctx context.Context) error { _, err := cli.Delete(ctx, "k"); return err },
			"compact": func(ctx context.Context) error { _, err := cli.Compact(ctx, 2); return err },
			"grant":   func(ctx context.Context) error { _, err := cli.Grant(ctx, 5); return err },
			"revoke":  func(ctx context.Context) error { _, err := cli.Revoke(ctx, lease); return err },
			"ttl":     func(ctx context.Context) error { _, err := cli.TimeToLive(ctx, lease); return err },
			"members": func(ctx context.Context) error { _, err := cli.MemberList(ctx); return err },
			"txn": func(ctx context.Context) error {
				_, err := cli.Txn(ctx).If(clientv3.Compare(clientv3.Version("k"), "=", 1)).Then(clientv3.OpGet("k")).Commit()
				return err
			},
		}
		for name, call := range hangs {
			if err := call(within(t, time.Second)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s was answered with %v", name, err)
			}
		}
		do(cli.Get(ctx, "k", clientv3.WithSerializable()))(t)
		if !do(cli.Txn(ctx).If(clientv3.Compare(clientv3.Version("k"), "=", 1)).Commit())(t).Succeeded {
			t.Error("a transaction of compares failed")
		}
		renewed := make(chan *pb.LeaseKeepAliveResponse, 1)
		go func() { renewed <- must(stream.renew(lease)) }()
		time.Sleep(time.Minute) // in fake time
		if len(m.Leases()) != 1 || len(renewed) != 0 {
			t.Errorf("leases: %v, renewed: %d", m.Leases(), len(renewed))
		}

		// What was given up is not done later.
		term := m.Term()
		m.NoQuorum(false)
		m.NoQuorum(false)
		if got := m.Leases()[0].Remaining; got != 10 || m.Term() != term+1 {
			t.Errorf("%d s left in term %d", got, m.Term())
		}
		if r := <-renewed; r.TTL != 10 {
			t.Errorf("renewed: %v", r)
		}
		synctest.Wait()
		if string(m.Get("k").Value) != "v" || m.Rev() != 2 {
			t.Errorf("the key is %v at %d", m.Get("k"), m.Rev())
		}
	})
}

func TestCallsTimeOutWithoutQuorum(t *testing.T) {
	bubble(t, Options{RequestTimeout: 7 * time.Second}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		m.NoQuorum(true)
		start := time.Now()
		if _, err := cli.Put(t.Context(), "k", "v"); err != rpctypes.ErrTimeout || time.Since(start) != 7*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		start = time.Now()
		go func() { time.Sleep(time.Second); m.NoQuorum(false) }() // in fake time
		do(cli.Put(t.Context(), "k", "v"))(t)
		if time.Since(start) != time.Second {
			t.Errorf("answered after %v", time.Since(start))
		}
	})
}

func TestWhatRequiresALeaderEndsWithoutOne(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		leader := clientv3.WithRequireLeader(t.Context())
		do(cli.Put(leader, "k", "v"))(t)
		plain, strict := created(t, t.Context(), cli, "k"), created(t, leader, cli, "k")
		start := time.Now()
		m.NoQuorum(true)
		if r := <-strict; r.Err() != rpctypes.ErrNoLeader || time.Since(start) != 3*time.Second {
			t.Errorf("the watch said %v after %v", r.Err(), time.Since(start))
		}
		if _, err := cli.Put(leader, "k", "v"); err != rpctypes.ErrNoLeader {
			t.Errorf("the put got %v", err)
		}
		if s := do(cli.Status(t.Context(), m.Endpoints()[0]))(t); s.Leader != 0 || len(s.Errors) != 1 {
			t.Errorf("the status is %v", s)
		}
		m.NoQuorum(false)
		created(t, leader, cli, "k")
		do(m.Put("k", "v", 0))(t)
		if r := <-plain; len(r.Events) != 1 {
			t.Errorf("the watch said %v", r)
		}
		m.NoQuorum(true) // and close like that
	})
}

func TestNewLeaderStartsLeasesOver(t *testing.T) {
	bubble(t, Options{Members: 3}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		lease := do(m.Grant(0, 10))(t)
		do(m.Put("k", "v", lease))(t)
		start := time.Now()
		w := created(t, t.Context(), cli, "k", clientv3.WithRev(m.Rev()+1))
		time.Sleep(9 * time.Second) // in fake time
		m.MoveLeader(2)
		time.Sleep(9 * time.Second) // in fake time
		m.Restart()
		if m.Term() != 4 || m.Leader() != 2 {
			t.Errorf("member %d leads in term %d", m.Leader(), m.Term())
		}
		for i := range 3 {
			s := do(cli.Status(t.Context(), m.Endpoints()[i]))(t)
			if s.Leader != m.MemberID(2) || s.Header.MemberId != m.MemberID(i) || s.RaftTerm != 4 || s.Version == "" {
				t.Errorf("member %d says %v", i, s)
			}
		}
		r := <-w
		if got := time.Since(start); got != 28*time.Second {
			t.Errorf("the watch said %+v after %v", r, got)
		}
		m.SetTerm(9)
		m.SetClusterID(5)
		if h := do(cli.Get(t.Context(), "k"))(t).Header; h.RaftTerm != 9 || h.ClusterId != 5 {
			t.Errorf("the header is %v", h)
		}
	})
}

func TestStatusNamesTheAlarm(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		m.NoSpace(true)
		if s := do(cli.Status(t.Context(), m.Endpoints()[0]))(t); len(s.Errors) != 1 {
			t.Errorf("the status is %v", s)
		}
		if _, err := cli.Grant(t.Context(), 5); err != rpctypes.ErrNoSpace {
			t.Errorf("granted: %v", err)
		}
	})
}

func TestRestoreGoesBack(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		kept, dropped := do(m.Grant(11, 10))(t), do(m.Grant(12, 20))(t)
		do(m.Put("kept", "1", kept))(t)
		do(m.Put("dropped", "1", dropped))(t)
		if err := m.Revoke(dropped); err != nil {
			t.Fatal(err)
		}
		then := m.Snapshot()
		rev := m.Rev()
		do(m.Put("kept", "2", 0))(t)
		do(m.Put("new", "1", do(m.Grant(13, 5))(t)))(t)
		time.Sleep(9 * time.Second) // in fake time
		m.Restore(then)
		if kv := m.Get("kept"); m.Rev() != rev || string(kv.Value) != "1" || m.Get("new") != nil || m.Get("dropped") != nil {
			t.Errorf("back at %d with %v and %v", m.Rev(), kv, m.Keys(""))
		}
		if l := m.Leases(); len(l) != 1 || l[0].ID != kept || l[0].Remaining != 10 || l[0].Keys[0] != "kept" {
			t.Errorf("the leases are %v", l)
		}
		// The snapshot can be used again, whatever happened since.
		do(m.Put("kept", "3", 0))(t)
		m.Restore(then)
		if r := do(cli.Get(t.Context(), "kept"))(t); string(r.Kvs[0].Value) != "1" || r.Header.Revision != rev {
			t.Errorf("it is %v", r)
		}
		time.Sleep(10 * time.Second) // in fake time
		if keys := m.Keys(""); keys != nil {
			t.Errorf("left: %v", keys)
		}
	})
}
