package faults

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// TestAKilledWaiterHoldsNobodyUp: of three in a queue the middle one is killed. Its guard, which was up before there was
// anything to guard, takes its key away: the one behind it does not wait for a lease that nobody renews.
func TestAKilledWaiterHoldsNobodyUp(t *testing.T) {
	for name, flags := range map[string][]string{
		"plain": nil,
		// Under the fence a guard releases no hold; a place in the queue is none.
		"fenced": {"--on-lose", "true", "--fence-on-lose"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, etcdtest.Shared(t).Endpoint())
			a := o.elect("meek", "--ttl", "60s")
			first := o.await("start", 1)
			b := o.elect("meek", append([]string{"--ttl", "60s"}, flags...)...)
			b.WaitLog("position=1")
			c := o.elect("meek", "--ttl", "60s")
			c.WaitLog("position=2")
			cli := etcdtest.Client(t, o.endpoints...)
			all, err := coord.ListCandidates(t.Context(), cli, hold.ElectPrefix(o.name))
			if err != nil || len(all) != 3 {
				t.Fatal(all, err)
			}
			guard := b.Guard()

			// Watched from before, so that its end cannot be missed.
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			gone := cli.Watch(ctx, all[1].Key)
			at := coord.Now()
			b.Kill()
			for got := range gone {
				if len(got.Events) > 0 {
					break
				}
			}
			if took := coord.Now() - at; took > slack { // against the TTL of 60 s
				t.Errorf("the key of the killed waiter went after %v", took)
			} else {
				t.Logf("from kill -9 of the waiter to the end of its key: %v", took)
			}
			dead(t, guard)
			if lease, err := cli.TimeToLive(ctx, all[1].Lease); err != nil || lease.TTL > 0 {
				t.Errorf("its lease has %+v left (%v), want it revoked", lease, err)
			}
			if leaseOf(t, o, first.rev).Lease != all[0].Lease || len(o.acts()) != 1 {
				t.Errorf("the holder was touched: %v", o.acts())
			}

			at = coord.Now()
			a.Signal(syscall.SIGTERM)
			if took := o.await("start", 2).at - at; took > slack {
				t.Errorf("the one behind it started after %v", took)
			}
			c.Signal(syscall.SIGTERM)
			if code := c.Wait(); code != 0 {
				t.Errorf("code %d; %s", code, c.Stderr())
			}
			o.done()
		})
	}
}
