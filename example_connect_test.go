package coord_test

import (
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
)

// connect gives the examples an etcd in memory and a client of it. A program opens its client with clientv3.New,
// and keeps it.
func connect() (etcd *coordtest.Medium, cli *clientv3.Client, done func()) {
	etcd, err := coordtest.New(coordtest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if cli, err = etcd.NewClient(); err != nil {
		log.Fatal(err)
	}
	return etcd, cli, func() {
		_ = cli.Close()
		etcd.Close()
	}
}
