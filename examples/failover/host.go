package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
)

const (
	hostRole = "host" // the first argument of a host; its name and the endpoint follow
	leaseTTL = 2      // seconds: how long a dead host looks alive here
)

// serve is the life of a host: it runs a machine, is there for others to see, and takes over from those that go. It says
// what happens, a line each.
func serve(ctx context.Context, name, endpoint string) error {
	client, err := connect(endpoint)
	if err != nil {
		return err
	}
	defer client.Close()
	watcher, err := coord.NewHostWatcher(ctx, client, coord.WatcherOptions{ExcludeSelf: name})
	if err != nil {
		return err
	}
	defer watcher.Close()
	pool := coord.NewElectionPool(client, coord.PoolOptions{SharedSession: true, Identity: name})
	defer pool.Close()
	if _, err := client.Put(ctx, machines+"vm-"+strings.TrimPrefix(name, "host-"), name); err != nil {
		return err
	}
	me, err := coord.RegisterHostLiveness(ctx, client, coord.HostMetadata{HostUUID: name}, coord.LivenessOptions{LeaseTTLSec: leaseTTL})
	if err != nil {
		return err
	}
	defer func() { _ = me.Stop(context.WithoutCancel(ctx)) }()
	fmt.Println("up")

	for event := range watcher.Events() {
		switch event.Kind {
		case coord.HostUp:
			fmt.Println("sees", event.HostUUID)
		case coord.HostDown:
			if err := takeOver(ctx, client, pool, name, event); err != nil {
				return err
			}
		}
	}
	return nil // told to end
}

// takeOver contends for the office of one death, and does then what is left to do.
func takeOver(ctx context.Context, client *clientv3.Client, pool *coord.ElectionPool, name string, down coord.HostEvent) error {
	// Of this life of the host: when it is back and dies again, that is another office.
	office, err := pool.Election(ctx, "/failover/deaths/"+down.HostUUID+"/"+strconv.FormatInt(down.Incarnation, 10))
	if err != nil {
		return err
	}
	return office.Do(ctx, name, func(ctx context.Context, term *coord.Term) error {
		where, err := placed(ctx, client)
		if err != nil {
			return err
		}
		for _, machine := range of(down.HostUUID, where) {
			moved, err := client.Txn(ctx).
				If(term.Cmp(), clientv3.Compare(clientv3.Value(machines+machine), "=", down.HostUUID)).
				Then(clientv3.OpPut(machines+machine, name)).Commit()
			if err != nil {
				return err
			}
			if moved.Succeeded {
				fmt.Println("takes", machine)
			}
		}
		fmt.Println("is through with", down.HostUUID, down.Reason)
		return nil
	})
}
