//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// errBusy says that something was lost for want of time: what has given up costs nothing, and would win.
var errBusy = errors.New("too much else is going on to measure")

// contestant is one way to do a thing. A turn does it for a while and gives what it measured: one number or several.
type contestant struct {
	name string
	turn func(ctx context.Context, round int) ([]float64, error)
}

// series is what one contestant measured, turn by turn.
type series struct {
	name  string
	turns [][]float64
}

// alternate lets contestants take turns, so that what disturbs one disturbs the others. Each round begins with another of
// them: none always comes after the same one.
func alternate(ctx context.Context, rounds int, all ...contestant) ([]series, error) {
	measured := make([]series, len(all))
	for k, c := range all {
		measured[k].name = c.name
	}
	for round := range rounds {
		for i := range all {
			k := (round + i) % len(all)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			got, err := all[k].turn(ctx, round)
			if err == nil && len(got) == 0 {
				err = fmt.Errorf("nothing was measured")
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", all[k].name, err)
			}
			measured[k].turns = append(measured[k].turns, got)
		}
	}
	return measured, nil
}

// all are the numbers of all turns.
func (s series) all() []float64 { return slices.Concat(s.turns...) }

// figure is a measured number: the median of all that was measured, and the least and greatest median of a turn.
type figure struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
}

func (s series) figure() *figure {
	all, middles := s.all(), s.middles()
	return &figure{Median: round(median(all)), Min: round(slices.Min(middles)), Max: round(slices.Max(middles)), N: len(all)}
}

// middles are the medians of the turns.
func (s series) middles() (all []float64) {
	for _, turn := range s.turns {
		all = append(all, median(turn))
	}
	return all
}

// over is the ratio of two series: of their medians, with the least and the greatest ratio of two turns of the same round.
// Where they had not as many turns, each turn is held against the other's median.
func (s series) over(o series) *figure {
	mine, theirs := s.middles(), o.middles()
	f := &figure{Median: round(median(s.all()) / median(o.all())), N: len(mine)}
	var ratios []float64
	for i, m := range mine {
		if len(mine) == len(theirs) {
			ratios = append(ratios, m/theirs[i])
		} else {
			ratios = append(ratios, m/median(o.all()))
		}
	}
	f.Min, f.Max = round(slices.Min(ratios)), round(slices.Max(ratios))
	return f
}

// median of some numbers, 0 of none.
func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(of))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// round keeps four digits: what is measured has no more, and a kept run is read by people.
func round(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // it was just written
	return v
}

// percentile makes a series of one number a turn.
func (s series) percentile(p int) series {
	of := series{name: s.name}
	for _, turn := range s.turns {
		sorted := slices.Sorted(slices.Values(turn))
		of.turns = append(of.turns, []float64{sorted[min(len(sorted)*p/100, len(sorted)-1)]})
	}
	return of
}
