//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-coord/coord/bench/plot"
)

// run100 is a run with one result, one chart, and curves that rise by known amounts.
func run100() record {
	line := func(label string, rise float64) plot.Line {
		return plot.Line{Label: label, Points: [][2]float64{{100, 5}, {200, 5 + 100*rise}}}
	}
	return record{
		Machine: "a machine", Date: "2026-01-02", Rounds: 3,
		Results: []result{func() result {
			r := compare("speed", "ms", once("ours", 1), once("the peer", 4)).atMost(0.5)
			r.Case = "whole"
			return r
		}()},
		Charts: []plot.Chart{
			{Name: "snapshot", Title: "To know", Lines: []plot.Line{line("NewHostWatcher, told of all", 0.02)}},
			{Name: "scale-live-processor", Lines: []plot.Line{line(liveHosts, 0.05), line(liveHolds, 0.4)}},
			{Name: "scale-live-memory", Lines: []plot.Line{line(liveHosts, 0.1), line(liveHolds, 0.2)}},
			{Name: "scale-stored", Lines: []plot.Line{line(storedMemory, 0.002), line(storedBytes, 0.0005)}},
			{Name: "scale-watchers", Lines: []plot.Line{line(watchersAll, 1), line(watchersEtcd, 0.03)}},
			{Name: "scale-watchers-memory", Lines: []plot.Line{line(storedMemory, 0.08)}},
			{Name: "scale-watchers-processor", Lines: []plot.Line{line(watchersEtcd, 0.02)}},
			{Name: "scale-jobs-memory", Lines: []plot.Line{line("conchd", 0.004)}},
			{Name: "scale-jobs-processor", Lines: []plot.Line{line("conchd", 0.0001)}},
		},
	}
}

// TestTheDocumentsShowTheKeptRun makes the documents and the charts from the run in the tree: they are what is in the tree.
func TestTheDocumentsShowTheKeptRun(t *testing.T) {
	t.Parallel()
	docs := filepath.Join("..", "docs")
	taken, err := readRecord(filepath.Join(docs, plots, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := documents(docs, taken)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range want {
		if got, err := os.ReadFile(filepath.Join(docs, name)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("docs/%s is not what the kept run makes of it (%v): go run ./bench -from docs/plots/bench.json -write", name, err)
		}
	}
	var there []string
	entries, err := os.ReadDir(filepath.Join(docs, plots))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		there = append(there, filepath.Join(plots, e.Name()))
	}
	for _, name := range there {
		if !slices.Contains(slices.Collect(maps.Keys(want)), name) {
			t.Errorf("docs/%s is of no run", name)
		}
	}
	for _, c := range cases() {
		if c.name == "stored" || c.name == "live" || c.name == "watchers" {
			continue // curves only
		}
		if _, err := taken.table([]string{c.name}); err != nil {
			t.Error(err)
		}
	}
}

// TestTheDocumentsShowEachCase: what is measured is shown, in one of them.
func TestTheDocumentsShowEachCase(t *testing.T) {
	t.Parallel()
	taken, err := readRecord(filepath.Join("..", "docs", plots, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, name := range documentNames() {
		part, err := os.ReadFile(filepath.Join("..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, part...)
	}
	for _, r := range taken.Results {
		if !bytes.Contains(text, []byte("| "+r.Name+" |")) {
			t.Errorf("no document shows %q of %s", r.Name, r.Case)
		}
	}
	for _, c := range taken.Charts {
		if !bytes.Contains(text, []byte("/"+c.Name+".svg)")) {
			t.Errorf("no document shows the chart %s", c.Name)
		}
	}
}

func TestSectionsAreFilled(t *testing.T) {
	t.Parallel()
	const text = "# By hand\n\n<!-- bench: machine -->\nold\n<!-- end -->\n\nmore\n<!-- bench: results whole -->\n<!-- end -->\n" +
		"<!-- bench: chart snapshot -->\n<!-- end -->\nend\n"
	got, err := fill([]byte(text), run100())
	if err != nil {
		t.Fatal(err)
	}
	want := "# By hand\n\n<!-- bench: machine -->\na machine; 2026-01-02; load 0.00 before, 0.00 after.\n<!-- end -->\n\nmore\n<!-- bench: results whole -->\n" +
		"| what | ours | against | ratio (spread) | target | verdict |\n|---|---|---|---|---|---|\n| speed | 1 ms | 4 ms, the peer | 0.25 | at most 0.50 | met |\n" +
		"<!-- end -->\n<!-- bench: chart snapshot -->\n![To know](plots/snapshot.svg)\n<!-- end -->\nend\n"
	if string(got) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	again, err := fill(got, run100())
	if err != nil || !bytes.Equal(again, got) {
		t.Errorf("filled twice, it is another text: %v\n%s", err, again)
	}
	for _, wrong := range []string{"results nothing", "chart nothing", "unheard"} {
		if _, err := fill([]byte("<!-- bench: "+wrong+" -->\n<!-- end -->\n"), run100()); err == nil || !strings.Contains(err.Error(), strings.Fields(wrong)[len(strings.Fields(wrong))-1]) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestAKeptRunIsReadAgain(t *testing.T) {
	t.Parallel()
	data, err := encodeRecord(run100())
	if err != nil {
		t.Fatal(err)
	}
	var got record
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if !reflect.DeepEqual(got, run100()) {
		t.Errorf("got %+v", got)
	}
}

// TestTheModelMultiplies: constants are slopes, whatever the curve begins with, and what they come to for a fleet is in its column.
func TestTheModelMultiplies(t *testing.T) {
	t.Parallel()
	c := run100().constants()
	if c.hostCPU != 0.05 || round(c.holdMemory) != 200 || round(c.stored) != 0.5 || round(c.jobCPU) != 0.0001 {
		t.Errorf("%+v", c)
	}
	model := c.model()
	for _, want := range []string{
		"| hosts *H* | 1,000 | 10,000 | 100,000 |",
		"| watchers *W* = H/100, at most 1,000 | 10 | 100 | 1,000 |",
		"| renewals, H/3 + O | 433 /s | 4,333 /s | 43,330 /s |",
		// 50 + 40 + 0.2 ms a second, and next to nothing for 0.23 events.
		"| processors of etcd's leader, (hH + oO + wW + e2HW/day) / 1,000 | 0.0902 cores | 0.903 cores | 9.09 cores |",
		"| memory of etcd, m_h H + m_o O + m_w W | 121 MB | 1,208 MB | 12,080 MB |",
		"| database, dH | 0.5 MB | 5 MB | 50 MB |",
		"| a new watcher knows all hosts, sH | 20 ms | 200 ms | 2,000 ms |",
	} {
		if !strings.Contains(model, want+"\n") {
			t.Errorf("no line %q in\n%s", want, model)
		}
	}
	if table := c.table(); !strings.Contains(table, "| *e* | 0.03 ms |") {
		t.Errorf("no *e* in\n%s", table)
	}
}
