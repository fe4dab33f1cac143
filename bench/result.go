//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// result is one line of the outcome. What does not apply is nil.
type result struct {
	Name     string   `json:"name"`
	Unit     string   `json:"unit"`
	Ours     *float64 `json:"ours,omitempty"`
	Peer     string   `json:"peer,omitempty"` // etcdctl lock where it is empty
	Peers    *float64 `json:"peers,omitempty"`
	Ratio    *float64 `json:"ratio,omitempty"`
	MaxRatio *float64 `json:"max_ratio,omitempty"` // target for Ratio
	MinRatio *float64 `json:"min_ratio,omitempty"` // target for Ratio
	Limit    *float64 `json:"limit,omitempty"`     // target for Ours
	Samples  int      `json:"samples,omitempty"`   // of ours
}

func ptr[T any](v T) *T { return &v }

// met reports whether every target is met.
func (r result) met() bool {
	return (r.MaxRatio == nil || r.Ratio != nil && *r.Ratio <= *r.MaxRatio) &&
		(r.MinRatio == nil || r.Ratio != nil && *r.Ratio >= *r.MinRatio) &&
		(r.Limit == nil || r.Ours != nil && *r.Ours <= *r.Limit)
}

// missed reports whether any target is missed.
func missed(results []result) bool {
	return slices.ContainsFunc(results, func(r result) bool { return !r.met() })
}

// compare makes a result of two series, ours first: medians, and their ratio with its target (0: none).
func compare(name string, times [2][]time.Duration, maxRatio float64) result {
	ours, peers := millis(median(times[0])), millis(median(times[1]))
	r := result{Name: name, Unit: "ms", Ours: &ours, Peers: &peers, Ratio: ptr(ours / peers), Samples: len(times[0])}
	if maxRatio > 0 {
		r.MaxRatio = &maxRatio
	}
	return r
}

func median(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(times))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func slowest(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	return slices.Max(times)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// report writes the results as a table, or as one JSON object a line.
func report(w io.Writer, machine string, results []result, asJSON bool) error {
	if asJSON {
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
	fmt.Fprintf(w, "machine: %s\n\n", machine)
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "what\tours\tpeer\tratio\ttarget\t")
	for _, r := range results {
		target, verdict := "", ""
		switch {
		case r.MaxRatio != nil:
			target = fmt.Sprintf("ratio <= %.2f", *r.MaxRatio)
		case r.MinRatio != nil:
			target = fmt.Sprintf("ratio >= %.2f", *r.MinRatio)
		case r.Limit != nil:
			target = "<= " + number(r.Limit, r.Unit)
		}
		if !r.met() {
			verdict = "MISSED"
		}
		name := r.Name
		if r.Peer != "" {
			name += ", against " + r.Peer
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", name, number(r.Ours, r.Unit), number(r.Peers, r.Unit), number(r.Ratio, ""), target, verdict)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	return nil
}

func number(v *float64, unit string) string {
	switch {
	case v == nil:
		return "-"
	case unit == "count" || unit == "/s":
		return fmt.Sprintf("%.0f", *v)
	case unit == "":
		return fmt.Sprintf("%.2f", *v)
	}
	return fmt.Sprintf("%.1f %s", *v, unit)
}
