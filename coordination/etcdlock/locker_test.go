package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordtest"
)

func TestWhatEachCallCosts(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		calls(w.m)
		lease := w.held(w.l, "k", 10*time.Second)
		if got := calls(w.m); got != (count{reads: 1, grants: 1, txns: 1}) {
			w.Errorf("acquire: %+v", got)
		}
		for range 3 {
			if _, held, err := w.l.Acquire(w.Context(), "k", "p", 10*time.Second); held || err != nil {
				w.Error(held, err)
			}
		}
		if got := calls(w.m); got != (count{reads: 3}) {
			w.Errorf("three refusals: %+v", got)
		}
		lease = w.renewed(w.l, lease, 10*time.Second)
		if got := calls(w.m); got != (count{renewals: 1, reads: 1}) {
			w.Errorf("renew: %+v", got)
		}
		lease = w.renewed(w.l, lease, 5*time.Second)
		if got := calls(w.m); got != (count{renewals: 1, reads: 1}) {
			w.Errorf("renew for less: %+v", got)
		}
		lease = w.renewed(w.l, lease, 20*time.Second)
		w.settle()
		if got := calls(w.m); got != (count{grants: 1, txns: 1, revokes: 1}) {
			w.Errorf("renew for longer, and the old lease revoked by the way: %+v", got)
		}
		w.renewed(w.peer(), lease, 20*time.Second)
		if got := calls(w.m); got != (count{renewals: 1, reads: 2}) {
			w.Errorf("renew in another process: %+v", got)
		}
		w.released(w.l, lease)
		if got := calls(w.m); got != (count{txns: 1, revokes: 1}) {
			w.Errorf("release: %+v", got)
		}
		w.released(w.l, lease)
		if got := calls(w.m); got != (count{txns: 1}) {
			w.Errorf("release once more: %+v", got)
		}
		if left := w.m.Leases(); len(left) != 0 {
			w.Errorf("left behind: %+v", left)
		}
	})
}

// Nobody waits for the revoke, nor for its answer.
func TestAReleaseIsDoneWhenTheKeyIsGone(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		lease := w.held(w.l, "k", 10*time.Second)
		w.m.Inject(coordtest.Rule{Method: coordtest.Revoke, Action: coordtest.LoseRequest()})
		began := time.Now()
		if err := w.l.Release(w.Context(), lease); err != nil || time.Since(began) != 0 {
			w.Errorf("%v, after %v", err, time.Since(began))
		}
		w.released(w.peer(), w.held(w.peer(), "k", 10*time.Second))
	})
}

// spare lets l lose a race for a key, so that it has a lease to spare, of 10 s.
func (w *world) spare(l *Locker) {
	w.Helper()
	other := w.peer()
	w.m.Inject(coordtest.Rule{When: puts, Action: coordtest.Before(func() { w.held(other, "race", time.Minute) })})
	if _, held, err := l.Acquire(w.Context(), "race", "o", 10*time.Second); held || err != nil {
		w.Fatal(held, err)
	}
	w.released(other, coordination.Lease{Key: "race", Owner: "o", Token: uint64(w.m.Get(w.l.name("race")).CreateRevision)})
	calls(w.m)
}

func TestWhoLosesARaceHasALeaseToSpare(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.spare(w.l)
		began := time.Now()
		time.Sleep(900 * time.Millisecond)
		lease := w.held(w.l, "k", 9500*time.Millisecond) // 10 s as well
		if got := calls(w.m); got != (count{reads: 1, txns: 1}) {
			w.Errorf("acquire with a spare lease: %+v", got)
		}
		// It counts from when that was asked for.
		if got := lease.ExpiresAt.Sub(began); got != 9*time.Second {
			w.Errorf("expires %v after the grant", got)
		}
		w.released(w.l, lease)
	})
}

func TestASpareLeaseIsUsedForWhatItIsGoodFor(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		// For another ttl it is none.
		w.spare(w.l)
		w.released(w.l, w.held(w.l, "k", 20*time.Second))
		if got := calls(w.m); got.grants != 1 {
			w.Errorf("another ttl: %+v", got)
		}
		// There is one at most.
		w.spare(w.l)
		if left := w.m.Leases(); len(left) != 1 {
			w.Errorf("two to spare: %+v", left)
		}
		// After a tenth of its time it is revoked.
		time.Sleep(time.Second)
		w.settle()
		if left := w.m.Leases(); len(left) != 0 {
			w.Errorf("not revoked: %+v", left)
		}
		w.released(w.l, w.held(w.l, "k", 10*time.Second))
		if got := calls(w.m); got.grants != 1 {
			w.Errorf("after its time: %+v", got)
		}
	})
}

// A timer can be late, as after a suspend: the clock decides.
func TestASpareLeaseIsJudgedByTheClock(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.spare(w.l)
		w.l.mu.Lock()
		w.l.expire.Stop()
		w.l.mu.Unlock()
		time.Sleep(time.Second)
		w.released(w.l, w.held(w.l, "k", 10*time.Second))
		if got := calls(w.m); got.grants != 1 {
			w.Errorf("%+v", got)
		}
		// A timer that fires all the same finds another.
		old := w.l.spare
		w.spare(w.l)
		w.l.dropSpare(old)
		w.settle()
		if left := w.m.Leases(); len(left) != 1 {
			w.Errorf("%+v", left)
		}
	})
}

func TestCloseGivesBackWhatIsSpare(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		lease := w.held(w.l, "k", 10*time.Second)
		w.spare(w.l)
		for range 2 {
			if err := w.l.Close(); err != nil {
				w.Error(err)
			}
		}
		if left := w.m.Leases(); len(left) != 1 {
			w.Errorf("%+v", left)
		}
		if _, held, err := w.l.Acquire(w.Context(), "other", "o", time.Second); held || !errors.Is(err, coord.ErrClosed) {
			w.Error(held, err)
		}
		// What is held can be kept, and given back: without a revoke, the lease is left to its ttl.
		lease = w.renewed(w.l, lease, 10*time.Second)
		w.released(w.l, lease)
		if keys := w.m.Keys(""); len(keys) != 0 {
			w.Error(keys)
		}
		// One that ends while it is closed keeps no lease to spare either.
		w.l.keepSpare(&grant{id: 1, sent: time.Now(), ttl: time.Second})
		if w.l.spare != nil {
			w.Error("a closed Locker has a lease to spare")
		}
	})
}

func TestCloseDoesNotWaitForASilentEtcdForEver(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.spare(w.l)
		restore := silence(w.m)
		defer restore()
		began := time.Now()
		if err := w.l.Close(); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != revokeMost {
			w.Errorf("%v, after %v", err, time.Since(began))
		}
	})
}

func TestAKeyIsOnePathElement(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, key := range []string{
		"k", "a/b", "/", "//", ".", "..", "...", "%2E", "%2e", "a.b", "é", "\x00", "\xff", "\n", "?", "#", "a b", "+", "{}", strings.Repeat("/", 100),
	} {
		name := New(nil, Options{}).name(key)
		element, ok := strings.CutPrefix(name, "/coord/locks/")
		back, err := url.PathUnescape(element)
		if !ok || err != nil || back != key || strings.ContainsAny(element, "/\x00\n ") || element == "." || element == ".." || element == "" {
			t.Errorf("%q: %q, back to %q: %v", key, name, back, err)
		}
		if other, twice := seen[name]; twice {
			t.Errorf("%q and %q both at %q", key, other, name)
		}
		seen[name] = key
	}
	for prefix, want := range map[string]string{"": "/coord/locks/a%2Fb", "/x": "/x/a%2Fb", "/x/": "/x/a%2Fb", "x": "x/a%2Fb"} {
		if got := New(nil, Options{Prefix: prefix}).name("a/b"); got != want {
			t.Errorf("prefix %q: %q, want %q", prefix, got, want)
		}
	}
}

// What stands in etcd is public: see docs/keys.md.
func TestTheKeyIsOnItsLeaseAndNamesTheOwner(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		lease, held, err := w.l.Acquire(w.Context(), "a/b", "me\n", 1500*time.Millisecond)
		if !held || err != nil {
			w.Fatal(held, err)
		}
		kv := w.m.Get("/coord/locks/a%2Fb")
		leases := w.m.Leases()
		if kv == nil || string(kv.Value) != "me\n" || uint64(kv.CreateRevision) != lease.Token || len(leases) != 1 || kv.Lease != int64(leases[0].ID) {
			w.Fatalf("%v, %+v", kv, leases)
		}
		// Whole seconds, and never more than was asked for.
		if got := lease.Remaining(); leases[0].TTL != 2 || got != 1500*time.Millisecond {
			w.Errorf("granted %d s, expires in %v", leases[0].TTL, got)
		}
		lease = w.renewed(w.l, lease, 2*time.Second)
		if got := lease.Remaining(); got != 1800*time.Millisecond {
			w.Errorf("a ttl of 2 s expires in %v", got)
		}
	})
}

func TestLeasesThatRanOutAreForgotten(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		for i := range 4 * sweepAt {
			w.held(w.l, fmt.Sprint(i), 2*time.Second)
			time.Sleep(2 * time.Second / (sweepAt / 2))
			if n := len(w.l.holds.of); n > 2*sweepAt {
				w.Fatalf("%d are remembered after %d", n, i)
			}
		}
		// Those that are renewed for longer are not.
		var kept []coordination.Lease
		for i := range sweepAt {
			kept = append(kept, w.held(w.l, fmt.Sprint("kept", i), time.Hour))
		}
		for i, lease := range kept {
			if on := w.l.holds.get(w.l.name(lease.Key), lease.Token); on.lease == 0 {
				w.Errorf("%d of %d is forgotten", i, len(kept))
			}
		}
	})
}

func TestWhatEtcdRefusesForGoodIsAnErrorAtOnce(t *testing.T) {
	refused := coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)
	inBubble(t, coordtest.Options{}, func(w *world) {
		lease := w.held(w.l, "k", 10*time.Second)
		acquire := func() error { _, _, err := w.l.Acquire(w.Context(), "other", "o", 10*time.Second); return err }
		renew := func() error { _, _, err := w.l.Renew(w.Context(), lease, 10*time.Second); return err }
		longer := func() error { _, _, err := w.l.Renew(w.Context(), lease, 20*time.Second); return err }
		foreign := func() error { _, _, err := w.peer().Renew(w.Context(), lease, 10*time.Second); return err }
		release := func() error { return w.l.Release(w.Context(), lease) }
		for _, row := range []struct {
			what   string
			method coordtest.Method
			call   func() error
		}{
			{"acquire", coordtest.Range, acquire}, {"acquire", coordtest.Grant, acquire}, {"acquire", coordtest.Txn, acquire},
			{"renew", coordtest.KeepAlive, renew}, {"renew", coordtest.Range, renew}, {"renew", coordtest.Range, foreign},
			{"renew", coordtest.Grant, longer}, {"renew", coordtest.Txn, longer},
			{"release", coordtest.Txn, release},
		} {
			began := time.Now()
			fault := w.m.Inject(coordtest.Rule{Method: row.method, Action: refused})
			err := row.call()
			var denied rpctypes.EtcdError
			if err == nil || fault.Hits() != 1 || time.Since(began) != 0 || !strings.HasPrefix(err.Error(), row.what+` "`) {
				w.Errorf("%s, %s refused: %v, after %v and %d requests", row.what, row.method, err, time.Since(began), fault.Hits())
			}
			if row.method != coordtest.KeepAlive && (!errors.As(err, &denied) || denied.Code() != rpctypes.ErrPermissionDenied.(rpctypes.EtcdError).Code()) {
				w.Errorf("%s, %s refused: %v is no refusal of etcd's", row.what, row.method, err)
			}
		}
		w.released(w.l, lease)
		w.settle()
		if left := w.m.Keys(""); len(left) != 0 {
			w.Errorf("left behind: %v", left)
		}
	})
}

// A full etcd grants nothing and puts nothing, and renews and deletes as ever.
func TestAFullEtcd(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		lease := w.held(w.l, "k", 10*time.Second)
		w.m.NoSpace(true)
		if _, held, err := w.l.Acquire(w.Context(), "other", "o", time.Second); held || !errors.Is(err, rpctypes.ErrNoSpace) {
			w.Error(held, err)
		}
		if _, held, err := w.l.Renew(w.Context(), lease, time.Minute); held || !errors.Is(err, rpctypes.ErrNoSpace) {
			w.Error(held, err)
		}
		lease = w.renewed(w.l, lease, 10*time.Second)
		w.released(w.l, lease)
	})
}

func TestAClientThatIsClosedIsAskedNoMore(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		cli, err := w.m.NewClient()
		if err != nil {
			w.Fatal(err)
		}
		l := New(cli, Options{})
		lease := w.held(l, "k", 10*time.Second)
		_ = cli.Close()
		began := time.Now()
		_, _, acquire := l.Acquire(w.Context(), "other", "o", time.Second)
		_, _, renew := l.Renew(w.Context(), lease, time.Second)
		for what, err := range map[string]error{"acquire": acquire, "renew": renew, "release": l.Release(w.Context(), lease)} {
			if !errors.Is(err, coord.ErrClientClosed) || time.Since(began) != 0 {
				w.Errorf("%s: %v, after %v", what, err, time.Since(began))
			}
		}
		if err := l.Close(); err != nil {
			w.Error(err)
		}
	})
}

func TestAnEtcdWhoseHistoryWentBackIsNotBelieved(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.released(w.l, w.held(w.l, "k", 10*time.Second))
		snap := w.m.Snapshot()
		lease := w.held(w.l, "k", 10*time.Second)
		w.m.Restore(snap)
		for range 2 { // for as long as tokens would fall
			if _, held, err := w.l.Acquire(w.Context(), "k", "o", 10*time.Second); held || !errors.Is(err, coord.ErrStoreRegressed) {
				w.Error(held, err)
			}
		}
		if _, held, err := w.l.Renew(w.Context(), lease, 10*time.Second); held || !errors.Is(err, coord.ErrStoreRegressed) {
			w.Error(held, err)
		}
		for range 3 {
			_, _ = w.m.Put("elsewhere", "", 0)
		}
		if next := w.held(w.l, "k", 10*time.Second); next.Token <= lease.Token {
			w.Errorf("token %d after %d", next.Token, lease.Token)
		}
	})
}

// The answer to the Grant is the first that says so: that lease is given back.
func TestALeaseOfAHistoryThatWentBackIsRevoked(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.released(w.l, w.held(w.l, "k", 10*time.Second))
		w.m.Inject(coordtest.Rule{Method: coordtest.Grant, Action: coordtest.Before(func() { w.m.SetClusterID(7) })})
		if _, held, err := w.l.Acquire(w.Context(), "k", "o", 10*time.Second); held || !errors.Is(err, coord.ErrStoreRegressed) {
			w.Error(held, err)
		}
		w.settle()
		if left := w.m.Leases(); len(left) != 0 {
			w.Errorf("left behind: %+v", left)
		}
		// It is another cluster now, which is told once.
		w.released(w.l, w.held(w.l, "k", 10*time.Second))
	})
}

func TestTheNamesOfErrors(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		restore := silence(w.m)
		defer restore()
		_, _, err := w.l.Acquire(w.within(time.Second), "a\nb", "o", time.Second)
		if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), `acquire "a\nb": `) {
			w.Error(err)
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(w.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		if _, _, err := w.l.Acquire(ctx, "k", "o", time.Minute); !errors.Is(err, gone) {
			w.Error(err)
		}
		if slices.Contains(w.m.Keys(""), w.l.name("k")) {
			w.Error("acquired")
		}
	})
}
