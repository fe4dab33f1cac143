//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// rage lets the faults of the schedule happen, and returns when they have all ended.
func (a *arena) rage(ctx context.Context, parts []*part) error {
	faults := slices.DeleteFunc(kinds(), func(k kind) bool {
		return !slices.Contains(a.Faults, k.name) || k.netns && !a.Netns || !k.concerns(parts)
	})
	began := time.Now()
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed error
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { a.progress(ctx, began) })
	var raging sync.WaitGroup
	for _, steps := range schedule(a.Seed, a.Span, faults) {
		raging.Go(func() {
			for _, st := range steps {
				select {
				case <-time.After(time.Until(began.Add(st.at))):
				case <-ctx.Done():
					return
				}
				if err := (strike{a, parts, st.id, st.target}).happen(ctx, st); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
					stop()
				}
			}
		})
	}
	raging.Wait()
	select { // the workloads have their time, whatever faults there are
	case <-time.After(time.Until(began.Add(a.Span))):
	case <-ctx.Done():
	}
	stop()
	running.Wait()
	return failed
}

// concerns reports whether there is any part that the fault can happen to.
func (k kind) concerns(parts []*part) bool {
	return len(k.roles) == 0 || slices.ContainsFunc(parts, func(p *part) bool { return slices.Contains(k.roles, p.role) })
}

// progress prints a line every ten seconds.
func (a *arena) progress(ctx context.Context, began time.Time) {
	for tick := time.NewTicker(10 * time.Second); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		events, err := a.history.events()
		if err != nil {
			continue // it will be told at the end
		}
		count := map[what]int{}
		for _, e := range events {
			count[e.What]++
		}
		fmt.Fprintf(os.Stderr, "chaos: %v: %d faults, %d holds, %d overlaps\n",
			time.Since(began).Round(time.Second), count[whatFault], count[whatStart], count[whatOverlap])
	}
}

// tell prints a fault where that is wanted.
func (a *arena) tell(e event) {
	if a.Verbose {
		fmt.Fprintf(os.Stderr, "chaos: %.3f %s %d %s %s %s\n", e.At.Seconds(), e.What, e.ID, e.Fault, e.Target, strings.ReplaceAll(e.Text, "\n", ": "))
	}
}
