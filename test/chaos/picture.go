//go:build linux

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"slices"
	"time"
)

// The picture of a run: offices and slots, a row each, with a bar for each hold; below them a row for each kind of fault; and a red
// line through all of it where something is wrong.
const (
	rowHeight  = 18
	nameWidth  = 170
	second     = 40               // pixels
	around     = 30 * time.Second // of a violation: what is drawn of a run that is longer than that
	widest     = 4 * around       // without a violation
	leastWidth = 2
)

// bar is a stretch of time in a row.
type bar struct {
	from, to time.Duration
	class    string
	text     string
}

// picture is rows of bars.
type picture struct {
	from, to time.Duration
	names    []string
	rows     map[string][]bar
	wrong    []violation
}

// draw writes the picture of a history to a file.
func draw(path string, events []event, wrong []violation) error {
	p := picture{rows: map[string][]bar{}, wrong: wrong}
	if len(events) > 0 {
		p.from, p.to = events[0].At, events[len(events)-1].At
	}
	if i := slices.IndexFunc(wrong, func(v violation) bool { return v.At > 0 }); i >= 0 {
		p.from, p.to = max(p.from, wrong[i].At-around), min(p.to, wrong[i].At+around)
	}
	p.from = max(p.from, p.to-widest)
	p.holds(events)
	p.faults(events)
	var b bytes.Buffer
	p.write(&b)
	return os.WriteFile(path, b.Bytes(), 0o600)
}

func (p *picture) add(row string, b bar) {
	if b.to < p.from || b.from > p.to {
		return
	}
	if p.rows[row] == nil {
		p.names = append(p.names, row)
	}
	b.from, b.to = max(b.from, p.from), min(b.to, p.to)
	p.rows[row] = append(p.rows[row], b)
}

// holds draws a bar for each token of a name, from the first to the last that is known of it: whoever was killed was alive for
// some time after that.
func (p *picture) holds(events []event) {
	type hold struct {
		row   string
		token uint64
	}
	bars := map[hold]*bar{}
	var order []hold
	for _, e := range events {
		if e.Name == "" || e.Token == 0 {
			continue
		}
		h := hold{label(e), e.Token}
		if bars[h] == nil {
			bars[h] = &bar{from: e.At, class: "killed", text: fmt.Sprintf("%s, token %d:", label(e), e.Token)}
			order = append(order, h)
		}
		b := bars[h]
		b.to = e.At
		b.text += fmt.Sprintf(" %s %d at %.3f;", e.What, e.Pid, e.At.Seconds())
		switch e.What {
		case whatStop:
			b.class = "ended"
		case whatOverlap:
			b.class = "overlap"
		}
	}
	slices.SortStableFunc(order, func(a, b hold) int { return bytes.Compare([]byte(a.row), []byte(b.row)) })
	for _, h := range order {
		p.add(h.row, *bars[h])
	}
}

// faults draws a bar for each fault, from its injection to its end.
func (p *picture) faults(events []event) {
	healed := map[int]time.Duration{}
	for _, e := range events {
		if e.What == whatHeal {
			healed[e.ID] = e.At
		}
	}
	for _, e := range events {
		if e.What == whatFault {
			p.add(e.Fault, bar{e.At, max(e.At, healed[e.ID]), "fault", fmt.Sprintf("%d: %s %s at %.3f", e.ID, e.Fault, e.Target, e.At.Seconds())})
		}
	}
}

func (p *picture) x(at time.Duration) float64 { return nameWidth + (at-p.from).Seconds()*second }

func (p *picture) write(b *bytes.Buffer) {
	height := (len(p.names) + 2) * rowHeight
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" font-family="sans-serif" font-size="11">`+"\n", p.x(p.to)+20, height)
	b.WriteString("<style>.ended{fill:#4a8}.killed{fill:#8ac}.overlap{fill:#d22}.fault{fill:#e93}.wrong{stroke:#d22;stroke-width:2}.grid{stroke:#ddd}</style>\n")
	for at := p.from.Truncate(time.Second) + time.Second; at < p.to; at += time.Second {
		fmt.Fprintf(b, `<line class="grid" x1="%.1[1]f" x2="%.1[1]f" y1="14" y2="%[2]d"/>`+"\n", p.x(at), height)
		if at%(5*time.Second) == 0 {
			fmt.Fprintf(b, `<text x="%.1f" y="11">%.0f s</text>`+"\n", p.x(at), at.Seconds())
		}
	}
	for i, name := range p.names {
		y := (i + 1) * rowHeight
		fmt.Fprintf(b, `<text x="4" y="%d">%s</text>`+"\n", y+12, escape(name))
		for _, r := range p.rows[name] {
			fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"><title>%s</title></rect>`+"\n",
				r.class, p.x(r.from), y+2, max(leastWidth, p.x(r.to)-p.x(r.from)), rowHeight-4, escape(r.text))
		}
	}
	for _, v := range p.wrong {
		if v.At >= p.from && v.At <= p.to {
			fmt.Fprintf(b, `<line class="wrong" x1="%.1[1]f" x2="%.1[1]f" y1="14" y2="%[2]d"><title>%[3]s</title></line>`+"\n", p.x(v.At), height, escape(v.Text))
		}
	}
	b.WriteString("</svg>\n")
}

// escape makes any text one for XML.
func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return b.String()
}
