package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

func chart() Chart {
	return Chart{
		Name: "c", Title: "time <of> a & b", X: Axis{Label: "hosts", Log: true}, Y: Axis{Label: "time, ms"},
		Lines: []Line{
			{Label: "coord", Points: [][2]float64{{100, 1}, {1000, 12}, {50_000, 480}}},
			{Label: `a "peer"`, Points: [][2]float64{{100, 2}, {1000, 10}, {50_000, 470}}},
		},
	}
}

func TestAChartIsXMLWithAllItWasGiven(t *testing.T) {
	t.Parallel()
	svg, err := chart().SVG()
	if err != nil {
		t.Fatal(err)
	}
	again, err := chart().SVG()
	if err != nil || again != svg {
		t.Errorf("the same numbers are drawn in two ways: %v", err)
	}
	var texts []string
	elements := map[string]int{}
	for in := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well formed: %v\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local]++
		case xml.CharData:
			texts = append(texts, string(token))
		}
	}
	for _, want := range []string{"time <of> a & b", "hosts", "time, ms", "coord", `a "peer"`, "100", "50,000", "0", "500"} {
		if !slices.Contains(texts, want) {
			t.Errorf("no %q in %q", want, texts)
		}
	}
	if elements["circle"] != 4 { // three points, and the legend
		t.Errorf("%d circles, want 4", elements["circle"])
	}
	if !strings.Contains(svg, "prefers-color-scheme:dark") {
		t.Error("nothing is said of a dark background")
	}
}

func TestWhatCannotBeDrawnIsRefused(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(c *Chart){
		"no lines":             func(c *Chart) { c.Lines = nil },
		"too many lines":       func(c *Chart) { c.Lines = make([]Line, maxLines+1) },
		"no points":            func(c *Chart) { c.Lines = []Line{{Label: "empty"}} },
		"not a number":         func(c *Chart) { c.Lines[0].Points[0][1] = math.NaN() },
		"zero on a log scale":  func(c *Chart) { c.Lines[0].Points[0][0] = 0 },
		"infinity":             func(c *Chart) { c.Lines[0].Points[0][1] = math.Inf(1) },
		"less than there is 0": func(c *Chart) { c.Lines[0].Points[0][1] = -1 },
	} {
		c := chart()
		change(&c)
		if svg, err := c.SVG(); err == nil {
			t.Errorf("%s: drawn: %s", what, svg)
		}
	}
}

func TestScales(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		log    bool
		values []float64
		ticks  []float64
	}{
		"linear, from zero":        {false, []float64{3, 9.7}, []float64{0, 2, 4, 6, 8, 10}},
		"linear, of zeros":         {false, []float64{0}, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		"linear, a round end":      {false, []float64{500}, []float64{0, 100, 200, 300, 400, 500}},
		"log, two decades":         {true, []float64{1, 64}, []float64{1, 2, 5, 10, 20, 50, 100}},
		"log, of one value":        {true, []float64{10}, []float64{10, 20, 50, 100}},
		"log, four decades":        {true, []float64{1, 10_000}, []float64{1, 10, 100, 1000, 10_000}},
		"log, ends between powers": {true, []float64{300, 1700}, []float64{200, 500, 1000, 2000}},
	} {
		s, err := newScale(tt.log, 0, 100, tt.values)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		got := s.ticks()
		same := len(got) == len(tt.ticks)
		for i := range min(len(got), len(tt.ticks)) {
			same = same && math.Abs(got[i]-tt.ticks[i]) < 1e-9*max(1, tt.ticks[i])
		}
		if !same {
			t.Errorf("%s: ticks %v, want %v", what, got, tt.ticks)
		}
		for _, v := range tt.values {
			if at := s.at(v); at < 0 || at > 100 {
				t.Errorf("%s: %v lies at %v, outside", what, v, at)
			}
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 0.05: "0.05", 0.1234: "0.123", 2: "2", 9.96: "9.96", 0.00001: "0.00001", 12.34: "12.3", 250: "250", 999.6: "1,000", 1234.5: "1,235", 1e6: "1,000,000", -1500: "-1,500",
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestALineByItsLabel(t *testing.T) {
	t.Parallel()
	c := chart()
	if got := c.Line("coord"); len(got.Points) != 3 {
		t.Errorf("got %+v", got)
	}
	if got := c.Line("nobody"); len(got.Points) != 0 || got.Label != "nobody" {
		t.Errorf("got %+v", got)
	}
}

func TestEveryMarkerIsAnother(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range maxLines {
		seen[marker(i, 1, 1)] = true
	}
	if len(seen) != maxLines {
		t.Errorf("%d markers for %d lines", len(seen), maxLines)
	}
}

func TestSlope(t *testing.T) {
	t.Parallel()
	for want, points := range map[float64][][2]float64{
		0: {{1, 5}}, 2: {{10, 5}, {11, 100}, {20, 25}}, -1: {{0, 5}, {5, 0}},
	} {
		if got := (Line{Points: points}).Slope(); got != want {
			t.Errorf("slope of %v = %v, want %v", points, got, want)
		}
	}
	if got := (Line{Points: [][2]float64{{1, 5}, {1, 7}}}).Slope(); got != 0 {
		t.Errorf("slope upwards = %v, want 0", got)
	}
}
