package etcdfence_test

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordination/fence/etcdfence"
	"github.com/go-coord/coord/coordtest"
)

// Data in etcd, written under tokens that come from elsewhere.
func ExampleGuard_Do() {
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

	guard, err := etcdfence.New("/reports/fence")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, token := range []uint64{33, 34, 33} {
		_, err := guard.Do(context.Background(), cli, token, clientv3.OpPut("/reports/total", fmt.Sprint("by ", token)))
		fmt.Println(token, err)
	}
	fmt.Printf("%s\n", m.Get("/reports/total").Value)
	// Output:
	// 33 <nil>
	// 34 <nil>
	// 33 fence: "/reports/fence": token 33 is below 34, the highest seen
	// by 34
}
