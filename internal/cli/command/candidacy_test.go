package command

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// Red when the way out of the queue has no bound but etcd's, or when somebody who has given up on etcd asks it who
// holds, or waits for it once more at the end.
func TestLeavingAnEtcdThatIsAwayIsBounded(t *testing.T) {
	t.Parallel()
	why := errors.New("SIGTERM")
	for name, row := range map[string]struct {
		wait time.Duration // --wait; 0: none, and a signal comes instead
		is   error
		took time.Duration
	}{
		"after a signal":            {0, why, leaveWithin},
		"when the wait has run out": {time.Second, hold.ErrNotAcquired, time.Second + leaveWithin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				m := coordtest.Start(t, coordtest.Options{})
				options := coord.ElectionOptions{Key: hold.ElectPrefix("x"), TTL: 60, Clock: func() time.Duration { return time.Since(began) }}
				leader, err := coord.NewElection(t.Context(), m.Client(t), options)
				if err != nil {
					t.Fatal(err)
				}
				if err := leader.Campaign(t.Context(), "leader"); err != nil {
					t.Fatal(err)
				}

				// Somebody queues, and etcd goes away.
				quiet := slog.New(slog.DiscardHandler)
				o := &candidacy{
					contest: &office{name: "x", waiting: func(coord.Waiting) {}}, settings: cli.Settings{DialTimeout: time.Second},
					session: coord.SessionOptions{TTL: time.Minute, Clock: options.Clock}, client: m.Client(t), name: "x", identity: "me",
					log: quiet, progress: &progress{log: quiet, name: "x", began: began},
				}
				if row.wait > 0 {
					o.until = began.Add(row.wait)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				ended := make(chan error, 1)
				go func() {
					_, err := o.Acquire(ctx, func([]byte) {})
					o.close(supervise.Outcome{Released: true})
					ended <- err
				}()
				synctest.Wait()
				if n := len(m.Keys(options.Key + "/")); n != 2 {
					t.Fatalf("%d keys: it does not queue", n)
				}
				away := m.Inject(coordtest.Rule{Times: coordtest.Forever, Action: coordtest.LoseRequest()})
				if row.wait == 0 {
					cancel(why)
				}
				if err := <-ended; !errors.Is(err, row.is) {
					t.Error(err)
				}
				if took := time.Since(began); took != row.took {
					t.Errorf("it took %v, want %v", took, row.took)
				}

				// In a process of its own this would be the end.
				away.Remove()
				o.leaving.Wait()
				if err := leader.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
