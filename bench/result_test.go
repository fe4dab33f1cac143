//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 9, 2}, 3}} {
		if got := median(tt.in); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.in, got, tt.want)
		}
	}
}

func TestContestantsTakeTurns(t *testing.T) {
	t.Parallel()
	var order []string
	of := func(name string) contestant {
		return contestant{name, func(_ context.Context, round int) ([]float64, error) {
			order = append(order, name)
			return []float64{float64(round), 10}, nil
		}}
	}
	s, err := alternate(t.Context(), 2, of("a"), of("b"), of("c"))
	if err != nil || !slices.Equal(order, []string{"a", "b", "c", "b", "c", "a"}) {
		t.Errorf("order %v, %v", order, err)
	}
	if got := s[1].all(); s[1].name != "b" || !slices.Equal(got, []float64{0, 10, 1, 10}) {
		t.Errorf("%s measured %v", s[1].name, got)
	}

	wrong := errors.New("wrong")
	failing := contestant{"failing", func(context.Context, int) ([]float64, error) { return nil, wrong }}
	if _, err := alternate(t.Context(), 2, of("a"), failing); !errors.Is(err, wrong) || !strings.Contains(err.Error(), "failing") {
		t.Errorf("got %v", err)
	}
	if _, err := alternate(t.Context(), 1, contestant{"lazy", func(context.Context, int) ([]float64, error) { return nil, nil }}); err == nil {
		t.Error("nothing was measured, and nobody says so")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := alternate(ended, 1, of("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestARatioHasASpread(t *testing.T) {
	t.Parallel()
	ours := series{"ours", [][]float64{{1, 2, 3}, {4}, {6}}}
	peer := series{"peer", [][]float64{{4}, {4}, {3}}}
	r := compare("x", "ms", ours, peer).atMost(1)
	if r.Ours.Median != 3 || r.Ours.Min != 2 || r.Ours.Max != 6 || r.Ours.N != 5 {
		t.Errorf("ours %+v", r.Ours)
	}
	if r.Ratio.Median != 0.75 || r.Ratio.Min != 0.5 || r.Ratio.Max != 2 {
		t.Errorf("ratio %+v", r.Ratio)
	}
	if !r.met() || !r.unsure() || r.verdict() != "met, within the spread" {
		t.Errorf("verdict %q", r.verdict())
	}
	if r := r.atMost(0.5); r.met() || r.verdict() != "MISSED, within the spread" {
		t.Errorf("verdict %q", r.verdict())
	}
	if r := r.atMost(3); r.verdict() != "met" {
		t.Errorf("verdict %q", r.verdict())
	}
	// One that has fewer turns than the other is held against the median of all.
	r = compare("x", "ms", ours, once("peer", 4))
	if r.Ratio.Min != 0.5 || r.Ratio.Max != 1.5 || r.verdict() != "" {
		t.Errorf("ratio %+v, verdict %q", r.Ratio, r.verdict())
	}
}

func TestPercentilesAreOfATurn(t *testing.T) {
	t.Parallel()
	s := series{"s", [][]float64{{5, 1, 3}, {2}}}
	if got := s.percentile(99).turns; len(got) != 2 || got[0][0] != 5 || got[1][0] != 2 {
		t.Errorf("got %v", got)
	}
	if got := s.percentile(50).turns; got[0][0] != 3 {
		t.Errorf("got %v", got)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	fast := compare("fast", "ms", once("ours", 1), once(etcdctlLock, 2)).atMost(1)
	slow := compare("slow", "ms", once("ours", 3), once(etcdctlLock, 2)).atMost(1)
	big, small := alone("big", "MB", once("", 18)).within(17), alone("small", "count", once("", 0)).within(0)
	often := compare("often", "/s", once("ours", 300), once("the other", 200)).atLeast(1.25)
	seldom := compare("seldom", "/s", once("ours", 100), once("the other", 200)).atLeast(1.25)
	untold := alone("untold", "%", once("", 0.5))
	if missed([]result{fast, small, often, untold}) || !missed([]result{fast, slow}) || !missed([]result{big}) || !missed([]result{seldom}) {
		t.Error("a target that is met counts as missed, or the other way round")
	}

	var out bytes.Buffer
	taken := record{Machine: "m", Rounds: 3, Load: [2]float64{0.2, 1}, Results: []result{fast, slow, big, small, seldom, often, untold}}
	if err := printTable(&out, taken); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, line := range lines[4:] {
		if got, want := strings.Contains(line, "MISSED"), i == 1 || i == 2 || i == 4; got != want {
			t.Errorf("%q: missed %v", line, got)
		}
	}
	if strings.Contains(lines[0], "NOISY") {
		t.Errorf("a quiet machine: %q", lines[0])
	}
	taken.Load[0] = 0.9
	if !strings.Contains(taken.heading(), "NOISY") {
		t.Errorf("a busy machine: %q", taken.heading())
	}
	out.Reset()
	if err := printJSON(&out, []result{slow}); err != nil {
		t.Fatal(err)
	}
	want := `{"case":"","name":"slow","unit":"ms","ours":{"median":3,"min":3,"max":3,"n":1},"peer":"etcdctl lock",` +
		`"peers":{"median":2,"min":2,"max":2,"n":1},"ratio":{"median":1.5,"min":1.5,"max":1.5,"n":1},"max_ratio":1,"load":0,"met":false}` + "\n"
	if out.String() != want {
		t.Errorf("got %s want %s", &out, want)
	}
}
