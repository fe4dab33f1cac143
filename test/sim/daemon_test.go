package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// The two jobs. What runs of the one keeps the next start of it away.
const (
	forbid = "forbid"
	allow  = "allow"

	tickEnv = "TICK" // tells the simulated child what it is
)

// write puts the jobs.
func (w *world) write() {
	for name, spec := range map[string]string{
		forbid: `{"schedule":"@every 2s","cmd":["work"]}`,
		allow:  `{"schedule":"@every 7s","cmd":["work"],"overlap":"allow"}`,
	} {
		if _, err := w.m.Put(record.JobKey(name), spec, 0); err != nil {
			w.Errorf("put job: %v", err)
		}
	}
}

// recorded reports whether a key is one of those of jobs that stay: a start that lives, and what is asked for it, do not.
func recorded(key string) bool {
	for _, area := range []string{record.Jobs, record.Fires, record.Results, record.Cursors, record.Cards} {
		if strings.HasPrefix(key, area) {
			return true
		}
	}
	return false
}

// resync is how often a host's wall clock is set right. In between it drifts.
const resync = 20 * time.Second

// wall is the wall clock of a daemon's host: off by up to a second, and by what it drifted since it was set.
func (l *life) wall() time.Time {
	now := l.now() - l.h.origin
	h := l.h
	bubble := time.Duration(float64(now) / h.rate)
	return h.began.Add(bubble + h.offset - time.Duration(float64(bubble%resync)*(1-h.rate)))
}

// serve is a daemon from its start to its end, whichever that is.
func (l *life) serve() {
	w := l.h.w
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan error, 1)
	go func() {
		over <- cron.Run(ctx, cron.Options{
			Client: l.client, Host: l.name, Runner: worker{l}, User: "root", TTL: ttl, Margin: margin, DrainTimeout: -1,
			Now: l.wall, Mono: l.h.now, Version: "sim",
		})
	}()
	var err error
	select {
	case err = <-over:
	case <-l.killed:
		cancel()
		// Whatever is left of it in this process says nothing to anybody any more.
		w.lives.Go(func() { <-over; l.end() })
		return
	case <-w.end:
		cancel()
		err = <-over
	}
	w.note("%s ends: %v", l.name, err)
	l.end()
}

// worker runs what its daemon claimed, under the real loop.
type worker struct{ *life }

// Run is cron.Runner's.
func (l worker) Run(ctx context.Context, s cron.Start, h hold.Hold) cron.Ended {
	g := newGuardian(l.life, s.Job, func() hold.Instant { return h.Deadlines().Term }, lostRun{l.life})
	how := cron.Ended{Started: l.wall(), Pid: 1}
	out := supervise.Run(ctx, supervise.Config{
		Kind: hold.KindCron, Name: s.Job, Path: "/bin/work", Argv: []string{"work"},
		Env:       []string{tickEnv + "=" + s.Job + "/" + s.ID.String()},
		KillAfter: s.Spec.Grace(), Margin: margin, NowFunc: l.now, Started: func(pid int, _ time.Duration) { s.Started(pid) },
	}, having{h}, g, nil)
	g.bye()
	switch out.Status.Outcome {
	case hold.ResultChildExit, hold.ResultChildSignal:
		how.Code = out.Status.Code
	case hold.ResultLost:
		how.Lost = out.Err
	default:
		how.Err = out.Err
	}
	how.Unclean = !out.Clean
	return how
}

// having is a hold that is there already.
type having struct{ hold.Hold }

// Acquire is hold.Acquirer's.
func (h having) Acquire(context.Context, func([]byte)) (hold.Hold, error) { return h.Hold, nil }

// lostRun executes the testaments of runs.
type lostRun struct{ l *life }

func (x lostRun) execute(ctx context.Context, cli *clientv3.Client, testament []byte, _ bool) error {
	end, ok := store.ReadTestament(testament)
	if !ok {
		return fmt.Errorf("no testament of a run: %q", testament)
	}
	return store.Execute(ctx, cli, end, x.l.h.began.Add(time.Since(x.l.h.began)))
}
