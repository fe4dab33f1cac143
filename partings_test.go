package coord

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
)

// lead makes n elections of one session lead.
func (w *world) lead(s *Session, n int) (all []*Election) {
	w.Helper()
	for i := range n {
		e := w.election(s, ElectionOptions{Key: fmt.Sprintf("/e/%d", i)})
		w.must(e.Campaign(w.Context(), "a"))
		all = append(all, e)
	}
	return all
}

// resign makes elections resign one after the other, none waiting for another's answer; wait gives what each got.
func (w *world) resign(ctx context.Context, all []*Election) (wait func() []error) {
	var calls sync.WaitGroup
	errs := make([]error, len(all))
	for i, e := range all {
		calls.Go(func() { errs[i] = e.Resign(ctx) })
		synctest.Wait()
	}
	return func() []error { calls.Wait(); return errs }
}

// Red when each delete is a Txn of its own, or when those that few are ahead of are made to wait.
func TestTermsThatEndTogetherShareRequests(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		all := w.lead(w.session(SessionOptions{}), partingsAtOnce+2*maxOps)
		before := w.m.Calls(coordtest.Txn)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: coordtest.Forever, Action: coordtest.Delay(100 * time.Millisecond)})
		wait := w.resign(w.Context(), all)
		if n := w.m.Calls(coordtest.Txn) - before; n != partingsAtOnce {
			w.Errorf("%d requests under way, want %d", n, partingsAtOnce)
		}
		w.must(errors.Join(wait()...))
		if n := w.m.Calls(coordtest.Txn) - before; n != partingsAtOnce+2 {
			w.Errorf("%d requests, want %d", n, partingsAtOnce+2)
		}
		if w.keys() != "[]" {
			w.Error(w.keys())
		}
	})
}

// Red when a delete of several is not guarded by itself, or what it leaves is not looked at.
func TestTermsThatEndTogetherAreGuardedEachByItself(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		all := w.lead(s, partingsAtOnce+4)
		key := func(i int) string { return fmt.Sprintf("/e/%d/%s", i, leaseHex(s)) }
		foreign, err := w.m.Grant(0, 60)
		w.must(err)

		// While the last four wait: one stays as it is, one is put again as its own, and two become somebody else's.
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: partingsAtOnce, Action: coordtest.Delay(10 * time.Millisecond)})
		wait := w.resign(w.Context(), all)
		again, moved, anew := key(partingsAtOnce+1), key(partingsAtOnce+2), key(partingsAtOnce+3)
		w.m.Delete(anew)
		for key, lease := range map[string]clientv3.LeaseID{again: s.Lease(), moved: foreign, anew: foreign} {
			_, err = w.m.Put(key, "x", lease)
			w.must(err)
		}
		w.must(errors.Join(wait()...))
		if want := fmt.Sprint([]string{moved, anew}); w.keys() != want {
			w.Errorf("%s is left, want %s", w.keys(), want)
		}
	})
}

// The last of a client's deletes fares as the first: none waits for request after request of an etcd that is silent.
func TestTermsThatEndWhileEtcdIsSilentEndInDoubtTogether(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		all := w.lead(s, partingsAtOnce+3*maxOps)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		gone, cancel := context.WithCancel(w.Context())
		cancel()
		began := w.now()
		for _, err := range w.resign(gone, all)() {
			if !errors.Is(err, ErrUndecided) {
				w.Fatal(err)
			}
		}
		if took := w.now() - began; took != s.tryFor() {
			w.Errorf("it took %v, want one request: %v", took, s.tryFor())
		}
	})
}

// One key that may not be deleted keeps no other.
func TestATermThatEndsWithOneThatIsRefusedEnds(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		all := w.lead(w.session(SessionOptions{}), partingsAtOnce+2)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: partingsAtOnce, Action: coordtest.Delay(10 * time.Millisecond)})
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
		w.must(errors.Join(w.resign(w.Context(), all)()...))
		if w.keys() != "[]" {
			w.Error(w.keys())
		}
	})
}

// A Txn has the shortest bound of those in it.
func TestTermsThatEndTogetherAreBoundedByTheShortest(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		short := w.session(SessionOptions{TTL: 4 * time.Second})
		cli := short.cli
		long, err := NewSession(w.Context(), cli, SessionOptions{TTL: 20 * time.Second, Clock: w.now})
		w.must(err)
		defer func() { _ = long.Close(context.Background()) }()
		all := w.lead(long, partingsAtOnce+1)
		last := w.election(short, ElectionOptions{Key: "/e/short"})
		w.must(last.Campaign(w.Context(), "a"))
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: partingsAtOnce, Action: coordtest.Delay(10 * time.Millisecond)})
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.LoseRequest()})
		began := w.now()
		w.must(errors.Join(w.resign(w.Context(), append(all, last))()...))
		if took := w.now() - began; took != 10*time.Millisecond+short.tryFor() {
			w.Errorf("it took %v", took)
		}
	})
}
