//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/bench/plot"
	"github.com/go-coord/coord/internal/hold"
)

// The lines of the charts: what a process does.
const liveHosts, liveHolds = "hosts, registered", "offices, held"

// live measures what etcd spends on processes that are there: each has a connection of its own, as it has in a fleet, and either
// registers a host, with three renewals to a TTL, or holds an office, with ten that are verified.
func (b *bench) live(ctx context.Context) (o outcome, err error) {
	spent := plot.Chart{
		Name: "scale-live-processor", Title: "etcd with processes that renew", X: plot.Axis{Label: "processes"}, Y: plot.Axis{Label: "processor time of etcd, ms a second"},
	}
	memory := plot.Chart{
		Name: "scale-live-memory", Title: "etcd with processes that are connected", X: plot.Axis{Label: "processes"}, Y: plot.Axis{Label: "memory (PSS) of etcd, MB"},
	}
	for _, kind := range []struct {
		label, prefix string
		join          func(context.Context, *clientv3.Client, int) (leave func(context.Context) error, err error)
	}{{liveHosts, coord.HostsPrefix, register}, {liveHolds, hold.AreaRange(hold.AreaElect), holdOffice}} {
		cpu, mb := plot.Line{Label: kind.label}, plot.Line{Label: kind.label}
		err := b.fresh(ctx, func(m *member) error {
			c := crew{endpoint: m.endpoint, join: kind.join}
			defer c.dismiss(ctx)
			for _, n := range append([]int{0}, b.peers...) {
				if err := c.grow(ctx, n); err != nil {
					return err
				}
				revision, err := m.count(ctx, kind.prefix, n)
				if err != nil {
					return err
				}
				used, mem, err := b.upkeepOf(ctx, m)
				if err != nil {
					return err
				}
				// Whatever was lost, and came back, has changed a key meanwhile.
				if later, err := m.count(ctx, kind.prefix, n); err != nil || later != revision {
					return errors.Join(fmt.Errorf("%w: not all %d were alive all the time", errBusy, n), err)
				}
				cpu.Points, mb.Points = append(cpu.Points, [2]float64{float64(n), used}), append(mb.Points, [2]float64{float64(n), mem})
			}
			return nil
		})
		if err != nil {
			return o, fmt.Errorf("%s: %w", kind.label, err)
		}
		spent.Lines, memory.Lines = append(spent.Lines, cpu), append(memory.Lines, mb)
	}
	o.charts = []plot.Chart{spent, memory}
	return o, nil
}

// count gives etcd's revision, if n keys are below a prefix.
func (m *member) count(ctx context.Context, prefix string, n int) (int64, error) {
	got, err := m.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	if got.Count != int64(n) {
		return 0, fmt.Errorf("%d keys are below %s, want %d", got.Count, prefix, n)
	}
	return got.Header.Revision, nil
}

// upkeepOf is what a member spends, in milliseconds a second, and its memory in MB, once it has come to rest.
func (b *bench) upkeepOf(ctx context.Context, m *member) (cpu, memory float64, err error) {
	if err := wait(ctx, b.calm/3); err != nil {
		return 0, 0, err
	}
	used, err := spentOver(ctx, b.span, m.pid())
	if err != nil {
		return 0, 0, err
	}
	memory, err = pss(m.pid())
	return round(millis(used[0]) / b.span.Seconds()), round(memory), err
}

// crew are processes of a fleet, as far as etcd can tell.
type crew struct {
	endpoint string
	join     func(context.Context, *clientv3.Client, int) (leave func(context.Context) error, err error)
	clients  []*clientv3.Client
	leave    []func(context.Context) error
}

// grow makes them n, with a connection each.
func (c *crew) grow(ctx context.Context, n int) error {
	from := len(c.clients)
	if n == from {
		return nil
	}
	for range n - from {
		cli, err := connect(c.endpoint)
		if err != nil {
			return err
		}
		c.clients = append(c.clients, cli)
	}
	c.leave = append(c.leave, make([]func(context.Context) error, n-from)...)
	_, err := spread(ctx, n-from, func(i int) (err error) {
		c.leave[from+i], err = c.join(ctx, c.clients[from+i], from+i)
		return err
	})
	return err
}

// dismiss lets all go. What it cannot take back goes with the member.
func (c *crew) dismiss(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if len(c.clients) > 0 {
		_, _ = spread(ctx, len(c.clients), func(i int) error {
			if c.leave[i] != nil {
				_ = c.leave[i](ctx)
			}
			_ = c.clients[i].Close()
			return nil
		})
	}
}

func register(ctx context.Context, cli *clientv3.Client, i int) (func(context.Context) error, error) {
	h, err := coord.RegisterHostLiveness(ctx, cli, hostOf(i), coord.LivenessOptions{})
	if err != nil {
		return nil, err
	}
	return h.Stop, nil
}

func holdOffice(ctx context.Context, cli *clientv3.Client, i int) (func(context.Context) error, error) {
	office := fmt.Sprintf("office-%d", i)
	open, last := hold.OfficeKeys(office)
	e, err := coord.NewElection(ctx, cli, coord.ElectionOptions{
		Key: hold.ElectPrefix(office), Settle: coord.SettleOptions{Open: open.String(), Last: last.String()},
	})
	if err != nil {
		return nil, err
	}
	if err := e.Campaign(ctx, `{"host":"bench"}`); err != nil {
		return nil, err
	}
	return func(context.Context) error { return e.Close() }, nil
}
