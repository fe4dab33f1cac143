package coordination_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordination/memlock"
)

// ledger is a resource that checks tokens: in one step with what is written, it refuses those that are lower than the
// highest that it has seen.
type ledger struct{ highest uint64 }

func (l *ledger) write(token uint64, what string) {
	if token < l.highest {
		fmt.Printf("%s refused: token %d after %d\n", what, token, l.highest)
		return
	}
	l.highest = token
	fmt.Printf("%s written\n", what)
}

// Run acquires, renews while the function works, and releases when it has returned.
func ExampleRun() {
	ctx, locker, orders := context.Background(), memlock.New(), new(ledger)
	work := func(name string) error {
		return coordination.Run(ctx, locker, "orders", name, time.Minute, func(_ context.Context, lease coordination.Lease) error {
			orders.write(lease.Token, name)
			// While it is held, everybody else is refused.
			err := coordination.Run(ctx, locker, "orders", "rival", time.Minute, nil)
			fmt.Println("rival:", errors.Is(err, coordination.ErrHeld))
			return nil
		})
	}
	fmt.Println(work("first"))
	fmt.Println(work("second"))
	// Output:
	// first written
	// rival: true
	// <nil>
	// second written
	// rival: true
	// <nil>
}

// The function's context ends when the lease is lost, with a cause that says so. Whoever goes on all the same, or was
// paused and does not know yet, is stopped by the token.
func ExampleRun_lost() {
	ctx, locker, orders := context.Background(), memlock.New(), new(ledger)
	err := coordination.Run(ctx, locker, "orders", "slow", time.Minute, func(_ context.Context, lease coordination.Lease) error {
		// Somebody takes the key away: an operator, or the store that lost it.
		if err := locker.Release(ctx, lease); err != nil {
			return err
		}
		next, _, err := locker.Acquire(ctx, "orders", "quick", time.Minute)
		if err != nil {
			return err
		}
		orders.write(next.Token, "quick")
		orders.write(lease.Token, "slow")
		_, held, err := locker.Renew(ctx, lease, time.Minute)
		fmt.Println("slow renews:", held)
		return err
	})
	fmt.Println(err)
	// Output:
	// quick written
	// slow refused: token 1 after 2
	// slow renews: false
	// <nil>
}
