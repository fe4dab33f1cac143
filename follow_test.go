package coord

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
)

// notes is a handler that keeps what it is told.
type notes struct {
	heard chan string // lists and events
	slow  time.Duration
	ask   chan struct{}

	mu       sync.Mutex
	asOf     time.Time
	upTo     int64
	troubles []error
}

func (n *notes) List(all []*mvccpb.KeyValue, _ int64) {
	text := "list"
	for _, kv := range all {
		text += fmt.Sprintf(" %s=%s", kv.Key, kv.Value)
	}
	n.heard <- text
}

func (n *notes) Events(events []*clientv3.Event, rev int64) {
	time.Sleep(n.slow) // fake time
	text := "events"
	for _, ev := range events {
		switch {
		case ev.Kv.ModRevision != rev:
			text += fmt.Sprintf(" %s at %d, told as %d", ev.Kv.Key, ev.Kv.ModRevision, rev)
		case ev.Type == clientv3.EventTypeDelete:
			text += fmt.Sprintf(" -%s", ev.Kv.Key)
		default:
			text += fmt.Sprintf(" %s=%s", ev.Kv.Key, ev.Kv.Value)
		}
	}
	n.heard <- text
}

func (n *notes) Fresh(at time.Time, rev int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asOf, n.upTo = at, rev
}

func (n *notes) Trouble(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.troubles = append(n.troubles, err)
}

// age is how old what was told may be.
func (n *notes) age() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.asOf)
}

// includes reports what revision is proven to be included in what was told.
func (n *notes) includes() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.upTo
}

// troubled reports whether it was told of that trouble.
func (n *notes) troubled(want error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, err := range n.troubles {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

// following is a Follow under way.
type following struct {
	*world
	*notes
	cli    *clientv3.Client
	cancel context.CancelCauseFunc
	done   chan error
}

// inFollow runs f beside a Follow of "/p/", which has to end as its context does.
func inFollow(t *testing.T, n *notes, f func(w *following)) {
	t.Helper()
	inBubble(t, coordtest.Options{}, func(w *world) {
		n.heard, n.ask = make(chan string, 10_000), make(chan struct{})
		w.write("/p/a", "1")
		ctx, cancel := context.WithCancelCause(w.Context())
		fw := &following{world: w, notes: n, cli: w.m.Client(w), cancel: cancel, done: make(chan error, 1)}
		go func() { fw.done <- Follow(ctx, fw.cli, FollowOptions{Prefix: "/p/", Ask: n.ask}, n) }()
		fw.hears("list /p/a=1")
		f(fw)
		cancel(errEnough)
		if err := <-fw.done; !errors.Is(err, errEnough) && !errors.Is(err, ErrClientClosed) {
			w.Error(err)
		}
	})
}

func TestFollowOfARange(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		for _, key := range []string{"/a/9", "/b/1", "/b/2", "/c/3", "/d", "/d/4"} {
			w.write(key, "0")
		}
		n := &notes{heard: make(chan string, 100)}
		ctx, cancel := context.WithCancelCause(w.Context())
		fw := &following{world: w, notes: n, done: make(chan error, 1)}
		// The last page ends where the range does.
		go func() {
			fw.done <- Follow(ctx, w.m.Client(w), FollowOptions{Prefix: "/b/", End: "/d", PageSize: 2}, n)
		}()
		fw.hears("list /b/1=0 /b/2=0 /c/3=0")
		for _, key := range []string{"/a/9", "/b/2", "/d", "/d/4", "/c/"} {
			w.write(key, "1")
		}
		fw.hears("events /b/2=1", "events /c/=1")
		cancel(errEnough)
		if err := <-fw.done; !errors.Is(err, errEnough) || len(n.heard) != 0 {
			w.Errorf("%v, and told %d more", err, len(n.heard))
		}
	})
}

var errEnough = errors.New("enough")

func (w *world) write(key, value string) {
	w.Helper()
	_, err := w.m.Put(key, value, 0)
	w.must(err)
}

func (w *following) hears(want ...string) {
	w.Helper()
	for _, one := range want {
		select {
		case got := <-w.heard:
			if got != one {
				w.Fatalf("told %q, want %q", got, one)
			}
		case <-time.After(time.Minute):
			w.Fatalf("never told %q", one)
		}
	}
}

func TestFollowProvesAtOnceWhenItIsAsked(t *testing.T) {
	inFollow(t, &notes{}, func(w *following) {
		synctest.Wait() // it has made its watch
		time.Sleep(time.Second)
		w.write("/other", "1")
		w.ask <- struct{}{}
		synctest.Wait()
		if w.age() != 0 || w.includes() != w.m.Rev() {
			t.Errorf("it is %v old, and includes revision %d of %d", w.age(), w.includes(), w.m.Rev())
		}

		// While one answer is on its way, what is asked then is about later.
		w.m.HoldWatches(true)
		w.ask <- struct{}{}
		synctest.Wait()
		time.Sleep(time.Second) // fake time
		w.write("/other", "2")
		w.ask <- struct{}{}
		synctest.Wait()
		if w.age() != time.Second {
			t.Errorf("it is %v old", w.age())
		}
		w.m.HoldWatches(false)
		synctest.Wait()
		if w.age() != 0 || w.includes() != w.m.Rev() {
			t.Errorf("it is %v old, and includes revision %d of %d", w.age(), w.includes(), w.m.Rev())
		}
		time.Sleep(4 * time.Second) // fake time
		if w.age() != 4*time.Second {
			t.Errorf("it is %v old: it has proven what nobody asked for", w.age())
		}
	})
}

func (w *following) hearsNothing(d time.Duration) {
	w.Helper()
	select {
	case got := <-w.heard:
		w.Fatalf("told %q, want nothing", got)
	case <-time.After(d):
	}
}

// change is a Txn of ops by another client.
func (w *following) change(ops ...clientv3.Op) {
	w.Helper()
	_, err := w.m.Client(w).Txn(w.Context()).Then(ops...).Commit()
	w.must(err)
}

func TestFollowTellsEachRevisionWhole(t *testing.T) {
	inFollow(t, &notes{}, func(w *following) {
		w.change(clientv3.OpPut("/p/b", "1"), clientv3.OpPut("/q", "1"), clientv3.OpPut("/p/c", "1"), clientv3.OpDelete("/p/a"))
		w.change(clientv3.OpPut("/q", "2"))
		w.change(clientv3.OpDelete("/p/", clientv3.WithPrefix()))
		lease, err := w.m.Grant(0, 60)
		w.must(err)
		for _, key := range []string{"/p/x", "/q/x", "/p/y"} {
			_, err := w.m.Put(key, "1", lease)
			w.must(err)
		}
		w.m.Expire(lease)
		w.hears("events /p/b=1 /p/c=1 -/p/a", "events -/p/b -/p/c", "events /p/x=1", "events /p/y=1", "events -/p/x -/p/y")
		w.hearsNothing(time.Minute)
	})
}

// TestFollowTellsWhatItMissedRevisionByRevision: all of it comes in one response.
func TestFollowTellsWhatItMissedRevisionByRevision(t *testing.T) {
	inFollow(t, &notes{}, func(w *following) {
		synctest.Wait()
		w.m.Kill(0)
		w.write("/p/b", "1")
		w.write("/p/b", "2")
		w.m.Revive(0)
		w.change(clientv3.OpPut("/p/c", "1"), clientv3.OpPut("/p/d", "1"))
		w.hears("events /p/b=1", "events /p/b=2", "events /p/c=1 /p/d=1")
		w.hearsNothing(time.Minute)
	})
}

func TestFollowListsAnewWhereEventsAreGone(t *testing.T) {
	t.Run("compacted", func(t *testing.T) {
		inFollow(t, &notes{}, func(w *following) {
			synctest.Wait()
			w.m.Kill(0)
			w.write("/p/b", "1")
			w.m.Delete("/p/a")
			catchUp(w.world)
			w.must(w.m.Compact(w.m.Rev()))
			w.m.Revive(0)
			w.hears("list /p/b=1")
			w.write("/p/b", "2")
			w.hears("events /p/b=2")
			w.hearsNothing(time.Minute)
			if !w.troubled(rpctypes.ErrCompacted) || w.age() > defaultStaleAfter {
				w.Errorf("%v %v", w.troubles, w.age())
			}
		})
	})
	t.Run("restored", func(t *testing.T) {
		inFollow(t, &notes{}, func(w *following) {
			snap := w.m.Snapshot()
			w.write("/p/b", "1")
			w.hears("events /p/b=1")
			time.Sleep(6 * time.Second) // fake time: a question was answered
			w.m.Restore(snap)
			w.hears("list /p/a=1")
			w.write("/p/c", "1")
			w.hears("events /p/c=1")
			w.hearsNothing(time.Minute)
			if !w.troubled(ErrStoreRegressed) {
				w.Error(w.troubles)
			}
		})
	})
}

// TestFreshIsProvenNotAssumed: a connection that is open, and a watch that says nothing, are no proof.
func TestFreshIsProvenNotAssumed(t *testing.T) {
	for name, hurt := range map[string]func(w *following) (heal func()){
		"a silent member": func(w *following) func() { w.m.Stop(0); return func() { w.m.Cont(0) } },
		"no quorum":       func(w *following) func() { w.m.NoQuorum(true); return func() { w.m.NoQuorum(false) } },
		"a watch that says nothing": func(w *following) func() {
			w.m.HoldWatches(true)
			return func() { w.m.HoldWatches(false) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFollow(t, &notes{}, func(w *following) {
				time.Sleep(time.Minute) // fake time
				if w.age() > defaultStaleAfter || len(w.troubles) > 0 {
					w.Errorf("while all is well: %v %v", w.age(), w.troubles)
				}
				heal := hurt(w)
				catchUp(w.world)
				w.write("/p/b", "1")
				time.Sleep(time.Minute) // fake time
				if w.age() < time.Minute || len(w.troubles) == 0 {
					w.Errorf("%v %v", w.age(), w.troubles)
				}
				heal()
				w.hears("events /p/b=1")
				w.hearsNothing(defaultStaleAfter)
				if w.age() > defaultStaleAfter {
					w.Errorf("after it: %v", w.age())
				}
			})
		})
	}
}

func TestFollowWaitsForItsHandler(t *testing.T) {
	const n = 1000
	inFollow(t, &notes{slow: 10 * time.Millisecond}, func(w *following) {
		for i := range n {
			w.write("/p/a", fmt.Sprint(i))
		}
		for i := range n {
			w.hears(fmt.Sprintf("events /p/a=%d", i))
		}
		w.hearsNothing(time.Minute)
	})
}

func TestFollowEndsWithItsContextOrItsClient(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *following)
		want error
	}{
		"the context": {func(w *following) { w.cancel(errEnough) }, errEnough},
		"the client":  {func(w *following) { _ = w.cli.Close() }, ErrClientClosed},
	} {
		t.Run(name, func(t *testing.T) {
			inFollow(t, &notes{}, func(w *following) {
				time.Sleep(time.Minute) // fake time
				c.end(w)
				err := <-w.done
				if !errors.Is(err, c.want) || len(w.troubles) > 0 {
					w.Errorf("%v, after %v", err, w.troubles)
				}
				w.done <- err
			})
		})
	}
}

// The client gives its calls to the members in turn. Where a watch that is not answered is followed by one question each
// time, it would meet the member that was stopped for ever.
func TestFollowLeavesAMemberThatWasStopped(t *testing.T) {
	for before := range 2 {
		t.Run(fmt.Sprintf("after %d calls", before), func(t *testing.T) {
			inBubble(t, coordtest.Options{Members: 2}, func(w *world) {
				cli := w.m.Client(w)
				for range before {
					_, err := cli.Get(w.Context(), "/p/")
					w.must(err)
				}
				w.m.Inject(coordtest.Rule{Method: coordtest.Watch, Action: coordtest.Before(func() { w.m.Stop(0) })})
				ctx, cancel := context.WithCancel(w.Context())
				n, done := &notes{heard: make(chan string, 99)}, make(chan struct{})
				go func() {
					defer close(done)
					_ = Follow(ctx, cli, FollowOptions{Prefix: "/p/", StaleAfter: time.Second}, n)
				}()
				fw := &following{world: w, notes: n}
				fw.hears("list")
				synctest.Wait()
				_, err := w.m.Client(w, 1).Put(w.Context(), "/p/a", "1")
				w.must(err)
				fw.hears("events /p/a=1")
				w.m.Cont(0)
				cancel()
				<-done
			})
		})
	}
}

func TestNothingIsFollowedWithoutAList(t *testing.T) {
	refuse := coordtest.Rule{Times: coordtest.Forever, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)}
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.m.Inject(refuse)
		err := Follow(w.Context(), w.m.Client(w), FollowOptions{Prefix: "/p/"}, nil)
		if !errors.Is(err, rpctypes.ErrPermissionDenied) || !strings.Contains(err.Error(), `list "/p/"`) || w.now() != 0 {
			w.Errorf("%v at %v", err, w.now())
		}
		w.m.Heal()
		w.m.Stop(0)
		if err = Follow(w.Context(), w.m.Client(w), FollowOptions{Prefix: "/p/"}, nil); !errors.Is(err, context.DeadlineExceeded) || w.now() > 17*time.Second {
			w.Errorf("%v at %v", err, w.now())
		}
		ctx, cancel := context.WithTimeoutCause(w.Context(), time.Second, errEnough)
		defer cancel()
		if err = Follow(ctx, w.m.Client(w), FollowOptions{Prefix: "/p/"}, nil); !errors.Is(err, errEnough) {
			w.Error(err)
		}
	})
	t.Run("options", func(t *testing.T) {
		t.Parallel()
		for want, o := range map[string]FollowOptions{
			"Prefix":           {},
			"PageSize -1":      {Prefix: "/p/", PageSize: -1},
			`End "/p/"`:        {Prefix: "/p/", End: "/p/"},
			"StaleAfter -1s":   {Prefix: "/p/", StaleAfter: -time.Second},
			"StaleAfter 999ms": {Prefix: "/p/", StaleAfter: 999 * time.Millisecond},
		} {
			if err := Follow(t.Context(), nil, o, nil); !errors.Is(err, ErrInvalidOption) || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", want, err)
			}
		}
	})
}
