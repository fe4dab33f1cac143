//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// member is an etcd server, with its own defaults.
type member struct {
	endpoint string
	cmd      *exec.Cmd
	client   *clientv3.Client
}

// startEtcd starts one, on loopback ports that were free a moment ago.
func (b *bench) startEtcd(ctx context.Context) (*member, error) {
	var last error
	for range 3 {
		b.members++
		dir := filepath.Join(b.dir, fmt.Sprintf("etcd-%d", b.members))
		m, err := startMember(ctx, b.program("etcd"), dir)
		if err == nil {
			return m, nil
		}
		last = fmt.Errorf("start etcd: %w", err)
	}
	return nil, last
}

func startMember(ctx context.Context, program, dir string) (*member, error) {
	var at [2]string
	for i := range at {
		var err error
		if at[i], err = freeAddress(); err != nil {
			return nil, err
		}
	}
	var said bytes.Buffer
	cmd := exec.Command(program, "--data-dir", dir, "--name", "bench", "--log-level", "error",
		"--listen-client-urls", "http://"+at[0], "--advertise-client-urls", "http://"+at[0],
		"--listen-peer-urls", "http://"+at[1], "--initial-advertise-peer-urls", "http://"+at[1],
		"--initial-cluster", "bench=http://"+at[1])
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	m := &member{endpoint: at[0], cmd: cmd}
	err := m.ready(ctx)
	if err != nil {
		m.stop()
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return m, err
}

// freeAddress is a loopback address that nobody has right now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// connect gives a client with a connection of its own.
func connect(endpoint string) (*clientv3.Client, error) {
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return cli, nil
}

// ready waits until the server answers.
func (m *member) ready(ctx context.Context) (err error) {
	if m.client, err = connect(m.endpoint); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	_, err = m.client.Get(ctx, "ready")
	return err
}

func (m *member) stop() {
	if m.client != nil {
		_ = m.client.Close()
	}
	_ = m.cmd.Process.Kill() // it may have ended by itself
	_ = m.cmd.Wait()
}

func (m *member) pid() int { return m.cmd.Process.Pid }

// await waits until n keys are below a prefix.
func (m *member) await(ctx context.Context, prefix string, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		r, err := m.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return fmt.Errorf("wait for %d keys below %s: %w", n, prefix, err)
		}
		if r.Count == n {
			return nil
		}
		if err := wait(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("wait for %d keys below %s, there are %d: %w", n, prefix, r.Count, err)
		}
	}
}

// fresh lets a case have a member of its own: what it leaves behind is nobody's burden, and what the member spends is the case's.
func (b *bench) fresh(ctx context.Context, take func(*member) error) error {
	m, err := b.startEtcd(ctx)
	if err != nil {
		return err
	}
	defer m.stop()
	return take(m)
}
