package faults

import (
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// TestAHundredRevokedHostsAreBackWithinASecond revokes the leases of 100 live hosts one after the other. A second
// after the last one all are there again, each on a lease that lives.
func TestAHundredRevokedHostsAreBackWithinASecond(t *testing.T) {
	t.Parallel()
	server := etcdtest.Cluster(t, 1)
	cli, admin := server.Client(t), server.Client(t)
	healed := make(chan time.Duration, 1000)
	var hosts []*coord.HostLiveness
	for i := range 100 {
		h, err := coord.RegisterHostLiveness(t.Context(), cli, coord.HostMetadata{HostUUID: fmt.Sprint("h", i)}, coord.LivenessOptions{
			LeaseTTLSec: 60, Metrics: coord.Metrics{Healed: func(gap time.Duration) { healed <- gap }},
		})
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	last := map[clientv3.LeaseID]bool{}
	for _, h := range hosts {
		last[h.LeaseID()] = true
		if _, err := admin.Revoke(t.Context(), h.LeaseID()); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(time.Second)
	for n := range hosts {
		select {
		case <-healed:
		case <-deadline:
			t.Fatalf("%d hosts are back after a second", n)
		}
	}
	got, err := admin.Get(t.Context(), coord.HostsPrefix, clientv3.WithPrefix())
	if err != nil || got.Count != 100 {
		t.Fatalf("%d keys, %v", got.Count, err)
	}
	for _, kv := range got.Kvs {
		if last[clientv3.LeaseID(kv.Lease)] {
			t.Errorf("%s is on the lease that was revoked", kv.Key)
		}
	}

	var all sync.WaitGroup
	for _, h := range hosts {
		all.Go(func() {
			if err := h.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	leases, err := admin.Leases(t.Context())
	if err != nil || len(leases.Leases) != 0 {
		t.Errorf("%d leases are left, %v", len(leases.Leases), err)
	}
}
