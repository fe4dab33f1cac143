package command

import (
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

// Red when the revoke is on its way while the successor decides; when it waits though nobody else does; or when it goes ahead of
// the release.
func TestRevokeGivesWayToTheSuccessor(t *testing.T) {
	t.Parallel()
	const sync = 10 * time.Millisecond // what one transaction takes
	for name, row := range map[string]struct {
		awaited bool
		revoked time.Duration // after the beginning of the release
	}{
		"somebody waits": {true, 3 * sync},
		"nobody waits":   {false, sync},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				clock := func() time.Duration { return time.Since(began) }
				m := coordtest.Start(t, coordtest.Options{})
				open, last := hold.OfficeKeys("x")
				settle := settling(false, open, last)
				quiet := slog.New(slog.DiscardHandler)
				o := &candidacy{
					contest:  &office{name: "x", settle: settle, waiting: func(coord.Waiting) {}},
					settings: cli.Settings{DialTimeout: time.Second}, session: coord.SessionOptions{TTL: time.Minute, Clock: clock},
					client: m.Client(t), name: "x", identity: "me", log: quiet, progress: &progress{log: quiet, name: "x", began: began},
				}
				h, err := o.Acquire(t.Context(), func([]byte) {})
				if err != nil {
					t.Fatal(err)
				}
				next, err := coord.NewElection(t.Context(), m.Client(t), coord.ElectionOptions{Key: hold.ElectPrefix("x"), Settle: settle, Clock: clock})
				if err != nil {
					t.Fatal(err)
				}
				leads := make(chan time.Duration, 1)
				campaign := func() {
					if err := next.Campaign(t.Context(), "next"); err != nil {
						t.Error(err)
					}
					leads <- clock()
				}
				if row.awaited {
					go campaign()
					synctest.Wait()
				}

				m.Inject(coordtest.Rule{Method: coordtest.Txn, Times: coordtest.Forever, Action: coordtest.Delay(sync)})
				revoke := make(chan time.Duration, 1)
				m.Inject(coordtest.Rule{Method: coordtest.Revoke, When: func(*coordtest.Call) bool { revoke <- clock(); return false }})
				from := clock()
				if err := h.Release(t.Context(), hold.EndReleased); err != nil {
					t.Fatal(err)
				}
				out := supervise.Outcome{Released: true}
				out.Status.Rev = h.Info().Rev
				o.close(out)
				at := <-revoke
				if at-from != row.revoked {
					t.Errorf("revoked after %v, want %v", at-from, row.revoked)
				}

				if !row.awaited {
					if n := len(m.Keys(settle.Open)); n != 0 {
						t.Error("its record is open")
					}
					go campaign()
				}
				if led := <-leads; row.awaited && led-from != 2*sync {
					t.Errorf("the successor leads after %v, want %v", led-from, 2*sync)
				}
				if err := next.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
