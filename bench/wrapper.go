//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/go-coord/coord/internal/hold"
)

// wrapper is one of the programs that are compared.
type wrapper struct {
	name   string
	prefix func(office string) string                      // under which its candidates are keys
	args   func(office string, command ...string) []string // its command line
}

// wrappers are conch, its peer, and the limit. All have a lease of 10 s; the first two get their endpoint from the environment.
func (b *bench) wrappers() []wrapper {
	return []wrapper{
		{
			name:   "conch elect",
			prefix: hold.ElectRange,
			args: func(office string, command ...string) []string {
				return append([]string{b.program("conch"), "elect", office, "--ttl", "10s", "--"}, command...)
			},
		},
		{
			name:   etcdctlLock,
			prefix: func(office string) string { return office + "/" },
			args: func(office string, command ...string) []string {
				return append([]string{b.program("etcdctl"), "lock", "--ttl", "10", office}, command...)
			},
		},
		{
			name:   "a bare wrapper",
			prefix: func(office string) string { return "/bare/" + office + "/" },
			args: func(office string, command ...string) []string {
				return append([]string{b.bare, b.common.endpoint, "/bare/" + office}, command...)
			},
		},
	}
}

// command prepares a wrapper with a child. What it says on stderr goes to a file, for a failure: a pipe would
// make the bench wait for whoever else has it.
func (b *bench) command(w wrapper, office string, child ...string) *exec.Cmd {
	argv := w.args(office, child...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "CONCH_ENDPOINTS="+b.common.endpoint, "ETCDCTL_ENDPOINTS="+b.common.endpoint)
	cmd.Stderr = b.stderr
	return cmd
}

// complain adds the last that programs said to the error of a run.
func (b *bench) complain(err error) error {
	said, _ := os.ReadFile(b.stderr.Name()) // without it there is less to read
	said = said[max(0, len(said)-2000):]
	return fmt.Errorf("%w: %s", err, bytes.TrimSpace(said))
}

// build builds a program that stands below the bench.
func (b *bench) build(ctx context.Context, name string) (string, error) {
	path := filepath.Join(b.dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-tags", "grpcnotrace", "-ldflags=-s -w", "-o", path,
		"github.com/go-coord/coord/bench/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return path, nil
}
