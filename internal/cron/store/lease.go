package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// bucketParts is into how many parts a time is divided: what is written within one shares a lease, and lives for one part
// longer than it has to.
const bucketParts = 8

// buckets are leases that are shared and never renewed.
type buckets struct {
	client *clientv3.Client
	now    func() time.Duration // a clock that nobody sets

	mu  sync.Mutex
	all map[time.Duration]*bucket // by the time that is asked for
}

type bucket struct {
	turn  chan struct{} // holds one value while somebody reads or grants: who waits for that goes when his context ends
	lease clientv3.LeaseID
	until time.Duration // it is used until then
}

// enter takes the turn. An error says that ctx ended first.
func (b *bucket) enter(ctx context.Context) error {
	select {
	case b.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a lease: %w", context.Cause(ctx))
	}
}

func (b *bucket) leave() { <-b.turn }

// of gives a lease on which a key lives for keep at least.
func (b *buckets) of(ctx context.Context, keep time.Duration) (clientv3.LeaseID, error) {
	keep = max(keep, time.Second)
	b.mu.Lock()
	one := b.all[keep]
	if one == nil {
		one = &bucket{turn: make(chan struct{}, 1)}
		b.all[keep] = one
	}
	b.mu.Unlock()

	if err := one.enter(ctx); err != nil {
		return 0, err
	}
	defer one.leave()
	if one.lease != 0 && b.now() < one.until {
		return one.lease, nil
	}
	part := max(keep/bucketParts, time.Second)
	asked := b.now() // before the grant: the lease counts from later on
	got, err := b.client.Grant(ctx, int64((keep+part+time.Second-1)/time.Second))
	if err != nil {
		return 0, fmt.Errorf("grant lease: %w", err)
	}
	one.lease, one.until = got.ID, asked+part
	return one.lease, nil
}

// forget drops leases that etcd may not know any more. One that is just being granted is none of them.
func (b *buckets) forget(leases []clientv3.LeaseID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for keep, one := range b.all {
		select {
		case one.turn <- struct{}{}:
			if slices.Contains(leases, one.lease) {
				delete(b.all, keep)
			}
			one.leave()
		default:
		}
	}
}

// on makes an attempt with a lease for each time, and another one if somebody revoked one of them.
func (b *buckets) on(ctx context.Context, times []time.Duration, try func([]clientv3.LeaseID) error) error {
	for again := false; ; again = true {
		leases := make([]clientv3.LeaseID, len(times))
		for i, keep := range times {
			var err error
			if leases[i], err = b.of(ctx, keep); err != nil {
				return err
			}
		}
		err := try(leases)
		if again || !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
		b.forget(leases)
	}
}
