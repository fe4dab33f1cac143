package coord

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-coord/coord/coordtest"
)

// gauge counts what Metrics tell.
type gauge struct {
	mu                    sync.Mutex
	proofs, plain, failed int
	lost, won, gaveUp     int
	cause                 error
}

func (g *gauge) metrics() Metrics {
	return Metrics{
		Renewal: func(_ time.Duration, verified bool, err error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			switch {
			case err != nil:
				g.failed++
			case verified:
				g.proofs++
			default:
				g.plain++
			}
		},
		Lost: func(cause error) { g.mu.Lock(); g.lost++; g.cause = cause; g.mu.Unlock() },
		Campaign: func(_ string, _ time.Duration, err error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if err == nil {
				g.won++
			} else {
				g.gaveUp++
			}
		},
	}
}

func TestMetricsAreToldWhatHappens(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		var g gauge
		o := ElectionOptions{Key: "/e/x", Clock: w.now, Metrics: g.metrics()}
		e, err := NewElection(w.Context(), w.m.Client(w), o)
		w.must(err)
		defer func() { _ = e.Close() }()
		time.Sleep(2500 * time.Millisecond)
		w.must(e.Campaign(w.Context(), "a"))
		late, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if err := w.contender(o).Campaign(late, "b"); !errors.Is(err, context.DeadlineExceeded) {
			w.Fatal(err)
		}
		w.must(w.m.Revoke(e.Session().Lease()))
		<-e.Session().Lost()
		time.Sleep(time.Second)
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.plain == 0 || g.proofs == 0 || g.failed == 0 || g.won != 1 || g.gaveUp != 1 || g.lost != 1 || !errors.Is(g.cause, ErrLeaseGone) {
			w.Errorf("%+v", &g)
		}
	})
}
