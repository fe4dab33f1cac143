package memlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-coord/coord/coordination/memlock"
)

// Two goroutines want the same key. The token says whose turn came later.
func ExampleNew() {
	ctx, locker := context.Background(), memlock.New()

	lease, held, err := locker.Acquire(ctx, "orders", "worker-1", time.Minute)
	fmt.Println(held, lease.Token, err)
	_, held, err = locker.Acquire(ctx, "orders", "worker-2", time.Minute)
	fmt.Println(held, err)

	if err := locker.Release(ctx, lease); err != nil {
		fmt.Println(err)
	}
	lease, held, err = locker.Acquire(ctx, "orders", "worker-2", time.Minute)
	fmt.Println(held, lease.Token, err)
	// Output:
	// true 1 <nil>
	// false <nil>
	// true 2 <nil>
}
