package coord_test

import (
	"context"
	"fmt"

	"github.com/go-coord/coord"
)

// A fleet reacts to many events, and for each of them one host is to do the work: an election per rule, on a session
// that is there already.
func ExampleElectionPool() {
	etcd, cli, done := connect()
	defer done()

	ctx := context.Background()
	pool := coord.NewElectionPool(cli, coord.PoolOptions{SharedSession: true})
	for _, rule := range []string{"rule-1", "rule-2", "rule-1"} {
		e, err := pool.Election(ctx, "/coord/elect/"+rule)
		if err != nil {
			fmt.Println(err)
			return
		}
		won, err := e.TryCampaign(ctx, "host-1")
		fmt.Println(rule, "won:", won, err)
		// Who leads resigns when its work is done; here it goes on until the pool is closed.
	}
	fmt.Println("leases:", pool.Stats().SessionCount)
	fmt.Println("closed:", pool.Close())
	fmt.Println("left in etcd:", etcd.Keys(""))
	// Output:
	// rule-1 won: true <nil>
	// rule-2 won: true <nil>
	// rule-1 won: false <nil>
	// leases: 1
	// closed: <nil>
	// left in etcd: []
}
