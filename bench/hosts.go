//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/bench/plot"
)

// hostOf is what host i says of itself: as much as real ones do.
func hostOf(i int) coord.HostMetadata {
	return coord.HostMetadata{
		HostUUID: fmt.Sprintf("5f3c0c8e-6f0b-4c55-9d0e-%012d", i), Hostname: fmt.Sprintf("dc1-rack%02d-h%05d", i%40, i), Hypervisor: "qemu",
		Version: "10.0.2", StartedAt: 1781259300000000000, Labels: map[string]string{"zone": fmt.Sprint("z", i%3), "role": "compute"},
	}
}

// hostPut is the request that makes a host be there, on a lease or on none.
func hostPut(prefix string, m coord.HostMetadata, lease clientv3.LeaseID) (clientv3.Op, error) {
	value, err := json.Marshal(m)
	return clientv3.OpPut(prefix+m.HostUUID, string(value), clientv3.WithLease(lease)), err
}

// populate puts hosts from..to, without leases.
func populate(ctx context.Context, cli *clientv3.Client, prefix string, from, to int) error {
	const batch = 100
	_, err := spread(ctx, (to-from+batch-1)/batch, func(n int) error {
		var ops []clientv3.Op
		for i := from + n*batch; i < min(from+(n+1)*batch, to); i++ {
			op, err := hostPut(prefix, hostOf(i), clientv3.NoLease)
			if err != nil {
				return err
			}
			ops = append(ops, op)
		}
		_, err := cli.Txn(ctx).Then(ops...).Commit()
		return err
	})
	if err != nil {
		return fmt.Errorf("put hosts: %w", err)
	}
	return nil
}

// hosts measures how long it takes to know all hosts: a watcher from nothing until it has told of each one, and a list, against a
// read of the keys whose values are decoded.
func (b *bench) hosts(ctx context.Context) (o outcome, err error) {
	chart := plot.Chart{
		Name: "snapshot", Title: "To know all hosts, from nothing", X: plot.Axis{Label: "hosts", Log: true}, Y: plot.Axis{Label: "time, ms", Log: true},
		Lines: []plot.Line{{Label: "NewHostWatcher, told of all"}, {Label: "ListHosts"}, {Label: "read and decode"}},
	}
	err = b.fresh(ctx, func(m *member) error {
		there := 0
		for _, n := range b.fleets {
			if err := populate(ctx, m.client, coord.HostsPrefix, there, n); err != nil {
				return err
			}
			there = n
			s, err := alternate(ctx, b.rounds,
				b.repeat(chart.Lines[0].Label, timed(func(ctx context.Context) error { return beTold(ctx, m.client, n) })),
				b.repeat(chart.Lines[1].Label, timed(func(ctx context.Context) error { return list(ctx, m.client, n) })),
				b.repeat(chart.Lines[2].Label, timed(func(ctx context.Context) error { return readAndDecode(ctx, m.client, n) })))
			if err != nil {
				return err
			}
			name := plot.Number(float64(n)) + " hosts"
			o.results = append(o.results, compare(name+", told by a new watcher", "ms", s[0], s[2]).atMost(1.5), compare(name+", ListHosts", "ms", s[1], s[2]).atMost(1.5))
			for k := range s {
				chart.Lines[k].Points = append(chart.Lines[k].Points, [2]float64{float64(n), s[k].figure().Median})
			}
		}
		return nil
	})
	o.charts = []plot.Chart{chart}
	return o, err
}

// timed takes the time of a call.
func timed(op func(context.Context) error) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		err := op(ctx)
		return time.Since(began), err
	}
}

// beTold opens a watcher and hears of n hosts.
func beTold(ctx context.Context, cli *clientv3.Client, n int) error {
	w, err := coord.NewHostWatcher(ctx, cli, coord.WatcherOptions{})
	if err != nil {
		return err
	}
	for range n {
		if _, open := <-w.Events(); !open {
			return fmt.Errorf("a watcher ended: %w", w.Err())
		}
	}
	return w.Close()
}

func list(ctx context.Context, cli *clientv3.Client, n int) error {
	v, err := coord.ListHosts(ctx, cli, "")
	if err == nil && len(v.Hosts) != n {
		err = fmt.Errorf("%d hosts were listed, want %d", len(v.Hosts), n)
	}
	return err
}

// readAndDecode is the least that has to be done to know all hosts.
func readAndDecode(ctx context.Context, cli *clientv3.Client, n int) error {
	got, err := cli.Get(ctx, coord.HostsPrefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	known := make(map[string]coord.HostMetadata, len(got.Kvs))
	for _, kv := range got.Kvs {
		var m coord.HostMetadata
		if err := json.Unmarshal(kv.Value, &m); err != nil {
			return err
		}
		known[string(kv.Key)] = m
	}
	if len(known) != n {
		return fmt.Errorf("%d hosts were read, want %d", len(known), n)
	}
	return nil
}
