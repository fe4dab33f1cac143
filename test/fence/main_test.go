package fence

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/postgres"
)

func TestMain(m *testing.M) {
	if code, ok := etcdtest.Role(); ok {
		os.Exit(code)
	}
	goleak.VerifyTestMain(closing{m})
}

type closing struct{ m *testing.M }

func (c closing) Run() int {
	defer postgres.Close()
	defer etcdtest.CloseShared()
	return c.m.Run()
}
