package coordtest_test

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
)

// The reply of a transaction is lost after its commit: the caller cannot know, and has to look.
func Example() {
	m, err := coordtest.New(coordtest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	cli, err := m.NewClient()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cli.Close()

	m.Inject(coordtest.Rule{
		Method: coordtest.Txn,
		When:   coordtest.Puts("/office/"),
		Action: coordtest.LoseReply(coordtest.Unavailable("connection reset")),
	})
	ctx := context.Background()
	_, err = cli.Txn(ctx).Then(clientv3.OpPut("/office/1", "me")).Commit()
	fmt.Println("the caller sees:", err)
	fmt.Println("etcd has:", m.Keys("/office/"), "after", m.Calls(coordtest.Txn), "transaction")
	// Output:
	// the caller sees: rpc error: code = Unavailable desc = connection reset
	// etcd has: [/office/1] after 1 transaction
}

// A lease runs out by a clock that the test moves.
func ExampleMedium_Sweep() {
	var now time.Duration
	m, err := coordtest.New(coordtest.Options{Clock: func() time.Duration { return now }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()

	lease, _ := m.Grant(0, 10)
	_, _ = m.Put("/host/a", "up", lease)
	for range 3 {
		fmt.Println(now, m.Keys("/host/"))
		now += 5 * time.Second
		m.Sweep()
	}
	// Output:
	// 0s [/host/a]
	// 5s [/host/a]
	// 10s []
}
