package plot

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Chart is what is drawn, and what is kept of it as JSON.
type Chart struct {
	Name  string `json:"name"` // of its file, without .svg
	Title string `json:"title"`
	X     Axis   `json:"x"`
	Y     Axis   `json:"y"`
	Lines []Line `json:"lines"`
}

// Axis says what stands along a side. The label has the unit.
type Axis struct {
	Label string `json:"label"`
	Log   bool   `json:"log,omitempty"`
}

// Line is one series of points, in the order in which they are joined.
type Line struct {
	Label  string       `json:"label"`
	Points [][2]float64 `json:"points"`
}

// Line gives the line with a label; one without points where there is none.
func (c Chart) Line(label string) Line {
	for _, l := range c.Lines {
		if l.Label == label {
			return l
		}
	}
	return Line{Label: label}
}

// The canvas, in pixels, and what is left free around the field.
const (
	width, height             = 760, 420
	left, right, top, bottom  = 78, 24, 74, 56
	fieldWidth, fieldHeight   = width - left - right, height - top - bottom
	legendColumn, legendStart = 240, 46
)

// maxLines is how many lines can be told apart.
const maxLines = 6

// style has a palette that is told apart by the colour-blind, for either background.
const style = `<style>
text{font:13px system-ui,sans-serif;fill:#24292f}.t{font-weight:600;font-size:15px}.n{font-size:12px;fill:#57606a}
.bg{fill:#fff}.g{stroke:#d0d7de;stroke-width:1}.a{stroke:#57606a;stroke-width:1}.l{fill:none;stroke-width:2}
.s0{stroke:#0057b8;color:#0057b8}.s1{stroke:#c2410c;color:#c2410c}.s2{stroke:#1a7f37;color:#1a7f37}
.s3{stroke:#8250df;color:#8250df}.s4{stroke:#9a6700;color:#9a6700}.s5{stroke:#57606a;color:#57606a}.m{fill:currentColor;stroke:none}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.n{fill:#9da7b1}.bg{fill:#0d1117}.g{stroke:#30363d}.a{stroke:#9da7b1}
.s0{stroke:#58a6ff;color:#58a6ff}.s1{stroke:#ff9a5c;color:#ff9a5c}.s2{stroke:#56d364;color:#56d364}
.s3{stroke:#d2a8ff;color:#d2a8ff}.s4{stroke:#e3b341;color:#e3b341}.s5{stroke:#9da7b1;color:#9da7b1}}
</style>
`

// SVG draws the chart.
func (c Chart) SVG() (string, error) {
	if len(c.Lines) == 0 || len(c.Lines) > maxLines {
		return "", fmt.Errorf("draw %s: %d lines, want 1 to %d", c.Name, len(c.Lines), maxLines)
	}
	x, err := newScale(c.X.Log, left, left+fieldWidth, c.values(0))
	if err != nil {
		return "", fmt.Errorf("draw %s: x: %w", c.Name, err)
	}
	y, err := newScale(c.Y.Log, top+fieldHeight, top, c.values(1))
	if err != nil {
		return "", fmt.Errorf("draw %s: y: %w", c.Name, err)
	}

	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n", width, height, html.EscapeString(c.Title))
	out.WriteString(style)
	fmt.Fprintf(&out, `<rect class="bg" width="%d" height="%d"/>`+"\n", width, height)
	fmt.Fprintf(&out, `<text class="t" x="%d" y="24">%s</text>`+"\n", left, html.EscapeString(c.Title))
	axes(&out, c, x, y)
	for i, l := range c.Lines {
		drawLine(&out, i, l, x, y)
		legend(&out, i, l.Label)
	}
	out.WriteString("</svg>\n")
	return out.String(), nil
}

// values are all coordinates of one axis.
func (c Chart) values(axis int) (all []float64) {
	for _, l := range c.Lines {
		for _, p := range l.Points {
			all = append(all, p[axis])
		}
	}
	return all
}

func axes(out *strings.Builder, c Chart, x, y scale) {
	for _, v := range x.ticks() {
		at := x.at(v)
		fmt.Fprintf(out, `<line class="g" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, at, top, at, top+fieldHeight)
		fmt.Fprintf(out, `<text class="n" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", at, top+fieldHeight+18, Number(v))
	}
	for _, v := range y.ticks() {
		at := y.at(v)
		fmt.Fprintf(out, `<line class="g" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, left, at, left+fieldWidth, at)
		fmt.Fprintf(out, `<text class="n" x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-8, at+4, Number(v))
	}
	fmt.Fprintf(out, `<path class="a" fill="none" d="M%d %dV%dH%d"/>`+"\n", left, top, top+fieldHeight, left+fieldWidth)
	fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", left+fieldWidth/2, height-14, html.EscapeString(c.X.Label))
	fmt.Fprintf(out, `<text x="18" y="%d" text-anchor="middle" transform="rotate(-90 18 %d)">%s</text>`+"\n",
		top+fieldHeight/2, top+fieldHeight/2, html.EscapeString(c.Y.Label))
}

// many points need no markers of their own.
const markedPoints = 12

func drawLine(out *strings.Builder, i int, l Line, x, y scale) {
	var path strings.Builder
	for n, p := range l.Points {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(n, 1)], x.at(p[0]), y.at(p[1]))
	}
	fmt.Fprintf(out, `<path class="l s%d" d="%s"/>`+"\n", i, path.String())
	if len(l.Points) > markedPoints {
		return
	}
	for _, p := range l.Points {
		out.WriteString(marker(i, x.at(p[0]), y.at(p[1])) + "\n")
	}
}

// marker is the sign of a line: told apart without its colour too.
func marker(i int, x, y float64) string {
	shape := ""
	switch i {
	case 0:
		shape = fmt.Sprintf(`<circle class="m" cx="%.1f" cy="%.1f" r="4"/>`, x, y)
	case 1:
		shape = fmt.Sprintf(`<path class="m" d="M%.1f %.1fh8v8h-8z"/>`, x-4, y-4)
	case 2:
		shape = fmt.Sprintf(`<path class="m" d="M%.1f %.1fl5 9h-10z"/>`, x, y-5)
	case 3:
		shape = fmt.Sprintf(`<path class="m" d="M%.1f %.1fl5 5l-5 5l-5 -5z"/>`, x, y-5)
	case 4:
		shape = fmt.Sprintf(`<path class="m" d="M%.1f %.1fl5 -9h-10z"/>`, x, y+5)
	default:
		shape = fmt.Sprintf(`<path class="m" d="M%.1f %.1fh10v3h-10z"/>`, x-5, y-1.5)
	}
	return fmt.Sprintf(`<g class="s%d">%s</g>`, i, shape)
}

// legend stands in up to two rows of three above the field.
func legend(out *strings.Builder, i int, label string) {
	x, y := float64(left+i%3*legendColumn), float64(legendStart+i/3*18)
	fmt.Fprintf(out, `<path class="l s%d" d="M%.0f %.0fh22"/>%s`, i, x, y-4, marker(i, x+11, y-4))
	fmt.Fprintf(out, `<text x="%.0f" y="%.0f">%s</text>`+"\n", x+28, y, html.EscapeString(label))
}

// Number writes a number for people: 1,200 and 0.05, with three digits that count below a thousand.
func Number(v float64) string {
	if math.Abs(v) >= 999.5 {
		return thousands(int64(math.Round(v)))
	}
	three, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // it was just written
	return strconv.FormatFloat(three, 'f', -1, 64)
}

func thousands(n int64) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// Slope is how much a line rises from its first to its last point, for each unit of x; 0 where it has no two of these.
func (l Line) Slope() float64 {
	if len(l.Points) < 2 {
		return 0
	}
	first, last := l.Points[0], l.Points[len(l.Points)-1]
	if first[0] == last[0] {
		return 0
	}
	return (last[1] - first[1]) / (last[0] - first[0])
}
