package command

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// leases are those that the table shows, in its order.
func (o overview) leases() (all []int64) {
	for _, s := range o.standings {
		for _, seat := range shownSeats(s) {
			all = append(all, seat.Lease)
		}
	}
	for _, run := range o.runs {
		all = append(all, run.Lease)
	}
	for _, h := range o.hosts {
		all = append(all, h.Lease)
	}
	return all
}

// setLeft takes in what leases have left.
func (o overview) setLeft(left map[int64]time.Duration) {
	for _, s := range o.standings {
		s.SetLeft(left)
	}
	for i, run := range o.runs {
		if d, known := left[run.Lease]; known {
			o.runs[i].Left = d
		}
	}
	for i, h := range o.hosts {
		if d, known := left[h.Lease]; known {
			o.hosts[i].Left = d
		}
	}
}

// lines are all that there is, as a program reads it.
func (o overview) lines() (all []view.Line) {
	for _, s := range o.standings {
		all = append(all, s.Lines()...)
	}
	for i := range o.runs {
		all = append(all, o.runs[i].Line())
	}
	for i := range o.pauses {
		all = append(all, o.pauses[i].Line())
	}
	for _, h := range o.hosts {
		all = append(all, h.Line())
	}
	return all
}

// shownSeats are those that have a row: who holds or settles, and who is first where nobody does. The others are counted.
func shownSeats(s view.Standing) (shown []view.Seat) {
	for _, seat := range s.Seats {
		if seat.State != view.Waiting {
			shown = append(shown, seat)
		}
	}
	if len(shown) == 0 && !s.Vacant() {
		shown = s.Seats[:1]
	}
	return shown
}

const statusHeads = "KIND\tNAME\tSLOT\tSTATE\tHOST\tAGE\tTTL LEFT\tWAITING\tPID\tREV\tCMD OR LAST HOLD"

// table is what people read: rows, and then what is not as it should be. All of it is safe on a terminal.
func (o overview) table(now time.Time) (lines []string) {
	var out bytes.Buffer // which takes anything
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, statusHeads)
	rows := len(o.hosts) + len(o.runs)
	var below []string
	for _, s := range o.standings {
		about := s.Kind + " " + s.Name.Name + ": "
		if s.Name == (view.Name{}) {
			about = ""
		}
		for _, remark := range remarks(s) {
			below = append(below, about+remark)
		}
		if about == "" {
			continue
		}
		for _, row := range rowsOf(s, now) {
			fmt.Fprintln(t, strings.Join(row, "\t"))
			rows++
		}
	}
	for _, run := range o.runs {
		fmt.Fprintln(t, strings.Join(runRow(run, now), "\t"))
	}
	below = append(below, pauseLines(o.pauses)...)
	for _, h := range o.hosts {
		fmt.Fprintln(t, strings.Join(hostRow(h, now), "\t"))
	}
	_ = t.Flush()
	if rows == 0 {
		return append([]string{o.empty}, below...)
	}
	return append(strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), below...)
}

// rowsOf are the rows of one name.
func rowsOf(s view.Standing, now time.Time) (rows [][]string) {
	if s.Vacant() {
		return [][]string{{s.Kind, s.Name.Name, "-", string(view.Vacant), "-", "-", "-", "-", "-", "-", dash(lastText(s))}}
	}
	shown := shownSeats(s)
	waiting := strconv.Itoa(len(s.Seats) - len(shown))
	for _, seat := range shown {
		l, slot := s.Line(seat), "-"
		if s.Kind == hold.KindSema {
			slot = slotCell(seat)
		}
		what := hold.Escape(l.Cmd)
		if l.Value != "" {
			what = l.Value // escaped already
		}
		rows = append(rows, []string{
			s.Kind, s.Name.Name, slot, string(seat.State), dash(hold.Escape(l.Host)), age(seat.Since, now), span(l.TTLLeft),
			waiting, dash(number(l.PID)), strconv.FormatUint(l.Rev, 10), dash(what),
		})
		waiting = "-"
	}
	return rows
}

func hostRow(h view.Host, now time.Time) []string {
	version := ""
	if h.Version != "" {
		version = "version " + shown(h.Version)
	}
	return []string{
		hold.KindHost, dash(shown(h.UUID)), "-", string(h.State), dash(shown(h.Hostname)), age(h.Since, now),
		span(h.Line().TTLLeft), "-", "-", strconv.FormatInt(h.Rev, 10), dash(version),
	}
}

// age is how long ago something began, by a clock that may not be ours, in its two largest units.
func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	d := max(now.Sub(since), 0)
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}
