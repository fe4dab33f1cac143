package coord

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-coord/coord/coordtest"
)

// TestEveryCallOfAHostFails tells the story of a host, that registers, is proven, updated, loses its lease and its
// key, and stops, with each of its calls failing in each way, once and twice in a row. Whatever happens: a
// registration that failed leaves nothing, one that came about is there a minute after the last fault and
// says what it was told last, and at the end nothing is left in etcd.
func TestEveryCallOfAHostFails(t *testing.T) {
	withEachFailure(t, 7, (*world).hostStory)
}

func (w *world) hostStory() {
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	h, err := RegisterHostLiveness(ctx, w.m.Client(w), h1, LivenessOptions{Clock: w.now})
	if err != nil {
		w.Logf("register: %v", err)
		time.Sleep(30 * time.Second) // a late request has landed, and what could not be revoked is over
		w.nothing()
		return
	}
	m := h1
	m.Version = "2"
	w.Logf("update: %v", h.UpdateMetadata(ctx, m))
	pass := func(d time.Duration) { time.Sleep(d) } // in fake time
	pass(2 * time.Second)
	_ = h.Context()
	pass(2 * time.Second)
	w.m.Delete(h1Key)
	pass(2 * time.Second)
	_ = w.m.Revoke(h.LeaseID())
	pass(time.Minute)

	if got := w.said(h1Key); got.Version != "2" || h.State() != LivenessHealthy {
		w.Errorf("%v: %+v", h.State(), got)
	}
	if p, err := h.Proven(ctx); err != nil || p.Check() != nil {
		w.Error(err)
	}
	if n := len(w.m.Leases()); n != 1 {
		w.Errorf("%d leases", n)
	}
	w.Logf("stop: %v", h.Stop(ctx))
	pass(30 * time.Second)
	w.nothing()
}

// The calls of a Stop fail, each in each way.
func TestEveryCallOfAStopFails(t *testing.T) {
	for _, method := range []coordtest.Method{coordtest.Txn, coordtest.Revoke} {
		for name := range actions(nil) {
			for times := 1; times <= 2; times++ {
				t.Run(fmt.Sprintf("%s/%s/%d times", method, name, times), func(t *testing.T) {
					inBubble(t, coordtest.Options{Members: 2}, func(w *world) {
						h := w.live(h1, LivenessOptions{})
						time.Sleep(2 * time.Second)
						w.fails(name, coordtest.Rule{Method: method, Times: times})
						began := w.now()
						err := h.Stop(w.Context())
						if took := w.now() - began; took > 12*time.Second {
							w.Errorf("it took %v", took)
						}
						if err == nil {
							w.nothing()
						}
						time.Sleep(15 * time.Second)
						w.nothing()
					})
				})
			}
		}
	}
}
