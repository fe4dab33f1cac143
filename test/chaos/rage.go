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
	if len(faults) == 0 {
		return errors.New("no fault that was asked for can happen here to these workloads")
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	began := time.Now()
	var raging, telling sync.WaitGroup
	for _, steps := range schedule(a.Seed, a.Span, faults) {
		raging.Go(func() {
			if err := a.follow(ctx, began, parts, steps); err != nil {
				stop(err)
			}
		})
	}
	telling.Go(func() { a.progress(ctx, began) })
	raging.Wait()
	sleep(ctx, time.Until(began.Add(a.Span))) // the workloads have their time, whatever faults there are
	err := context.Cause(ctx)
	stop(nil)
	telling.Wait()
	return err
}

// follow lets the faults of one lane happen, each at its time.
func (a *arena) follow(ctx context.Context, began time.Time, parts []*part, steps []step) error {
	for _, st := range steps {
		if !sleep(ctx, time.Until(began.Add(st.at))) {
			return nil
		}
		if err := (strike{a, parts, st.id, st.target}).happen(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits for a time to pass, or for ctx to end: then it is false.
func sleep(ctx context.Context, span time.Duration) bool {
	select {
	case <-time.After(span):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// concerns reports whether there is any part that the fault can happen to.
func (k kind) concerns(parts []*part) bool {
	return len(k.roles) == 0 || slices.ContainsFunc(parts, func(p *part) bool { return slices.Contains(k.roles, p.role) })
}

// progress prints a line every ten seconds.
func (a *arena) progress(ctx context.Context, began time.Time) {
	for sleep(ctx, 10*time.Second) {
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
