package coord

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-coord/coord/coordtest"
)

// The context ends Term after the last proof was sent, whatever etcd does, and while the lease is kept.
func TestAHostsContextEndsWithItsProof(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		ctx := h.Context()
		w.must(ctx.Err())
		if h.Context() != ctx {
			w.Error("another context for the same proof")
		}
		p, err := h.Proven(w.Context())
		w.must(err)
		if want := bounds(10*time.Second, DefaultMargin, DefaultGrace); p.Bounds() != want || p.Context() != ctx {
			w.Errorf("%+v", p.Bounds())
		}
		w.m.ResetCalls()
		time.Sleep(time.Minute + time.Millisecond)
		if n := w.m.Calls(coordtest.KeepAlive); n < 60 || n > 61 {
			w.Errorf("%d renewals in a minute", n)
		}
		<-p.Renewed()
		w.must(ctx.Err())
		w.must(p.Check())
		if k := p.Keys(); k.Key != h1Key || k.Lease != h.LeaseID() || k.Rev != w.m.Get(h1Key).CreateRevision {
			w.Errorf("%+v", k)
		}

		term, kill := p.Deadlines()
		if kill-term != 5*time.Second || term-w.now() <= 2*time.Second || term-w.now() > 3500*time.Millisecond {
			w.Errorf("deadlines %v %v at %v", term, kill, w.now())
		}
		w.m.NoQuorum(true)
		<-p.Lost()
		if w.now() != term {
			w.Errorf("it ended at %v, want %v", w.now(), term)
		}
		if cause := context.Cause(ctx); !errors.Is(cause, ErrHostLost) || !errors.Is(cause, ErrUnproven) {
			w.Error(cause)
		}
		if h.Context().Err() == nil || !errors.Is(context.Cause(h.Context()), ErrUnproven) {
			w.Error("the context of an unproven host lives")
		}

		// Proven again: the registration went on, the proof is another one, and the old one stays over.
		rev := w.m.Get(h1Key).CreateRevision
		w.m.NoQuorum(false)
		again, err := h.Proven(w.Context())
		w.must(err)
		if again == p || again.Check() != nil || ctx.Err() == nil || w.m.Get(h1Key).CreateRevision != rev {
			w.Error("it is not another proof of the same registration")
		}
		if t2, k2 := p.Deadlines(); t2 != term || k2 != kill {
			w.Errorf("the deadlines of a proof that ended moved to %v %v", t2, k2)
		}
	})
}

// Plain renewals prove nothing: who asks late is not proven until the first read is answered.
func TestAHostIsNotProvenByPlainRenewals(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		time.Sleep(time.Minute)
		asked := w.now()
		if cause := context.Cause(h.Context()); !errors.Is(cause, ErrUnproven) || !errors.Is(cause, ErrHostLost) {
			w.Error(cause)
		}
		p, err := h.Proven(w.Context())
		w.must(err)
		w.must(p.Check())
		if w.now() != asked {
			w.Errorf("it took %v", w.now()-asked)
		}
	})
}

// What is not proven in time is waited for as long as the caller wants, or as the registration lasts.
func TestWaitingForAProofEnds(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		time.Sleep(time.Minute)
		w.m.NoQuorum(true)
		ctx, cancel := context.WithTimeout(w.Context(), 3*time.Second)
		defer cancel()
		if _, err := h.Proven(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrUnproven) {
			w.Error(err)
		}
		w.m.NoQuorum(false)
		time.AfterFunc(time.Second, func() { w.m.NoQuorum(true) })
		_, err := h.Proven(w.Context())
		w.must(err)
		time.Sleep(10 * time.Second)
		w.m.NoQuorum(false)
		w.m.Stop(0)
		done := make(chan error, 1)
		go func() { _, err := h.Proven(w.Context()); done <- err }()
		synctest.Wait()
		go func() { _ = h.Stop(w.Context()) }()
		if err := <-done; !errors.Is(err, ErrClosed) {
			w.Error(err)
		}
		w.m.Cont(0)
	})
}

func TestAProofEndsWithTheRegistration(t *testing.T) {
	for name, row := range map[string]struct {
		end   func(w *world, h *HostLiveness)
		cause []error
		not   error
	}{
		"key deleted":   {func(w *world, h *HostLiveness) { w.m.Delete(h1Key) }, []error{ErrHostLost, ErrKeyGone}, ErrTermLost},
		"key replaced":  {func(w *world, h *HostLiveness) { _, _ = w.m.Put(h1Key, "x", 0) }, []error{ErrHostLost, ErrKeyReplaced}, ErrTermLost},
		"lease revoked": {func(w *world, h *HostLiveness) { _ = w.m.Revoke(h.LeaseID()) }, []error{ErrHostLost}, ErrClosed},
		"stopped":       {func(w *world, h *HostLiveness) { w.must(h.Stop(w.Context())) }, []error{ErrClosed}, ErrHostLost},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				h := w.live(h1, LivenessOptions{})
				ctx := h.Context()
				time.Sleep(1500 * time.Millisecond)
				at := w.now()
				row.end(w, h)
				<-ctx.Done()
				if w.now() != at {
					w.Errorf("it ended after %v", w.now()-at)
				}
				for _, want := range row.cause {
					if cause := context.Cause(ctx); !errors.Is(cause, want) || errors.Is(cause, row.not) {
						w.Errorf("%v, want %v", cause, want)
					}
				}
				synctest.Wait()
				switch h.State() {
				case LivenessHealthy:
					p, err := h.Proven(w.Context())
					w.must(err)
					if p.Context() == ctx || p.Check() != nil {
						w.Error("the proof of the registration before goes on")
					}
				case LivenessStopped:
					if cause := context.Cause(h.Context()); !errors.Is(cause, ErrClosed) {
						w.Error(cause)
					}
				default:
					if cause := context.Cause(h.Context()); !errors.Is(cause, ErrHostLost) {
						w.Error(cause)
					}
				}
			})
		})
	}
}

// A machine that was suspended learns of it on the first look.
func TestASuspendedHostIsNotProvenOnTheFirstLook(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		p, err := h.Proven(w.Context())
		w.must(err)
		w.suspend(4 * time.Second)
		if err := p.Check(); !errors.Is(err, ErrUnproven) || p.Context().Err() == nil {
			w.Error(err)
		}
	})
}

// Proofs asked for while a heal is under way begin with the return.
func TestProofsAskedForWhileHealingComeWithTheReturn(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		h := w.live(h1, LivenessOptions{})
		time.Sleep(2 * time.Second)
		w.m.NoSpace(true)
		w.must(w.m.Revoke(h.LeaseID()))
		w.await(h, LivenessHealing)
		if cause := context.Cause(h.Context()); !errors.Is(cause, ErrHostLost) {
			w.Error(cause)
		}
		time.AfterFunc(time.Second, func() { w.m.NoSpace(false) })
		p, err := h.Proven(w.Context())
		w.must(err)
		time.Sleep(time.Minute)
		w.must(p.Check())
	})
}
