package etcdlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordination/etcdlock"
	"github.com/go-coord/coord/coordtest"
)

// connect gives an etcd in memory and a client of it. A program opens its client with clientv3.New, and keeps it.
func connect() (cli *clientv3.Client, done func()) {
	etcd, err := coordtest.New(coordtest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if cli, err = etcd.NewClient(); err != nil {
		log.Fatal(err)
	}
	return cli, func() {
		_ = cli.Close()
		etcd.Close()
	}
}

// A holder that was superseded can do no harm where its token is checked, and its late release does none at all.
func ExampleNew() {
	cli, done := connect()
	defer done()
	ctx, locker := context.Background(), etcdlock.New(cli, etcdlock.Options{})
	defer locker.Close()

	first, held, err := locker.Acquire(ctx, "orders/7", "host-1", 10*time.Second)
	fmt.Println("host-1:", held, err)
	_, held, err = locker.Acquire(ctx, "orders/7", "host-2", 10*time.Second)
	fmt.Println("host-2:", held, err)

	if err := locker.Release(ctx, first); err != nil {
		fmt.Println(err)
	}
	second, held, err := locker.Acquire(ctx, "orders/7", "host-2", 10*time.Second)
	fmt.Println("host-2:", held, err, second.Token > first.Token)

	_, held, err = locker.Renew(ctx, first, 10*time.Second)
	fmt.Println("host-1 renews:", held, err)
	fmt.Println("host-1 releases:", locker.Release(ctx, first))
	_, held, err = locker.Renew(ctx, second, time.Minute)
	fmt.Println("host-2 renews:", held, err)
	// Output:
	// host-1: true <nil>
	// host-2: false <nil>
	// host-2: true <nil> true
	// host-1 renews: false <nil>
	// host-1 releases: <nil>
	// host-2 renews: true <nil>
}

// The shortest correct use: Run renews, ends the function's context when the lease is lost, and releases.
func Example() {
	cli, done := connect()
	defer done()
	locker := etcdlock.New(cli, etcdlock.Options{Prefix: "/myapp/locks"})
	defer locker.Close()

	err := coordination.Run(context.Background(), locker, "reports", "host-1", 10*time.Second, func(ctx context.Context, lease coordination.Lease) error {
		got, err := cli.Get(ctx, "/myapp/locks/reports")
		if err != nil {
			return err
		}
		fmt.Printf("held by %s, with the create revision as its token: %v\n", got.Kvs[0].Value, uint64(got.Kvs[0].CreateRevision) == lease.Token)
		return nil
	})
	fmt.Println(err)
	// Output:
	// held by host-1, with the create revision as its token: true
	// <nil>
}
