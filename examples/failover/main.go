package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/go-coord/coord/internal/etcd/embed"
)

// machines is where the machines are: the key of each holds the host that runs it.
const machines = "/failover/machines/"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// This program is the hosts too, each a process of its own.
	run := direct
	if len(os.Args) == 4 && os.Args[1] == hostRole {
		run = func(ctx context.Context) error { return serve(ctx, os.Args[2], os.Args[3]) }
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

func connect(endpoint string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
}

// direct starts the fleet, kills two of its hosts, and looks what comes of it.
func direct(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "failover")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	etcd, err := embed.Start(ctx, embed.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		return err
	}
	defer etcd.Close()
	client, err := connect(etcd.Endpoint())
	if err != nil {
		return err
	}
	defer client.Close()

	f := &fleet{client: client, endpoint: etcd.Endpoint(), hosts: map[string]*host{}}
	defer f.end()
	for _, name := range []string{"host-1", "host-2", "host-3"} {
		if err := f.start(ctx, name); err != nil {
			return err
		}
	}
	for len(f.hosts) > 1 {
		if err := f.kill(ctx); err != nil {
			return err
		}
	}
	return nil
}

// placed is the host of each machine.
func placed(ctx context.Context, client *clientv3.Client) (map[string]string, error) {
	got, err := client.Get(ctx, machines, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	where := map[string]string{}
	for _, kv := range got.Kvs {
		where[string(kv.Key)[len(machines):]] = string(kv.Value)
	}
	return where, nil
}

// verify holds where the machines are against what the survivors said.
func verify(ctx context.Context, client *clientv3.Client, dead string, hers []string, moves map[string][]string) error {
	where, err := placed(ctx, client)
	if err != nil {
		return err
	}
	var wrong []error
	for _, machine := range hers {
		switch by := moves[machine]; {
		case len(by) != 1:
			wrong = append(wrong, fmt.Errorf("%s of %s was taken by %q, want exactly one", machine, dead, by))
		case where[machine] != by[0]:
			wrong = append(wrong, fmt.Errorf("%s is at %s, and %s took it", machine, where[machine], by[0]))
		}
	}
	fmt.Printf("   now: %v\n", where)
	return errors.Join(wrong...)
}

// of are the machines of a host, in order.
func of(host string, where map[string]string) (all []string) {
	for machine, at := range where {
		if at == host {
			all = append(all, machine)
		}
	}
	slices.Sort(all)
	return all
}
