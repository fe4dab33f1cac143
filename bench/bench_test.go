//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   []time.Duration
		want time.Duration
	}{{nil, 0}, {[]time.Duration{3}, 3}, {[]time.Duration{9, 1, 5}, 5}, {[]time.Duration{4, 1, 9, 2}, 3}} {
		if got := median(tt.in); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.in, got, tt.want)
		}
	}
}

func TestHandOvers(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		acts     []interval
		gaps     []time.Duration
		overlaps int
	}{
		"one after the other, read in any order": {[]interval{{3, 50, 60}, {1, 0, 10}, {2, 20, 30}}, []time.Duration{10, 20}, 0},
		"one begins before the last has ended":   {[]interval{{1, 0, 10}, {2, 9, 20}, {3, 25, 30}}, []time.Duration{5}, 1},
		"one alone":                              {[]interval{{1, 0, 10}}, nil, 0},
	} {
		gaps, overlaps := handOvers(tt.acts)
		if !slices.Equal(gaps, tt.gaps) || overlaps != tt.overlaps {
			t.Errorf("%s: %v, %d overlaps, want %v, %d", what, gaps, overlaps, tt.gaps, tt.overlaps)
		}
	}
}

func TestReadActs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "acts")
	if acts, err := readActs(file); err != nil || len(acts) != 0 {
		t.Errorf("a file that is not there yet: %v, %v", acts, err)
	}
	if err := os.WriteFile(file, []byte("stubborn 1 2 3\nact 7 100 200\nact 8 30"), 0o600); err != nil {
		t.Fatal(err)
	}
	if acts, err := readActs(file); err != nil || !slices.Equal(acts, []interval{{7, 100, 200}}) {
		t.Errorf("got %v, %v", acts, err)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	fast := compare("fast", [2][]time.Duration{{time.Millisecond}, {2 * time.Millisecond}}, 1)
	slow := compare("slow", [2][]time.Duration{{3 * time.Millisecond}, {2 * time.Millisecond}}, 1)
	big := result{Name: "big", Unit: "MB", Ours: ptr(18.0), Limit: ptr(17.0)}
	small := result{Name: "small", Unit: "count", Ours: ptr(0.0), Limit: ptr(0.0)}
	often := result{Name: "often", Unit: "/s", Peer: "the other", Ours: ptr(300.0), Peers: ptr(200.0), Ratio: ptr(1.5), MinRatio: ptr(1.25)}
	seldom := result{Name: "seldom", Unit: "/s", Peer: "the other", Ours: ptr(100.0), Peers: ptr(200.0), Ratio: ptr(0.5), MinRatio: ptr(1.25)}
	if missed([]result{fast, small, often}) || !missed([]result{fast, slow}) || !missed([]result{big}) || !missed([]result{seldom}) {
		t.Error("a target that is met counts as missed, or the other way round")
	}

	var out bytes.Buffer
	if err := report(&out, "m", []result{fast, slow, big, small, seldom, often}, false); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[3:] {
		if got, want := strings.Contains(line, "MISSED"), i == 1 || i == 2 || i == 4; got != want {
			t.Errorf("%q: missed %v", line, got)
		}
	}
	out.Reset()
	if err := report(&out, "m", []result{slow}, true); err != nil {
		t.Fatal(err)
	}
	want := `{"name":"slow","unit":"ms","ours":3,"peers":2,"ratio":1.5,"max_ratio":1,"samples":1,"met":false}` + "\n"
	if out.String() != want {
		t.Errorf("got %s want %s", &out, want)
	}
}
