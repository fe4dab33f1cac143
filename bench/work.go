//go:build linux

package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// operation is what workers repeat, each with its own number.
type operation func(ctx context.Context, worker int) error

// rate makes a contestant of an operation: a turn is a slice of so many workers, and measures operations a second.
func (b *bench) rate(name string, workers int, op operation) contestant {
	return contestant{name, func(ctx context.Context, _ int) ([]float64, error) {
		rate, err := work(ctx, workers, b.slice, op)
		return []float64{rate}, err
	}}
}

// work repeats an operation for a while and gives how many a second were done.
func work(ctx context.Context, workers int, slice time.Duration, op operation) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var done atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for w := range workers {
		all.Go(func() {
			// Once at least: a slice may be shorter than what is repeated.
			for first := true; (first || time.Since(began) < slice) && ctx.Err() == nil; first = false {
				if err := op(ctx, w); err != nil {
					cancel(err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(began).Seconds(), context.Cause(ctx)
}

// together is how many calls are made at the same time where there are many to be made.
const together = 64

// spread calls op once for each of n, some at a time, and gives the rate, in calls a second.
func spread(ctx context.Context, n int, op func(i int) error) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	began := time.Now()
	for w := range together {
		all.Go(func() {
			for i := w; i < n && ctx.Err() == nil; i += together {
				if err := op(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return float64(n) / time.Since(began).Seconds(), context.Cause(ctx)
}

// repeat makes a contestant of something that is timed: a turn repeats it for a slice, once at least, and measures milliseconds.
func (b *bench) repeat(name string, op func(ctx context.Context) (time.Duration, error)) contestant {
	return contestant{name, func(ctx context.Context, _ int) ([]float64, error) {
		var times []float64
		for began := time.Now(); len(times) == 0 || time.Since(began) < b.slice; {
			took, err := op(ctx)
			if err != nil {
				return nil, err
			}
			times = append(times, millis(took))
		}
		return times, nil
	}}
}
