//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/go-coord/coord/test/netns"
)

// inner is the run: what chaos is about.
func inner(text string) int {
	var c config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %v\n", err)
		return codeTrouble
	}
	deaf()
	_ = os.Unsetenv(innerEnv) // what is started plays other roles
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if c.Netns {
		if _, err := netns.Here().Do("ip", "link", "set", "lo", "up"); err != nil {
			return trouble(c, err)
		}
	}
	h, err := newHistory(c.path("history.jsonl"), c.ledgerPath())
	if err != nil {
		return trouble(c, err)
	}
	where := "in network namespaces"
	if !c.Netns {
		where = "on sockets, without the faults of the network"
	}
	fmt.Fprintf(os.Stderr, "chaos: seed %d, for %v, %s\n", c.Seed, c.Span, where)
	r, err := play(ctx, c, h)
	err = errors.Join(err, h.save())
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "chaos: interrupted")
		return codeTrouble
	case err != nil:
		return trouble(c, err)
	}
	return r.tell(c, os.Stdout, os.Stderr)
}

// play makes an arena, lets the workloads live and the faults happen in it, and judges what came of it.
func play(ctx context.Context, c config, h *history) (report, error) {
	a, err := newArena(ctx, c, h)
	defer a.close()
	if err != nil {
		return report{}, err
	}
	var loads []workload
	var parts []*part
	for _, w := range allWorkloads() {
		if !slices.Contains(c.Workloads, w.name) {
			continue
		}
		load, err := w.make(ctx, a)
		if err != nil {
			return report{}, fmt.Errorf("workload %s: %w", w.name, err)
		}
		loads, parts = append(loads, load), append(parts, load.parts()...)
	}

	// They live while the faults come, and until all of them have got over it.
	alive, end := context.WithCancel(ctx)
	var living sync.WaitGroup
	for _, p := range parts {
		living.Go(func() { p.live(alive, a) })
	}
	err = a.rage(ctx, parts)
	var late []violation
	if err == nil {
		late, err = a.calm(ctx, loads)
	}
	h.add(event{What: whatEnd})
	end()
	living.Wait()
	if err != nil || ctx.Err() != nil {
		return report{}, errors.Join(err, ctx.Err())
	}
	left, err := a.leaks(ctx)
	if err != nil {
		return report{}, err
	}
	return judge(a, loads, append(late, left...))
}

// calm waits until every workload gets on again.
func (a *arena) calm(ctx context.Context, loads []workload) ([]violation, error) {
	if err := a.disarm(ctx); err != nil { // one may have been raised without an answer
		return nil, err
	}
	since := a.history.add(event{What: whatCalm})
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) { // a poll of a file
		events, err := a.history.events()
		if err != nil || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		var late []violation
		for _, w := range loads {
			late = append(late, w.waits(events, since.At)...)
		}
		if len(late) == 0 || time.Now().After(end) {
			return late, nil
		}
	}
}
