package embed

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/stats"
)

func TestClients(t *testing.T) {
	t.Parallel()
	const grace = time.Minute
	come := func(c *clients) { c.HandleConn(t.Context(), &stats.ConnBegin{}) }
	leave := func(c *clients) { c.HandleConn(t.Context(), &stats.ConnEnd{}) }
	// Each step is followed by that much time; idle is what must hold after it.
	type step struct {
		do   func(*clients)
		wait time.Duration
		idle bool
	}
	nothing := func(*clients) {}
	for name, tt := range map[string]struct {
		grace time.Duration
		steps []step
	}{
		"nobody ever came":               {grace, []step{{nothing, grace - 1, false}, {nothing, 1, true}}},
		"one that stays":                 {grace, []step{{come, 10 * grace, false}}},
		"one that left":                  {grace, []step{{come, grace, false}, {leave, grace - 1, false}, {nothing, 1, true}}},
		"two of which one left":          {grace, []step{{come, 0, false}, {come, 0, false}, {leave, 10 * grace, false}}},
		"the time runs from the last":    {grace, []step{{come, 0, false}, {leave, grace - 1, false}, {come, 0, false}, {leave, grace - 1, false}, {nothing, 1, true}}},
		"a moment before the time is up": {grace, []step{{nothing, grace - 1, false}, {come, 1, false}, {leave, grace - 1, false}, {nothing, 1, true}}},
		"no grace means for ever":        {0, []step{{come, 0, false}, {leave, 1000 * grace, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClients(tt.grace)
				defer c.end()
				for i, s := range tt.steps {
					s.do(c)
					time.Sleep(s.wait) // the bubble's clock
					synctest.Wait()
					idle := false
					select {
					case <-c.idle:
						idle = true
					default:
					}
					if idle != s.idle {
						t.Fatalf("after step %d: idle %v, want %v", i+1, idle, s.idle)
					}
					// Idle and answering exclude each other.
					if _, err := c.admit(context.Background(), nil); (err != nil) != idle {
						t.Fatalf("after step %d: admit says %v while idle is %v", i+1, err, idle)
					}
				}
			})
		})
	}
}
