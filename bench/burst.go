//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-coord/coord/bench/plot"
	"github.com/go-coord/coord/test/cron/crowd"
)

const (
	// burstDaemons run the crowd, burstWorkers are the bare loop's: as many as so many daemons have starts under way.
	burstDaemons, burstWorkers = 3, 48
	// notice is how long before they are due the jobs are put.
	notice = 3 * time.Second
)

// burst measures how late jobs are started that are all due at the same second, against a loop that starts the same commands.
func (b *bench) burst(ctx context.Context) (o outcome, err error) {
	err = b.fresh(ctx, func(m *member) error {
		daemons, stop, err := b.startDaemons(ctx, m, burstDaemons)
		if err != nil {
			return err
		}
		etcd, conchd := series{name: "etcd"}, series{name: "conchd"} // processor time for a job
		script := crowd.Script(filepath.Join(b.dir, "started"))
		s, err := alternate(ctx, b.few(), contestant{"conchd", func(ctx context.Context, _ int) ([]float64, error) {
			pids := []int{m.pid()}
			for _, d := range daemons {
				pids = append(pids, d.pid())
			}
			var late []time.Duration
			used, err := spentBy(pids, func() (err error) { late, err = b.crowdOf(ctx, m, script); return err })
			if err == nil {
				var ours time.Duration
				for _, of := range used[1:] {
					ours += of
				}
				etcd.turns = append(etcd.turns, []float64{millis(used[0]) / float64(b.crowd)})
				conchd.turns = append(conchd.turns, []float64{millis(ours) / float64(b.crowd)})
			}
			return inMillis(late), err
		}}, contestant{"a bare loop", func(context.Context, int) ([]float64, error) {
			late, err := crowd.Bare(b.crowd, burstWorkers, crowd.Discarded(script))
			return inMillis(late), err
		}})
		if stopped := stop(); err == nil {
			err = stopped
		}
		if err != nil {
			return b.complain(err)
		}
		name := fmt.Sprintf("%s jobs due in one second, %d daemons", plot.Number(float64(b.crowd)), burstDaemons)
		o.results = []result{
			compare(name+": p99 of the start", "ms", s[0].percentile(99), s[1].percentile(99)).atMost(1.5),
			compare(name+": p50 of the start", "ms", s[0].percentile(50), s[1].percentile(50)),
			alone("the same, processor time of the daemons for a job", "ms", conchd),
			alone("the same, processor time of etcd for a job", "ms", etcd),
		}
		o.charts = []plot.Chart{distribution("burst", name+": lateness of the start", s)}
		return nil
	})
	return o, err
}

// crowdOf puts jobs that are due soon, and gives how late each was started.
func (b *bench) crowdOf(ctx context.Context, m *member, script string) ([]time.Duration, error) {
	due := time.Now().Add(notice + time.Second).Truncate(time.Second)
	before, err := m.client.Get(ctx, "revision")
	if err != nil {
		return nil, err
	}
	spec := fmt.Sprintf(`{"schedule":"@at %s","script":%q}`, due.UTC().Format(time.RFC3339), script)
	if err := crowd.Put(ctx, m.client, b.crowd, spec); err != nil {
		return nil, err
	}
	if late := time.Since(due); late > 0 {
		return nil, fmt.Errorf("the jobs were not there before they were due, but %v later", late)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return crowd.Lateness(ctx, m.client, b.crowd, due, before.Header.Revision+1)
}

func inMillis(times []time.Duration) (ms []float64) {
	for _, t := range times {
		ms = append(ms, millis(t))
	}
	return ms
}
