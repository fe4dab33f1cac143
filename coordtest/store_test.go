package coordtest

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestHandsOnTheStore(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		w := created(t, t.Context(), cli, "a/", clientv3.WithPrefix(), clientv3.WithPrevKV())
		lease := do(m.Grant(0, 1))(t)
		if rev := do(m.Put("a/1", "v", lease))(t); rev != 2 || m.Rev() != 2 {
			t.Errorf("put at %d", rev)
		}
		do(m.Put("a/2", "v", lease))(t)
		do(m.Put("b", "v", 0))(t)
		m.Get("b").Value[0] = 'x' // a copy
		if got := m.Keys("a/"); !slices.Equal(got, []string{"a/1", "a/2"}) || string(m.List("b")[0].Value) != "v" {
			t.Errorf("the keys are %q", got)
		}
		if l := m.Leases(); len(l) != 1 || l[0].ID != lease || l[0].TTL != 2 || l[0].Remaining != 2 || !slices.Equal(l[0].Keys, []string{"a/1", "a/2"}) {
			t.Errorf("the leases are %v", l)
		}
		if !m.Delete("a/1") || m.Delete("a/1") || m.Get("a/1") != nil {
			t.Error("a delete told wrong")
		}
		m.Expire(lease)
		m.Expire(lease)
		if err := m.Revoke(lease); err != rpctypes.ErrGRPCLeaseNotFound {
			t.Errorf("revoked again: %v", err)
		}
		if _, err := m.Put("a/3", "v", lease); err != rpctypes.ErrGRPCLeaseNotFound {
			t.Errorf("put on a dead lease: %v", err)
		}
		if _, err := m.Grant(0, 9000000001); err != rpctypes.ErrGRPCLeaseTTLTooLarge {
			t.Errorf("granted for ever: %v", err)
		}
		if err := m.Compact(m.Rev() + 1); err != rpctypes.ErrGRPCFutureRev {
			t.Errorf("compacted the future: %v", err)
		}
		if err := m.Compact(m.Rev()); err != nil {
			t.Error(err)
		}
		var told []string
		for range 4 {
			for _, e := range (<-w).Events {
				told = append(told, e.Type.String()+" "+string(e.Kv.Key))
			}
		}
		if want := []string{"PUT a/1", "PUT a/2", "DELETE a/1", "DELETE a/2"}; !slices.Equal(told, want) {
			t.Errorf("the watch said %q", told)
		}
		if m.Calls("Put")+m.Calls("Grant") != 0 {
			t.Error("the hands are counted")
		}
	})
}

func TestEndedLeaseBlocksItsRenewalUntilItIsRevoked(t *testing.T) {
	bubble(t, Options{RevokeLag: 500 * time.Millisecond}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		lease := do(m.Grant(0, 2))(t)
		do(m.Put("k", "v", lease))(t)
		stream := renewing(t, cli)
		start := time.Now()
		time.Sleep(2 * time.Second)
		if m.Get("k") == nil || m.Leases()[0].Remaining != -1 {
			t.Errorf("the key is %v on %v", m.Get("k"), m.Leases())
		}
		r := do(stream.renew(lease))(t)
		if got := time.Since(start); r.TTL != 0 || got != 2500*time.Millisecond || m.Get("k") != nil {
			t.Errorf("renewed to %d after %v", r.TTL, got)
		}
		// One whose caller gives up is not renewed either.
		lease = do(m.Grant(0, 2))(t)
		time.Sleep(2 * time.Second)
		if _, err := cli.KeepAliveOnce(within(t, 100*time.Millisecond), lease); err == nil {
			t.Error("it was renewed")
		}
	})
}

func TestClockOfOnesOwn(t *testing.T) {
	t.Parallel()
	now := 50 * time.Hour
	m := Start(t, Options{Clock: func() time.Duration { return now }, MinTTL: 5 * time.Second})
	lease := do(m.Grant(0, 1))(t)
	do(m.Put("k", "v", lease))(t)
	rev := m.Rev()
	now += 5*time.Second - 1
	m.Sweep()
	if m.Rev() != rev || m.Leases()[0].Remaining != 0 {
		t.Errorf("it ended too early: %v", m.Leases())
	}
	now++
	m.Sweep()
	if m.Rev() != rev+1 || m.Get("k") != nil {
		t.Errorf("it did not end: %v", m.Leases())
	}
}

func TestHeldWatchesAreSilent(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		w := created(t, t.Context(), cli, "k")
		m.HoldWatches(false)
		m.HoldWatches(true)
		m.HoldWatches(true)
		do(m.Put("k", "1", 0))(t)
		do(m.Put("k", "2", 0))(t)
		time.Sleep(time.Hour)
		select {
		case r := <-w:
			t.Errorf("the watch said %v", r)
		default:
		}
		m.HoldWatches(false)
		for range 2 {
			if r := <-w; len(r.Events) != 1 {
				t.Errorf("the watch said %v", r)
			}
		}
		m.HoldWatches(true) // and close like that
		do(m.Put("k", "3", 0))(t)
	})
}

func TestEndedWatchesAreOpenedAgain(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		w := created(t, t.Context(), cli, "k")
		m.EndWatches(nil)
		do(m.Put("k", "1", 0))(t)
		if r := <-w; len(r.Events) != 1 {
			t.Errorf("the watch said %v", r)
		}
		// What it asks for then may be gone.
		m.Inject(Rule{Method: Watch, Action: Before(func() {
			must(m.Put("k", "2", 0))
			must(m.Put("k", "3", 0))
			_ = m.Compact(m.Rev())
		})})
		m.EndWatches(nil)
		if r := <-w; r.Err() != rpctypes.ErrCompacted || r.CompactRevision != m.Rev() {
			t.Errorf("the watch said %+v", r)
		}
		if r, open := <-w; open {
			t.Errorf("the watch said %v", r)
		}
		// An error that is not about the connection ends it.
		w = created(t, t.Context(), cli, "k")
		m.EndWatches(rpctypes.ErrGRPCPermissionDenied)
		if r := <-w; r.Err() != rpctypes.ErrPermissionDenied {
			t.Errorf("the watch said %v", r.Err())
		}
	})
}

func TestCancelledWatchIsClosed(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		w := created(t, t.Context(), cli, "k")
		if m.Watches() != 1 {
			t.Errorf("%d watches", m.Watches())
		}
		m.CancelWatches("because")
		if _, open := <-w; open || m.Watches() != 0 {
			t.Errorf("%d watches", m.Watches())
		}
	})
}

func TestQuietWatchHearsOfProgress(t *testing.T) {
	bubble(t, Options{ProgressInterval: time.Minute}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		w := created(t, t.Context(), cli, "k", clientv3.WithProgressNotify())
		do(m.Put("other", "v", 0))(t)
		start := time.Now()
		if r := <-w; !r.IsProgressNotify() || r.Header.Revision != 2 || time.Since(start) != time.Minute {
			t.Errorf("the watch said %+v after %v", r, time.Since(start))
		}
		// An event stands for the next one.
		do(m.Put("k", "v", 0))(t)
		<-w
		start = time.Now()
		if r := <-w; !r.IsProgressNotify() || time.Since(start) != 2*time.Minute {
			t.Errorf("the watch said %+v after %v", r, time.Since(start))
		}
		if err := cli.RequestProgress(t.Context()); err != nil {
			t.Fatal(err)
		}
		start = time.Now()
		if r := <-w; !r.IsProgressNotify() || time.Since(start) != 0 {
			t.Errorf("the watch said %+v after %v", r, time.Since(start))
		}
		synctest.Wait()
	})
}
