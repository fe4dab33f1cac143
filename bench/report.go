//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/go-coord/coord/bench/plot"
)

// record is a run: what is kept of it, and what documents are made of.
type record struct {
	Machine string       `json:"machine"`
	Date    string       `json:"date"`
	Rounds  int          `json:"rounds"`
	Load    [2]float64   `json:"load"` // average of a minute, before and after
	Results []result     `json:"results"`
	Charts  []plot.Chart `json:"charts"`
}

// restless is the load average before a run from which on a machine did something else as well.
const restless = 0.5

// chart gives a chart by name; an empty one where there is none.
func (r record) chart(name string) plot.Chart {
	for _, c := range r.Charts {
		if c.Name == name {
			return c
		}
	}
	return plot.Chart{Name: name}
}

// heading says where and when, and whether the machine was at rest.
func (r record) heading() string {
	s := fmt.Sprintf("%s; %s; load %.2f before, %.2f after", r.Machine, r.Date, r.Load[0], r.Load[1])
	if r.Load[0] > restless {
		s += fmt.Sprintf(". NOISY: before the run the load was above %.1f, so something else ran", restless)
	}
	return s
}

// printJSON writes one object a line.
func printJSON(w io.Writer, results []result) error {
	out := json.NewEncoder(w)
	for _, r := range results {
		line := struct {
			result
			Met bool `json:"met"`
		}{r, r.met()}
		if err := out.Encode(line); err != nil {
			return fmt.Errorf("print results: %w", err)
		}
	}
	return nil
}

// printTable writes a table.
func printTable(w io.Writer, r record) error {
	fmt.Fprintf(w, "%s\nbehind each ratio: the least and the greatest of %d rounds\n\n", r.heading(), r.Rounds)
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "what\tours\tpeer\tratio\ttarget\tverdict\tload")
	for _, r := range r.Results {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%.1f\n", r.Name, number(r.Ours, r.Unit), r.peer(), r.ratio(), r.target(), r.verdict(), r.Load)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	return nil
}

// peer is what ours was held against.
func (r result) peer() string {
	if r.Peers == nil {
		return "-"
	}
	return number(r.Peers, r.Unit) + ", " + r.Peer
}

// ratio with its spread.
func (r result) ratio() string {
	switch {
	case r.Ratio == nil:
		return "-"
	case r.Ratio.N < 2:
		return times(r.Ratio.Median)
	}
	return fmt.Sprintf("%s (%s..%s)", times(r.Ratio.Median), times(r.Ratio.Min), times(r.Ratio.Max))
}

// times writes a ratio: with two digits, or more where it is small.
func times(v float64) string {
	if v < 0.1 {
		return plot.Number(v)
	}
	return fmt.Sprintf("%.2f", v)
}

func (r result) target() string {
	switch {
	case r.MaxRatio != nil:
		return "at most " + times(*r.MaxRatio)
	case r.MinRatio != nil:
		return "at least " + times(*r.MinRatio)
	case r.Limit != nil:
		return "at most " + amount(*r.Limit, r.Unit)
	}
	return "-"
}

func number(f *figure, unit string) string {
	if f == nil {
		return "-"
	}
	return amount(f.Median, unit)
}

func amount(v float64, unit string) string {
	switch unit {
	case "count":
		return fmt.Sprintf("%.0f", v)
	case "/s":
		return plot.Number(v) + " /s"
	case "%":
		return fmt.Sprintf("%.3f %%", v)
	}
	return plot.Number(v) + " " + unit
}
