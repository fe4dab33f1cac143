package soak

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-coord/coord/internal/cli/command"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

var (
	churnFor = flag.Duration("soak.for", 10*time.Second, "how long the churn goes on")
	days     = flag.Float64("soak.days", 1.0/24, "how many days of jobs are played")
	within   = flag.Duration("soak.within", 20*time.Second, "in how much time they are played")
)

func TestMain(m *testing.M) {
	if code, played := command.Role(os.Args); played {
		os.Exit(code)
	}
	if code, ok := etcdtest.Role(); ok {
		os.Exit(code)
	}
	run.Unignore()
	code := m.Run()
	run.Cleanup()
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}
