//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	inFlight = 64
	slice    = time.Second // how long each contestant works before the next one's turn
)

// contestant is one way to do a thing. op is called by inFlight workers, each with its own number and a count.
type contestant struct {
	name string
	op   func(ctx context.Context, worker, i int) error
}

// throughput lets contestants take turns, rounds times, and gives the median rate of each, in operations a second.
func throughput(ctx context.Context, rounds int, all ...contestant) ([]float64, error) {
	rates := make([][]float64, len(all))
	counts := make([]atomic.Int64, len(all)*inFlight)
	for range rounds {
		for k, c := range all {
			rate, err := work(ctx, c, counts[k*inFlight:(k+1)*inFlight])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			rates[k] = append(rates[k], rate)
		}
	}
	medians := make([]float64, len(all))
	for k := range all {
		medians[k] = middle(rates[k])
	}
	return medians, nil
}

// work is one slice of one contestant. counts go on from slice to slice.
func work(ctx context.Context, c contestant, counts []atomic.Int64) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var done atomic.Int64
	var workers sync.WaitGroup
	began := time.Now()
	for w := range inFlight {
		workers.Go(func() {
			for time.Since(began) < slice && ctx.Err() == nil {
				if err := c.op(ctx, w, int(counts[w].Add(1))); err != nil {
					cancel(err)
					return
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	return float64(done.Load()) / time.Since(began).Seconds(), context.Cause(ctx)
}

// many is how many of a thing are had at the same time, where that is measured.
const many = 10000

// spread calls op once for each of many, inFlight at a time, and gives the rate, in calls a second.
func spread(ctx context.Context, op func(i int) error) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	began := time.Now()
	for w := range inFlight {
		workers.Go(func() {
			for i := w; i < many && ctx.Err() == nil; i += inFlight {
				if err := op(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return many / time.Since(began).Seconds(), context.Cause(ctx)
}

func middle(rates []float64) float64 {
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// faster makes a result of two rates, with the ratio that ours should reach at least.
func faster(name, peer string, ours, peers, minRatio float64) result {
	return result{Name: name, Unit: "/s", Ours: &ours, Peer: peer, Peers: &peers, Ratio: ptr(ours / peers), MinRatio: &minRatio}
}
