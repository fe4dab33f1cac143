package store_test

import (
	"testing"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }
