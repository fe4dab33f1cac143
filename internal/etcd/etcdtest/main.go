package etcdtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-coord/coord/internal/etcd/embed"
)

// roleEnv carries a member's configuration to a re-executed test binary.
const roleEnv = "ETCDTEST_MEMBER"

// fdWord is where the member process says "up", then "ready".
const fdWord = 3

// Main is the whole of a TestMain: it lets the test binary be a member of a Cluster, runs the tests, ends
// the Shared member, and fails when goroutines are left.
func Main(m *testing.M, opts ...goleak.Option) {
	if code, ok := Role(); ok {
		os.Exit(code)
	}
	goleak.VerifyTestMain(closing{m}, opts...)
}

type closing struct{ m *testing.M }

func (c closing) Run() int {
	defer CloseShared()
	return c.m.Run()
}

// Role runs the cluster member that this process was started to be, and returns its exit code when that
// ends. ok is false in any other process. It is for a TestMain that cannot be Main; call it first.
func Role() (code int, ok bool) {
	config := os.Getenv(roleEnv)
	if config == "" {
		return 0, false
	}
	if err := member(config); err != nil {
		fmt.Fprintf(os.Stderr, "etcdtest: member: %v\n", err)
		return 1, true
	}
	return 0, true
}

// member runs until it fails or is killed.
func member(config string) error {
	// The terminal's interrupt is for the test, which then ends its members.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
	var c embed.Config
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	word := os.NewFile(fdWord, "word")
	m, err := embed.Launch(c)
	if err != nil {
		return err
	}
	fmt.Fprintln(word, "up")
	go func() {
		if err := m.Ready(context.Background()); err == nil {
			fmt.Fprintln(word, "ready")
		}
	}()
	return <-m.Failed()
}
