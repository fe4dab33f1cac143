//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/bench/plot"
)

// viewed is how many hosts the watchers know: what a change costs etcd does not depend on it.
const viewed = 100

// The lines of the charts.
const watchersAll, watchersEtcd = "until all have heard", "processor time of etcd"

// watchers measures what one change costs with more and more who watch, each with a connection of its own.
func (b *bench) watchers(ctx context.Context) (o outcome, err error) {
	change := plot.Chart{
		Name: "scale-watchers", Title: "One change of a host, told to watchers", X: plot.Axis{Label: "watchers", Log: true}, Y: plot.Axis{Label: "ms for one change"},
		Lines: []plot.Line{{Label: watchersAll}, {Label: watchersEtcd}},
	}
	memory := plot.Chart{
		Name: "scale-watchers-memory", Title: "etcd with watchers that are connected", X: plot.Axis{Label: "watchers"},
		Y: plot.Axis{Label: "memory (PSS) of etcd, MB"}, Lines: []plot.Line{{Label: storedMemory}},
	}
	idle := plot.Chart{
		Name: "scale-watchers-processor", Title: "etcd with watchers while nothing changes", X: plot.Axis{Label: "watchers"},
		Y: plot.Axis{Label: "processor time of etcd, ms a second"}, Lines: []plot.Line{{Label: watchersEtcd}},
	}
	err = b.fresh(ctx, func(m *member) error {
		if err := populate(ctx, m.client, coord.HostsPrefix, 0, viewed); err != nil {
			return err
		}
		a := audience{name: "HostWatcher", prefix: coord.HostsPrefix, heard: make([]chan int64, b.viewers[len(b.viewers)-1])}
		c := crew{endpoint: m.endpoint, join: a.join}
		defer c.dismiss(ctx)
		for _, n := range b.viewers {
			if err := c.grow(ctx, n); err != nil {
				return err
			}
			used, mem, err := b.upkeepOf(ctx, m)
			if err != nil {
				return err
			}
			told, cost, err := b.tell(ctx, m, audience{a.name, a.prefix, a.heard[:n]}, used)
			if err != nil {
				return err
			}
			x := float64(n)
			change.Lines[0].Points = append(change.Lines[0].Points, [2]float64{x, told})
			change.Lines[1].Points = append(change.Lines[1].Points, [2]float64{x, cost})
			memory.Lines[0].Points = append(memory.Lines[0].Points, [2]float64{x, mem})
			idle.Lines[0].Points = append(idle.Lines[0].Points, [2]float64{x, used})
		}
		return nil
	})
	o.charts = []plot.Chart{change, memory, idle}
	return o, err
}

// tell makes changes, one after the other, and gives the median time until all have heard of one, and the time of etcd's
// processors for one, in milliseconds: without the idle milliseconds a second that it spends on these watchers anyhow.
func (b *bench) tell(ctx context.Context, m *member, a audience, idle float64) (told, cost float64, err error) {
	before, err := processorTime(m.pid())
	if err != nil {
		return 0, 0, err
	}
	var times []float64
	began := time.Now()
	for len(times) == 0 || time.Since(began) < time.Duration(b.rounds)*b.slice {
		sent := time.Now()
		rev, err := a.change(ctx, m.client, len(times)%viewed)
		if err == nil {
			err = a.all(ctx, rev)
		}
		if err != nil {
			return 0, 0, err
		}
		times = append(times, millis(time.Since(sent)))
	}
	after, err := processorTime(m.pid())
	spent := millis(after-before) - idle*time.Since(began).Seconds()
	return round(median(times)), round(max(spent, 0) / float64(len(times))), err
}

// join lets one more of the audience watch.
func (a audience) join(ctx context.Context, cli *clientv3.Client, i int) (func(context.Context) error, error) {
	w, err := coord.NewHostWatcher(ctx, cli, coord.WatcherOptions{Prefix: a.prefix, Extended: true})
	if err != nil {
		return nil, err
	}
	a.heard[i], err = listen(w, viewed)
	return func(context.Context) error { return w.Close() }, err
}

// listen waits until a watcher has told of all hosts, and gives the revisions of what it tells from then on.
func listen(w *coord.HostWatcher, hosts int) (chan int64, error) {
	for ev := range w.Events() {
		if ev.Kind == coord.SnapshotDone {
			break
		}
	}
	if got := len(w.Snapshot().Hosts); got != hosts {
		return nil, fmt.Errorf("%d hosts are in view, want %d", got, hosts)
	}
	heard := make(chan int64, room)
	go func() {
		for ev := range w.Events() {
			heard <- ev.Revision
		}
	}()
	return heard, nil
}
