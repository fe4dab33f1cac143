//go:build linux

// Command bare is a wrapper that does the least: it takes its place in a queue in etcd, waits until it is the first, runs a
// command, and gives its place up. It shows what etcd and the fork alone cost.
//
// It promises nothing. It renews nothing, notices no loss, ends no child, forwards no signal, and leaves its place to the TTL
// when it is killed.
//
//	bare ENDPOINT NAME COMMAND [ARG...]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const ttl = 10 // seconds

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "bare: want an endpoint, a name and a command")
		os.Exit(64)
	}
	if err := hold(context.Background(), os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintf(os.Stderr, "bare: %v\n", err)
		os.Exit(1)
	}
}

func hold(ctx context.Context, endpoint, name string, command []string) error {
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("connect to etcd: %w", err)
	}
	defer cli.Close()
	lease, err := cli.Grant(ctx, ttl)
	if err != nil {
		return fmt.Errorf("get a lease: %w", err)
	}
	err = queue(ctx, cli, name, lease.ID)
	if err == nil {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = cmd.Run()
	}
	_, revoked := cli.Revoke(ctx, lease.ID)
	return errors.Join(err, revoked)
}

// queue puts a key and waits until it is the oldest.
func queue(ctx context.Context, cli *clientv3.Client, name string, lease clientv3.LeaseID) error {
	got, err := cli.Put(ctx, fmt.Sprintf("%s/%x", name, lease), "", clientv3.WithLease(lease))
	if err != nil {
		return fmt.Errorf("take a place: %w", err)
	}
	older := append(clientv3.WithLastCreate(), clientv3.WithPrefix(), clientv3.WithMaxCreateRev(got.Header.Revision-1))
	for {
		before, err := cli.Get(ctx, name+"/", older...)
		if err != nil {
			return fmt.Errorf("look who is before: %w", err)
		}
		if len(before.Kvs) == 0 {
			return nil
		}
		watching, cancel := context.WithCancel(ctx)
		gone := cli.Watch(watching, string(before.Kvs[0].Key), clientv3.WithRev(before.Header.Revision+1), clientv3.WithFilterPut())
		news := <-gone
		cancel()
		if err := news.Err(); err != nil {
			return fmt.Errorf("wait for who is before: %w", err)
		}
	}
}
