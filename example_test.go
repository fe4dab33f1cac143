package coord_test

import (
	"context"
	"fmt"

	"github.com/go-coord/coord"
)

// A watcher tells which hosts are there, and then each that comes and goes.
func ExampleHostWatcher() {
	etcd, cli, done := connect()
	defer done()
	_, _ = etcd.Put("/coord/hosts/h1", `{"hostname":"dc1-h1","labels":{"zone":"a"}}`, 0)
	_, _ = etcd.Put("/coord/hosts/h2", `{"hostname":"dc1-h2","labels":{"zone":"b"}}`, 0)

	w, err := coord.NewHostWatcher(context.Background(), cli, coord.WatcherOptions{ExcludeSelf: "h3"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	for range 3 {
		switch ev := <-w.Events(); ev.Kind {
		case coord.HostUp:
			fmt.Println("up:", ev.Metadata.Hostname)
			if ev.HostUUID == "h2" {
				etcd.Delete("/coord/hosts/h2")
			}
		case coord.HostDown:
			fmt.Println("down:", ev.Metadata.Hostname, ev.Reason)
		}
	}
	zone, err := w.Snapshot().Select("zone=a")
	fmt.Println("in zone a:", len(zone.Hosts), err)
	// Output:
	// up: dc1-h1
	// up: dc1-h2
	// down: dc1-h2 expired
	// in zone a: 1 <nil>
}
