package coord_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-coord/coord"
)

// A host registers, says something new of itself, and stops. Its key goes with it.
func ExampleRegisterHostLiveness() {
	etcd, cli, done := connect()
	defer done()
	ctx := context.Background()

	me := coord.HostMetadata{HostUUID: "host-uuid-1", Hostname: "dc1-h1", Hypervisor: "qemu"}
	hl, err := coord.RegisterHostLiveness(ctx, cli, me, coord.LivenessOptions{LeaseTTLSec: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hl.Key(), hl.State(), "lease lives:", len(etcd.Leases()) == 1)

	me.Labels = map[string]string{"rack": "r1"}
	fmt.Println("updated:", hl.UpdateMetadata(ctx, me))

	// Somebody deletes the key by hand: it is back at once.
	etcd.Delete(hl.Key())
	for change := range hl.Changes() {
		if change.State == coord.LivenessHealthy {
			break
		}
	}
	fmt.Println(etcd.Keys(coord.HostsPrefix))

	fmt.Println("stopped:", hl.Stop(ctx))
	fmt.Println(etcd.Keys(coord.HostsPrefix), "leases:", len(etcd.Leases()))
	// Output:
	// /coord/hosts/host-uuid-1 healthy lease lives: true
	// updated: <nil>
	// [/coord/hosts/host-uuid-1]
	// stopped: <nil>
	// [] leases: 0
}

// An agent that must not work on once its peers may take over runs under the proof that its host is registered.
func ExampleHostLiveness_Proven() {
	etcd, cli, done := connect()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	hl, err := coord.RegisterHostLiveness(ctx, cli, coord.HostMetadata{HostUUID: "h1"}, coord.LivenessOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = hl.Stop(ctx) }()

	for round := 1; round <= 2; round++ {
		proof, err := hl.Proven(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		if round == 1 {
			etcd.Delete(hl.Key()) // as an operator would
		}
		select {
		case <-proof.Lost():
			fmt.Println("round", round, "fence: key deleted:", errors.Is(context.Cause(proof.Context()), coord.ErrKeyGone))
		case <-time.After(100 * time.Millisecond):
			fmt.Println("round", round, "goes on:", proof.Check() == nil)
		}
	}
	// Output:
	// round 1 fence: key deleted: true
	// round 2 goes on: true
}
