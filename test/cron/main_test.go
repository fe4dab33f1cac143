package cron

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cli/command"
	"github.com/go-coord/coord/internal/cli/daemon"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

// daemonRole, as first argument, makes the test binary conchd, on a host whose clock is off by the second argument.
const daemonRole = "act-as-conchd"

func TestMain(m *testing.M) {
	if code, played := command.Role(os.Args); played {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == daemonRole {
		os.Exit(conchd(os.Args[2], os.Args[3:]))
	}
	if code, ok := etcdtest.Role(); ok {
		os.Exit(code)
	}
	run.Unignore()
	code := m.Run()
	etcdtest.CloseShared()
	run.Cleanup()
	os.Exit(code)
}

// conchd is cmd/conchd with another clock.
func conchd(offset string, args []string) int {
	off, err := time.ParseDuration(offset)
	if err != nil {
		return 2
	}
	env, ending := cli.Process()
	env.Args = args
	daemon.Frugal(env)
	d := daemon.Daemon{Now: func() time.Time { return time.Now().Add(off) }}
	code := d.Main(context.Background(), env)
	ending.Close()
	return code
}
