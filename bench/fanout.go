//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/bench/plot"
)

// audience are watchers that all hear of the same changes.
type audience struct {
	name   string
	prefix string       // where its hosts are: nobody hears of another audience's changes
	heard  []chan int64 // of each: the revisions that it was told of, in order
}

// Where the hosts of each audience are.
const ourPrefix, barePrefix = "/bench/hosts-of-ours/", "/bench/hosts-of-theirs/"

// inFlight is how many changes are under way at the same time where it is measured how many a second reach everybody.
const inFlight = 16

// fanOut measures changes of hosts on their way to those who watch, with many hosts in view: how long one change takes to reach
// all of them, and how many changes a second do. The peers are bare watches that decode the value.
func (b *bench) fanOut(ctx context.Context) (o outcome, err error) {
	latency := plot.Chart{
		Name: "fan-out", Title: fmt.Sprintf("One change, told to %d watchers", b.audience), X: plot.Axis{Label: "hosts in view", Log: true},
		Y: plot.Axis{Label: "time from the request, ms"}, Lines: []plot.Line{{Label: "HostWatcher"}, {Label: "bare watch, decoded"}},
	}
	err = b.fresh(ctx, func(m *member) error {
		there := 0
		for _, n := range b.fleets {
			for _, prefix := range []string{ourPrefix, barePrefix} {
				if err := populate(ctx, m.client, prefix, there, n); err != nil {
					return err
				}
			}
			there = n
			results, s, err := b.fanOutOf(ctx, m, n)
			if err != nil {
				return err
			}
			o.results = append(o.results, results...)
			for k := range s {
				latency.Lines[k].Points = append(latency.Lines[k].Points, [2]float64{float64(n), s[k].figure().Median})
			}
		}
		return nil
	})
	o.charts = []plot.Chart{latency}
	return o, err
}

// fanOutOf measures it with n hosts in view.
func (b *bench) fanOutOf(ctx context.Context, m *member, n int) ([]result, []series, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var one, many []contestant
	for _, gather := range []func(context.Context, *member, int, int) (audience, func(), error){ourAudience, bareAudience} {
		a, dismiss, err := gather(ctx, m, n, b.audience)
		if err != nil {
			return nil, nil, err
		}
		defer dismiss()
		one = append(one, b.repeat(a.name, timed(func(ctx context.Context) error {
			rev, err := a.change(ctx, m.client, 0)
			if err != nil {
				return err
			}
			return a.all(ctx, rev)
		})))
		many = append(many, contestant{a.name, func(ctx context.Context, _ int) ([]float64, error) {
			rate, err := b.flood(ctx, m.client, a)
			return []float64{rate}, err
		}})
	}
	s, err := alternate(ctx, b.rounds, one...)
	if err != nil {
		return nil, nil, err
	}
	rates, err := alternate(ctx, b.rounds, many...)
	if err != nil {
		return nil, nil, err
	}
	view := fmt.Sprintf(" to %d watchers of %s hosts", b.audience, plot.Number(float64(n)))
	return []result{
		compare("one change"+view, "ms", s[0], s[1]).atMost(1.25),
		compare("changes"+view, "/s", rates[0], rates[1]).atLeast(0.8),
	}, s, nil
}

// change makes a host say something else of itself, and gives the revision.
func (a audience) change(ctx context.Context, cli *clientv3.Client, i int) (int64, error) {
	m := hostOf(i)
	m.Version = strconv.FormatInt(time.Now().UnixNano(), 36)
	op, err := hostPut(a.prefix, m, clientv3.NoLease)
	if err != nil {
		return 0, err
	}
	got, err := cli.Do(ctx, op)
	if err != nil {
		return 0, err
	}
	return got.Put().Header.Revision, nil
}

// flood makes changes for a slice, and gives how many a second reached everybody.
func (b *bench) flood(ctx context.Context, cli *clientv3.Client, a audience) (float64, error) {
	last := make([]int64, inFlight)
	began := time.Now()
	rate, err := work(ctx, inFlight, b.slice, func(ctx context.Context, w int) (err error) {
		last[w], err = a.change(ctx, cli, w)
		return err
	})
	if err != nil {
		return 0, err
	}
	made := rate * time.Since(began).Seconds()
	var newest int64
	for _, rev := range last {
		newest = max(newest, rev)
	}
	err = a.all(ctx, newest)
	return made / time.Since(began).Seconds(), err
}

// all waits until each of the audience has heard of a revision.
func (a audience) all(ctx context.Context, rev int64) error {
	for i, heard := range a.heard {
		for at := int64(0); at < rev; {
			select {
			case at = <-heard:
			case <-ctx.Done():
				return fmt.Errorf("watcher %d heard of %d, not of %d: %w", i, at, rev, context.Cause(ctx))
			}
		}
	}
	return nil
}

// room is how many events each of the audience may be ahead of who counts them.
const room = 1 << 13

// ourAudience are HostWatchers that know all hosts.
func ourAudience(ctx context.Context, m *member, hosts, n int) (a audience, dismiss func(), err error) {
	a = audience{name: "HostWatcher", prefix: ourPrefix}
	var open []*coord.HostWatcher
	dismiss = func() {
		for _, w := range open {
			_ = w.Close()
		}
	}
	for range n {
		w, err := coord.NewHostWatcher(ctx, m.client, coord.WatcherOptions{Prefix: ourPrefix, Extended: true})
		if err != nil {
			dismiss()
			return a, nil, err
		}
		open = append(open, w)
		heard, err := listen(w, hosts)
		if err != nil {
			dismiss()
			return a, nil, err
		}
		a.heard = append(a.heard, heard)
	}
	return a, dismiss, nil
}

// bareAudience are watches of the client's, whose values are decoded.
func bareAudience(ctx context.Context, m *member, _, n int) (a audience, dismiss func(), err error) {
	a = audience{name: "bare watch, decoded", prefix: barePrefix}
	ctx, dismiss = context.WithCancel(ctx)
	for range n {
		events := m.client.Watch(ctx, barePrefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		if first := <-events; first.Err() != nil {
			dismiss()
			return a, nil, first.Err()
		}
		heard := make(chan int64, room)
		a.heard = append(a.heard, heard)
		go func() {
			for got := range events {
				for _, ev := range got.Events {
					var m coord.HostMetadata
					if json.Unmarshal(ev.Kv.Value, &m) == nil {
						heard <- ev.Kv.ModRevision
					}
				}
			}
		}()
	}
	return a, dismiss, nil
}
