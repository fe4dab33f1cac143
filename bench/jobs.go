//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-coord/coord/bench/plot"
	"github.com/go-coord/coord/test/cron/crowd"
)

// idleLimits are what a daemon may cost with so many jobs that are not due.
func idleLimits(jobs int) (memory, cpu float64, any bool) {
	switch jobs {
	case 1000:
		return 30, 0.2, true
	case 10_000:
		return 100, 2, true
	}
	return 0, 0, false
}

// jobs measures what a daemon costs while it has jobs and none is due: three daemons, each a number.
func (b *bench) jobs(ctx context.Context) (o outcome, err error) {
	cost := plot.Chart{
		Name: "scale-jobs-memory", Title: "A conchd with jobs that are not due", X: plot.Axis{Label: "jobs", Log: true},
		Y: plot.Axis{Label: "memory (PSS), MB"}, Lines: []plot.Line{{Label: "conchd"}},
	}
	spent := plot.Chart{
		Name: "scale-jobs-processor", Title: "A conchd with jobs that are not due", X: plot.Axis{Label: "jobs", Log: true},
		Y: plot.Axis{Label: "processor time, ms a second"}, Lines: []plot.Line{{Label: "conchd"}, {Label: "etcd, three conchds"}},
	}
	for _, n := range b.idle {
		memory, cpu, etcd, err := b.idleWith(ctx, n)
		if err != nil {
			return o, err
		}
		name := fmt.Sprintf("conchd, %s idle jobs: ", plot.Number(float64(n)))
		m, c := alone(name+"memory (PSS)", "MB", memory), alone(name+"processor", "%", cpu)
		if mLimit, cLimit, any := idleLimits(n); any {
			m, c = m.within(mLimit), c.within(cLimit)
		}
		o.results = append(o.results, m, c)
		x := float64(n)
		cost.Lines[0].Points = append(cost.Lines[0].Points, [2]float64{x, m.Ours.Median})
		spent.Lines[0].Points = append(spent.Lines[0].Points, [2]float64{x, round(10 * c.Ours.Median)})
		spent.Lines[1].Points = append(spent.Lines[1].Points, [2]float64{x, etcd})
	}
	o.charts = []plot.Chart{cost, spent}
	return o, nil
}

// idleWith gives the memory in MB and the processor time in percent of each daemon, and etcd's in milliseconds a second.
func (b *bench) idleWith(ctx context.Context, n int) (memory, cpu series, etcd float64, err error) {
	memory.name, cpu.name = "conchd", "conchd"
	err = b.fresh(ctx, func(m *member) error {
		if err := crowd.Put(ctx, m.client, n, `{"schedule":"30 4 1 1 *","tz":"Europe/Berlin","script":"exit 0"}`); err != nil {
			return err
		}
		daemons, stop, err := b.startDaemons(ctx, m, burstDaemons)
		if err != nil {
			return err
		}
		pids := []int{m.pid()}
		for _, d := range daemons {
			pids = append(pids, d.pid())
		}
		err = wait(ctx, b.calm)
		var used []time.Duration
		if err == nil {
			used, err = spentOver(ctx, b.span, pids...)
		}
		for i, d := range daemons {
			if err != nil {
				break
			}
			var mb float64
			mb, err = pss(d.pid())
			memory.turns = append(memory.turns, []float64{mb})
			cpu.turns = append(cpu.turns, []float64{100 * used[i+1].Seconds() / b.span.Seconds()})
		}
		if stopped := stop(); err == nil {
			err = stopped
		}
		if err != nil {
			return b.complain(err)
		}
		etcd = round(millis(used[0]) / b.span.Seconds())
		return nil
	})
	return memory, cpu, etcd, err
}

// spentOver is the processor time that processes use over a span.
func spentOver(ctx context.Context, span time.Duration, pids ...int) ([]time.Duration, error) {
	return spentBy(pids, func() error { return wait(ctx, span) })
}

// spentBy is the processor time that processes use while something is done.
func spentBy(pids []int, do func() error) ([]time.Duration, error) {
	used := make([]time.Duration, len(pids))
	read := func(sign time.Duration) error {
		for i, pid := range pids {
			now, err := processorTime(pid)
			if err != nil {
				return err
			}
			used[i] += sign * now
		}
		return nil
	}
	if err := read(-1); err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	return used, read(1)
}
