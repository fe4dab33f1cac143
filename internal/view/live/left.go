package live

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// LeftMost is of how many leases it is asked what they have left: each costs a request.
	LeftMost = 100
	// leftAtOnce is how many of these requests are under way at the same time.
	leftAtOnce = 16
	// leftWithin bounds all of them: they are for people, and nobody waits long for them.
	leftWithin = time.Second
)

// Left asks what leases have left, for people: of the first LeftMost different ones, and for a second at most. What is not
// known then is not there; nor is what is no lease, or none any more.
func Left(ctx context.Context, client *clientv3.Client, leases []int64) map[int64]time.Duration {
	ctx, cancel := context.WithTimeout(ctx, leftWithin)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	left, asked := map[int64]time.Duration{}, map[int64]bool{0: true}
	places := make(chan struct{}, leftAtOnce)
	for _, lease := range leases {
		if asked[lease] || len(asked) > LeftMost {
			continue
		}
		asked[lease] = true
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			got, err := client.TimeToLive(ctx, clientv3.LeaseID(lease))
			if err != nil || got.TTL < 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			left[lease] = time.Duration(got.TTL) * time.Second
		})
	}
	wg.Wait()
	return left
}
