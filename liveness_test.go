package coord

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord/coordtest"
)

// host registers a host, on a client of its own, and stops it at the end.
func (w *world) live(m HostMetadata, o LivenessOptions, members ...int) *HostLiveness {
	w.Helper()
	h, err := w.tryHost(w.Context(), m, o, members...)
	w.must(err)
	return h
}

func (w *world) tryHost(ctx context.Context, m HostMetadata, o LivenessOptions, members ...int) (*HostLiveness, error) {
	o.Clock = w.now
	h, err := RegisterHostLiveness(ctx, w.m.Client(w, members...), m, o)
	if err == nil {
		w.Cleanup(func() { _ = h.Stop(context.Background()) })
	}
	return h, err
}

// said is what the key of a host says.
func (w *world) said(key string) HostMetadata {
	w.Helper()
	kv := w.m.Get(key)
	if kv == nil {
		w.Fatalf("no key %s; keys %s", key, w.keys())
	}
	m, err := DecodeHost(kv)
	w.must(err)
	return m
}

// await waits for a state.
func (w *world) await(h *HostLiveness, s LivenessState) LivenessChange {
	w.Helper()
	late := time.NewTimer(time.Hour)
	defer late.Stop()
	for {
		select {
		case c := <-h.Changes():
			if c.State == s {
				return c
			}
		case <-late.C:
			w.Fatalf("state %v, want %v", h.State(), s)
		}
	}
}

// nothing fails where anything is left in etcd.
func (w *world) nothing() {
	w.Helper()
	if w.keys() != "[]" || len(w.m.Leases()) != 0 {
		w.Errorf("left: keys %s, leases %v", w.keys(), w.m.Leases())
	}
}

var h1 = HostMetadata{HostUUID: "h1", Hostname: "dc1-h1", Hypervisor: "qemu", Version: "1"}

const h1Key = HostsPrefix + "h1"

func TestAHostIsRegisteredUntilItStops(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(HostMetadata{HostUUID: "h1", Hostname: "dc1-h1", Labels: map[string]string{"rack": "r1"}}, LivenessOptions{})
		kv := w.m.Get(h1Key)
		if h.Key() != h1Key || kv == nil || kv.Lease != int64(h.LeaseID()) || h.State() != LivenessHealthy {
			w.Fatalf("key %s, lease %x, state %v, in etcd %v", h.Key(), h.LeaseID(), h.State(), kv)
		}
		if m := w.said(h1Key); m.StartedAt != time.Now().UnixNano() || m.Labels["rack"] != "r1" || m.Hostname != "dc1-h1" {
			w.Errorf("%+v", m)
		}
		if left := w.m.Leases(); len(left) != 1 || left[0].TTL != 10 {
			w.Errorf("leases %v", left)
		}
		w.m.ResetCalls()
		time.Sleep(time.Minute + time.Millisecond)
		if n, reads := w.m.Calls(coordtest.KeepAlive), w.m.Calls(coordtest.Range)+w.m.Calls(coordtest.Txn); n != 20 || reads != 1 {
			w.Errorf("%d renewals and %d reads in a minute, want 20 and 1", n, reads)
		}
		before := w.m.Rev()
		w.must(h.Stop(w.Context()))
		w.must(h.Stop(w.Context()))
		w.nothing()
		// It said goodbye, and then it was gone.
		if w.m.Rev() != before+2 || h.State() != LivenessStopped {
			w.Errorf("revision %d after %d, state %v", w.m.Rev(), before, h.State())
		}
		if c := w.await(h, LivenessStopped); !errors.Is(c.Err, ErrClosed) {
			w.Error(c)
		}
		if _, open := <-h.Changes(); open {
			w.Error("the channel is open")
		}
		if err := h.UpdateMetadata(w.Context(), h1); !errors.Is(err, ErrClosed) {
			w.Error(err)
		}
	})
}

// The goodbye stands in the key, on the lease, before the lease goes.
func TestAHostThatStopsSaysSoFirst(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		var last string
		w.m.Inject(coordtest.Rule{Method: coordtest.Revoke, Action: coordtest.Before(func() { last = string(w.m.Get(h1Key).Value) })})
		w.must(h.Stop(w.Context()))
		if want := encodeStopping(h.want); last != want {
			w.Errorf("the last value is %s, want %s", last, want)
		}
	})
}

func TestOptionsOfAHostAreChecked(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		for _, row := range []struct {
			uuid string
			o    LivenessOptions
			name string
		}{
			{"", LivenessOptions{}, "uuid"}, {"a/b", LivenessOptions{}, "uuid"},
			{"a", LivenessOptions{LeaseTTLSec: -1}, "ttl"}, {"a", LivenessOptions{LeaseTTLSec: 1 << 40}, "ttl"},
			{"a", LivenessOptions{Margin: 6 * time.Second}, "margin"}, {"a", LivenessOptions{Grace: -1}, "grace"},
			{"a", LivenessOptions{Refresh: 5 * time.Second}, "refresh"}, {"a", LivenessOptions{Refresh: time.Millisecond}, "refresh"},
			{"a", LivenessOptions{Refresh: -1}, "refresh"},
		} {
			if _, err := w.tryHost(w.Context(), HostMetadata{HostUUID: row.uuid}, row.o); !errors.Is(err, ErrInvalidOption) || !strings.Contains(err.Error(), row.name) {
				w.Errorf("%+v: %v", row, err)
			}
		}
		gone, cancel := context.WithCancelCause(w.Context())
		gave := errors.New("gave up")
		cancel(gave)
		if _, err := w.tryHost(gone, h1, LivenessOptions{}); !errors.Is(err, gave) || w.m.Calls(coordtest.Grant) != 0 {
			w.Error(err)
		}
		h := w.live(HostMetadata{HostUUID: "a", StartedAt: 7}, LivenessOptions{Prefix: "/other", LeaseTTLSec: 3})
		if h.Key() != "/other/a" || w.said("/other/a").StartedAt != 7 || h.o.Refresh != time.Second {
			w.Errorf("%s %v", h.Key(), h.o)
		}
	})
}

func TestAnUpdateKeepsKeyAndLease(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		before := w.m.Get(h1Key)
		m := h1
		m.Version, m.Labels = "2", map[string]string{"a": "b"}
		w.must(h.UpdateMetadata(w.Context(), m))
		m.Labels["a"] = "changed by the caller"
		after := w.m.Get(h1Key)
		if after.CreateRevision != before.CreateRevision || after.Lease != before.Lease {
			w.Errorf("from %v to %v", before, after)
		}
		if got := w.said(h1Key); got.Version != "2" || got.Labels["a"] != "b" || got.StartedAt != h.want.StartedAt || got.StartedAt == 0 {
			w.Errorf("%+v", got)
		}
		for _, bad := range []HostMetadata{{HostUUID: "h2"}, {}} {
			if err := h.UpdateMetadata(w.Context(), bad); !errors.Is(err, ErrInvalidOption) {
				w.Error(err)
			}
		}
		if h.State() != LivenessHealthy || w.said(h1Key).Version != "2" {
			w.Error(h.State())
		}
	})
}

// Updates that come together, and one that lands late, leave the last one given.
func TestTheLastUpdateWins(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		with := func(v string) HostMetadata { m := h1; m.Version = v; return m }

		// The first one's request lands after the second one's.
		release := make(chan struct{})
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Late(release)})
		short, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if err := h.UpdateMetadata(short, with("late")); !errors.Is(err, context.DeadlineExceeded) {
			w.Error(err)
		}
		w.must(h.UpdateMetadata(w.Context(), with("2")))
		close(release)
		time.Sleep(time.Second)
		if v := w.said(h1Key).Version; v != "2" {
			w.Errorf("version %s", v)
		}

		// Of three at once the last one is written, at most with one before it.
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Delay(time.Second)})
		var all sync.WaitGroup
		for _, v := range []string{"3", "4", "5"} {
			all.Go(func() {
				if err := h.UpdateMetadata(w.Context(), with(v)); err != nil {
					w.Error(err)
				}
			})
			synctest.Wait()
		}
		// Who gives up while another writes is told so, and its word is kept.
		short, cancel = context.WithTimeout(w.Context(), time.Millisecond)
		defer cancel()
		if err := h.UpdateMetadata(short, with("6")); !errors.Is(err, context.DeadlineExceeded) {
			w.Error(err)
		}
		before := w.m.Rev()
		all.Wait()
		if v := w.said(h1Key).Version; v != "6" || w.m.Rev() != before+2 {
			w.Errorf("version %s after %d writes", v, w.m.Rev()-before)
		}
	})
}

// A write of somebody else's to the key that leaves it ours is written over by the next of ours.
func TestAKeyThatWasTouchedByHandIsWrittenOver(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		_, err := w.m.Put(h1Key, "nonsense", h.LeaseID())
		w.must(err)
		m := h1
		m.Version = "2"
		w.must(h.UpdateMetadata(w.Context(), m))
		if v := w.said(h1Key).Version; v != "2" || h.State() != LivenessHealthy {
			w.Error(v, h.State())
		}
		_, err = w.m.Put(h1Key, "nonsense", h.LeaseID())
		w.must(err)
		w.must(h.Stop(w.Context()))
		w.nothing()
	})
}

func TestAHostSaysWhatHappensToIt(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		var log bytes.Buffer
		var gaps []time.Duration
		h := w.live(h1, LivenessOptions{
			Logger:  slog.New(slog.NewTextHandler(&log, nil)),
			Metrics: Metrics{Healed: func(gap time.Duration) { gaps = append(gaps, gap) }},
		})
		time.Sleep(2 * time.Second)
		w.must(w.m.Revoke(h.LeaseID()))
		w.await(h, LivenessHealthy)
		synctest.Wait()
		w.must(h.Stop(w.Context()))
		var texts []string
		for line := range strings.Lines(log.String()) {
			_, text, _ := strings.Cut(line, "msg=")
			texts = append(texts, text[:strings.Index(text, " host_uuid=h1")])
		}
		if want := []string{`"host lost"`, `"host registered again"`}; !slices.Equal(texts, want) || !strings.Contains(log.String(), "reason=\"own key deleted\"") {
			w.Errorf("log:\n%s", &log)
		}
		if len(gaps) != 1 || gaps[0] != 0 {
			w.Errorf("gaps %v", gaps)
		}
		if got := fmt.Sprint(LivenessHealthy, LivenessHealing, LivenessDuplicate, LivenessStopped, LivenessState(9)); got != "healthy healing duplicate stopped LivenessState(9)" {
			w.Error(got)
		}
	})
}

// A key that is gone before its watch says so is not put again by an update or a goodbye: that is for a heal.
func TestAKeyThatIsGoneIsNotPutByAnUpdate(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		w.m.HoldWatches(true)
		w.m.Delete(h1Key)
		before := w.m.Rev()
		w.must(h.UpdateMetadata(w.Context(), h1))
		if w.m.Rev() != before {
			w.Errorf("keys %s", w.keys())
		}
		// Another of the same name is not the one that is registered.
		_, err := w.m.Put(h1Key, "by hand", h.LeaseID())
		w.must(err)
		w.must(h.UpdateMetadata(w.Context(), h1))
		w.m.HoldWatches(false)
		w.await(h, LivenessHealthy)
		if got := w.m.Get(h1Key); got == nil || got.CreateRevision != h.on.claim.rev {
			w.Errorf("%v", got)
		}

		w.m.HoldWatches(true)
		w.m.Delete(h1Key)
		before = w.m.Rev()
		w.must(h.Stop(w.Context()))
		if w.m.Rev() != before {
			w.Errorf("revision %d after %d", w.m.Rev(), before)
		}
		w.m.HoldWatches(false)
		w.nothing()
	})
}

func TestAnUpdateUnderWayEndsWithStop(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.LateBy(time.Second)})
		done := make(chan error, 1)
		go func() { done <- h.UpdateMetadata(w.Context(), HostMetadata{HostUUID: "h1", Version: "2"}) }()
		synctest.Wait()
		w.must(h.Stop(w.Context()))
		if err := <-done; !errors.Is(err, ErrClosed) {
			w.Error(err)
		}
		time.Sleep(2 * time.Second)
		w.nothing()
	})
}

// What could not be taken back after a registration that failed is told.
func TestARegistrationThatFailsTellsWhatItLeft(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		for _, method := range []coordtest.Method{coordtest.Txn, coordtest.Revoke} {
			w.m.Inject(coordtest.Rule{Method: method, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
		}
		_, err := w.tryHost(w.Context(), h1, LivenessOptions{})
		if !errors.Is(err, rpctypes.ErrPermissionDenied) || !strings.Contains(err.Error(), "put host") || !strings.Contains(err.Error(), "left to its ttl") {
			w.Error(err)
		}
	})
}

func TestAHostUsesTheMachinesClockByDefault(t *testing.T) {
	t.Parallel()
	var o LivenessOptions
	if err := o.check(); err != nil || o.Clock == nil || o.Clock() <= 0 || o.Refresh != DefaultRefreshInterval {
		t.Errorf("%v %+v", err, o)
	}
}
