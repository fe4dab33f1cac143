//go:build linux

package main

import (
	"context"
	"fmt"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/bench/plot"
)

// storedTTL is longer than a run: nothing of what is stored is renewed, or goes.
const storedTTL = 3600

// stored measures what hosts cost that are only there: a key and a lease each, without the connections of those who renew
// them.
func (b *bench) stored(ctx context.Context) (o outcome, err error) {
	chart := plot.Chart{
		Name: "scale-stored", Title: "etcd with registered hosts, a key and a lease each", X: plot.Axis{Label: "hosts"},
		Y: plot.Axis{Label: "MB"}, Lines: []plot.Line{{Label: storedMemory}, {Label: storedBytes}},
	}
	err = b.fresh(ctx, func(m *member) error {
		there := 0
		for _, n := range append([]int{0}, b.fleets...) {
			err := store(ctx, m, there, n)
			if err != nil {
				return fmt.Errorf("store hosts: %w", err)
			}
			there = n
			if err := wait(ctx, b.calm/3); err != nil {
				return err
			}
			memory, err := pss(m.pid())
			if err != nil {
				return err
			}
			status, err := m.client.Status(ctx, m.endpoint)
			if err != nil {
				return err
			}
			for k, v := range []float64{memory, float64(status.DbSizeInUse) / 1e6} {
				chart.Lines[k].Points = append(chart.Lines[k].Points, [2]float64{float64(n), round(v)})
			}
		}
		return nil
	})
	o.charts = []plot.Chart{chart}
	return o, err
}

// The lines of the chart.
const storedMemory, storedBytes = "memory (PSS) of etcd", "database, in use"

// store registers hosts from..to.
func store(ctx context.Context, m *member, from, to int) error {
	if to == from {
		return nil
	}
	_, err := spread(ctx, to-from, func(i int) error {
		lease, err := m.client.Grant(ctx, storedTTL)
		if err != nil {
			return err
		}
		op, err := hostPut(coord.HostsPrefix, hostOf(from+i), lease.ID)
		if err == nil {
			_, err = m.client.Do(ctx, op)
		}
		return err
	})
	return err
}
