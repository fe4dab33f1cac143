package compat

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// client is the connection that the caller owns.
func client(t *testing.T) *clientv3.Client { return etcdtest.Shared(t).Client(t) }
