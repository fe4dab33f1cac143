//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if code, played := playRole(os.Args); played {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// tiny is as little as makes each case do all that it does.
func tiny() effort {
	return effort{
		rounds: 1, slice: time.Millisecond, span: 50 * time.Millisecond, calm: 30 * time.Millisecond,
		flights: []int{1, 2}, keys: 20, sessions: 20, keep: 2 * time.Second,
		fleets: []int{10, 150}, audience: 2, crowd: 10, idle: []int{5, 20}, peers: []int{2, 5}, viewers: []int{1, 3},
	}
}

// TestEachCaseMeasures runs each of them once, with tiny numbers, and makes the documents of what comes out.
func TestEachCaseMeasures(t *testing.T) {
	b, err := newBench(t.Context(), filepath.Join("..", "bin"), tiny())
	if err != nil {
		t.Fatalf("%v (the programs in bin are built by make build tools)", err)
	}
	t.Cleanup(b.close)
	taken, ran := record{Machine: "m", Date: "2026-01-01", Rounds: 1}, 0
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			ran++
			o, err := b.take(t.Context(), c)
			for try := 1; errors.Is(err, errBusy) && try < 5; try++ {
				t.Log(err)
				o, err = b.take(t.Context(), c)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(o.results)+len(o.charts) == 0 {
				t.Fatal("nothing came out")
			}
			for _, r := range o.results {
				if r.Ours == nil || r.Ours.N < 1 || r.Ours.Median < 0 || r.Case != c.name || r.Name == "" {
					t.Errorf("%+v", r)
				}
				// There may be no overlaps, and a daemon that is not looked at for long may need no processor meanwhile.
				if r.Unit != "count" && r.Unit != "%" && r.Ours.Median == 0 {
					t.Errorf("%s took no time, or no room: %+v", r.Name, r.Ours)
				}
				if (r.Peers == nil) != (r.Ratio == nil) || r.Ratio != nil && (r.Ratio.Median <= 0 || r.Peer == "") {
					t.Errorf("%s: peer %q %+v, ratio %+v", r.Name, r.Peer, r.Peers, r.Ratio)
				}
			}
			for _, chart := range o.charts {
				if _, err := chart.SVG(); err != nil {
					t.Error(err)
				}
			}
			taken.Results, taken.Charts = append(taken.Results, o.results...), append(taken.Charts, o.charts...)
		})
	}
	if t.Failed() || ran < len(cases()) { // only some were asked for
		return
	}
	checkOverlaps(t, taken)
	dir := docsCopy(t)
	if err := writeDocuments(dir, taken); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if code, err := run(t.Context(), []string{"-from", filepath.Join(dir, plots, "bench.json"), "-write", "-docs", dir}, &again); err != nil || code != 0 {
		t.Fatalf("from the kept run: code %d, %v", code, err)
	}
}

// checkOverlaps holds what is a promise, whatever the machine does: nobody acts beside somebody else, and no orphan is left.
func checkOverlaps(t *testing.T, taken record) {
	t.Helper()
	for _, r := range taken.Results {
		if r.Unit == "count" && r.Limit != nil && !r.met() {
			t.Errorf("%s: %v", r.Name, r.Ours.Max)
		}
	}
}

// docsCopy is a folder with the documents as they are in the tree.
func docsCopy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range documentNames() {
		text, err := os.ReadFile(filepath.Join("..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
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

func TestWhatIsAskedForWrongly(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-only nothing":         `-only "nothing": want some of whole, hand-over`,
		"-rounds 0":             "-rounds 0: want 1 or more",
		"-write -only whole":    "-write with -only whole: the documents show one run of all cases",
		"more":                  `argument "more": want flags only`,
		"-from no-such-file":    "no-such-file",
		"-bin no-such -only x":  `-only "x"`,
		"-from bench_test.go":   "read the run bench_test.go",
		"-only whole,whole,etc": `-only "etc"`,
	} {
		var out bytes.Buffer
		code, err := run(t.Context(), strings.Fields(args), &out)
		if code == 0 || err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: code %d, %v, %q; want an error with %q", args, code, err, &out, want)
		}
	}
}
