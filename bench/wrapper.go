//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// wrapper is one of the two programs that are compared.
type wrapper struct {
	name   string
	prefix func(office string) string                      // under which its candidates are keys
	args   func(office string, command ...string) []string // its command line
}

// wrappers are the two, ours first. Both get their endpoint from the environment and a lease of 10 s.
func (b *bench) wrappers() [2]wrapper {
	return [2]wrapper{
		{
			name:   "conch",
			prefix: func(office string) string { return "/conch/v1/elect/" + office + "/" },
			args: func(office string, command ...string) []string {
				return append([]string{b.program("conch"), "elect", office, "--ttl", "10s", "--"}, command...)
			},
		},
		{
			name:   "etcdctl lock",
			prefix: func(office string) string { return office + "/" },
			args: func(office string, command ...string) []string {
				return append([]string{b.program("etcdctl"), "lock", "--ttl", "10", office}, command...)
			},
		},
	}
}

// command prepares a wrapper with a child. What it says on stderr goes to a file, for a failure: a pipe would
// make the bench wait for whoever else has it.
func (b *bench) command(w wrapper, office string, child ...string) *exec.Cmd {
	argv := w.args(office, child...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "CONCH_ENDPOINTS="+b.endpoint, "ETCDCTL_ENDPOINTS="+b.endpoint)
	cmd.Stderr = b.stderr
	return cmd
}

// complain adds the last that wrappers said to the error of a run.
func (b *bench) complain(w wrapper, err error) error {
	said, _ := os.ReadFile(b.stderr.Name()) // without it there is less to read
	said = said[max(0, len(said)-2000):]
	return fmt.Errorf("run %s: %w: %s", w.name, err, bytes.TrimSpace(said))
}

// buildAct builds the measured child.
func (b *bench) buildAct(ctx context.Context) (string, error) {
	path := filepath.Join(b.dir, "act")
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", path, "github.com/go-coord/coord/bench/act")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build act: %w: %s", err, bytes.TrimSpace(out))
	}
	return path, nil
}

// etcd is the server of a run.
type etcd struct {
	endpoint string
	cmd      *exec.Cmd
}

// startEtcd starts etcd with its own defaults, on loopback ports that were free a moment ago.
func startEtcd(ctx context.Context, program, dir string) (*etcd, error) {
	var last error
	for range 3 {
		client, err := freeAddress()
		if err != nil {
			return nil, err
		}
		peer, err := freeAddress()
		if err != nil {
			return nil, err
		}
		var said bytes.Buffer
		cmd := exec.Command(program, "--data-dir", dir, "--name", "bench", "--log-level", "error",
			"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
			"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
			"--initial-cluster", "bench=http://"+peer)
		cmd.Stdout, cmd.Stderr = io.Discard, &said
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("start etcd: %w", err)
		}
		e := &etcd{endpoint: client, cmd: cmd}
		if last = e.ready(ctx); last == nil {
			return e, nil
		}
		e.stop()
		last = fmt.Errorf("start etcd: %w: %s", last, bytes.TrimSpace(said.Bytes()))
	}
	return nil, last
}

// ready waits until the server answers.
func (e *etcd) ready(ctx context.Context) error {
	q, err := newQueue(e.endpoint)
	if err != nil {
		return err
	}
	defer q.close()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	_, err = q.client.Get(ctx, "ready")
	return err
}

func (e *etcd) stop() {
	_ = e.cmd.Process.Kill() // it may have ended by itself
	_ = e.cmd.Wait()
}

// queue looks at who waits.
type queue struct{ client *clientv3.Client }

func newQueue(endpoint string) (*queue, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return &queue{c}, nil
}

func (q *queue) close() { _ = q.client.Close() }

// await waits until n candidates are there, the holder included.
func (q *queue) await(ctx context.Context, prefix string, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		r, err := q.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return fmt.Errorf("wait for %d candidates: %w", n, err)
		}
		if r.Count == n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %d candidates, there are %d: %w", n, r.Count, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
