//go:build linux

package main

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/go-coord/coord"
)

const (
	plainTTL = 30 // seconds
	plainFor = 30 * time.Second
)

// plain measures what it costs a process to keep many leases alive, with this module's plain sessions and with the
// client's own sessions, one after the other.
func (b *bench) plain(ctx context.Context) ([]result, error) {
	var cost [2]upkeep
	for i, open := range []func(context.Context, *clientv3.Client) (func(), error){openPlain, openTheirs} {
		var err error
		if cost[i], err = b.keep(ctx, open); err != nil {
			return nil, err
		}
	}
	peer := "concurrency.Session"
	return []result{
		{Name: "10,000 leases kept, processor time", Unit: "ms/s", Ours: ptr(cost[0].cpu), Peer: peer, Peers: ptr(cost[1].cpu), Ratio: ptr(cost[0].cpu / cost[1].cpu), MaxRatio: ptr(1.0)},
		{Name: "10,000 leases kept, memory", Unit: "MB", Ours: ptr(cost[0].memory), Peer: peer, Peers: ptr(cost[1].memory), Ratio: ptr(cost[0].memory / cost[1].memory)},
	}, nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// upkeep is what a process spends.
type upkeep struct {
	cpu    float64 // milliseconds of processor time a second
	memory float64 // heap and stacks, in MB
}

// keep opens many sessions, and then looks at what the process spends.
func (b *bench) keep(ctx context.Context, open func(context.Context, *clientv3.Client) (func(), error)) (upkeep, error) {
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{b.endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return upkeep{}, err
	}
	defer func() { _ = cli.Close() }()
	before := inUse()
	closers := make([]func(), many)
	if _, err := spread(ctx, func(i int) (err error) { closers[i], err = open(ctx, cli); return err }); err != nil {
		return upkeep{}, fmt.Errorf("open a session: %w", err)
	}
	// One period until every lease was renewed once, and then the measure.
	if err := wait(ctx, plainTTL*time.Second/3); err != nil {
		return upkeep{}, err
	}
	memory := inUse() - before
	spent := processorTime()
	if err := wait(ctx, plainFor); err != nil {
		return upkeep{}, err
	}
	spent = processorTime() - spent
	_, err = spread(ctx, func(i int) error { closers[i](); return nil })
	return upkeep{cpu: millis(spent) / plainFor.Seconds(), memory: float64(memory) / 1e6}, err
}

func openPlain(ctx context.Context, cli *clientv3.Client) (func(), error) {
	s, err := coord.NewSession(ctx, cli, coord.SessionOptions{TTL: plainTTL * time.Second, Refresh: plainTTL * time.Second / 3})
	if err != nil {
		return nil, err
	}
	return func() { _ = s.Close(context.WithoutCancel(ctx)) }, nil
}

func openTheirs(_ context.Context, cli *clientv3.Client) (func(), error) {
	s, err := concurrency.NewSession(cli, concurrency.WithTTL(plainTTL))
	if err != nil {
		return nil, err
	}
	return func() { _ = s.Close() }, nil
}

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // of oneself it cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// inUse is heap and stacks after a collection.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
