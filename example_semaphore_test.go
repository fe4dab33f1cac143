package coord_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-coord/coord"
)

// At most two backups run at the same time, on whichever hosts.
func ExampleSemaphore() {
	etcd, cli, done := connect()
	defer done()

	ctx := context.Background()
	backups, err := coord.NewSemaphore(cli, coord.SemaphoreOptions{Key: "/coord/sema/backup", Max: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = backups.Do(ctx, "host-1", func(ctx context.Context, first *coord.Term) error {
		second, held, err := backups.TryAcquire(ctx, "host-2")
		fmt.Println("slots", first.Slot(), "and", second.Slot(), held, err)
		_, held, err = backups.TryAcquire(ctx, "host-3")
		fmt.Println("a third:", held, err)

		three, _ := coord.NewSemaphore(cli, coord.SemaphoreOptions{Key: "/coord/sema/backup", Max: 3})
		_, err = three.Acquire(ctx, "host-4")
		fmt.Println("another max:", errors.Is(err, coord.ErrOtherMax))
		return backups.Release(ctx, second)
	})
	fmt.Println("done:", err)
	fmt.Println("left in etcd:", etcd.Keys(""))
	// Output:
	// slots 0 and 1 true <nil>
	// a third: false <nil>
	// another max: true
	// done: <nil>
	// left in etcd: []
}
