package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
	"github.com/go-coord/coord/internal/view/live"
)

// tellWho prints who holds a name and who waits for it. The read is linearizable: where etcd cannot vouch for an answer
// there is none.
func (c *call) tellWho(ctx context.Context, conn *cli.Connection, output *cli.Output, n view.Name) (int, error) {
	client, err := c.connect(ctx, conn)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var s view.Standing
	err = conn.Reach(ctx, client, func(ctx context.Context) error {
		s, err = live.Look(ctx, client, n)
		return err
	})
	if err != nil {
		return 0, lacking(client, conn.Settings, lookNeeds(n), err)
	}
	s.SetLeft(live.Left(ctx, client, s.Leases()))

	var out bytes.Buffer
	if output.JSON() {
		printLines(&out, s.Lines())
	} else {
		printStanding(&out, s)
	}
	return answer(!s.Vacant()), cli.Print(c.env.Stdout, out.Bytes())
}

// printLines prints one object a line.
func printLines(w io.Writer, all []view.Line) {
	for _, one := range all {
		_, _ = w.Write(cli.JSONLine(one)) // into memory
	}
}

// printStanding prints a table, and what there is to remark below it.
func printStanding(w io.Writer, s view.Standing) {
	if s.Vacant() {
		text := lastText(s)
		if text != "" {
			text = "; " + text
		}
		fmt.Fprintf(w, "%s is vacant%s\n", s.Name.Name, text)
	} else {
		printSeats(w, s)
	}
	for _, line := range remarks(s) {
		fmt.Fprintln(w, line)
	}
	if last := s.LastEnd(); last != nil && !s.Vacant() {
		fmt.Fprintf(w, "ended last: %s%s\n", slotOf(last.Max, last.Slot), endText(*last))
	}
}

func printSeats(w io.Writer, s view.Standing) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if s.Kind == hold.KindSema {
		fmt.Fprint(t, "SLOT\t")
	}
	fmt.Fprintln(t, "POSITION\tSTATE\tHOST\tPID\tSTARTED\tREV\tLEASE\tTTL LEFT\tCMD")
	for _, seat := range s.Seats {
		if s.Kind == hold.KindSema {
			fmt.Fprint(t, slotCell(seat), "\t")
		}
		l, position := s.Line(seat), "-"
		if seat.Position >= 0 {
			position = strconv.Itoa(seat.Position)
		}
		cmd := hold.Escape(l.Cmd)
		if l.Value != "" {
			cmd = l.Value // escaped already
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", position, l.State, dash(hold.Escape(l.Host)),
			dash(number(l.PID)), dash(l.Started), l.Rev, dash(l.Lease), span(l.TTLLeft), dash(cmd))
	}
	_ = t.Flush() // into memory
}

// slotCell is a slot, of how many.
func slotCell(s view.Seat) string {
	slot := "-"
	if s.Slot >= 0 {
		slot = strconv.Itoa(s.Slot)
	}
	return slot + "/" + strconv.Itoa(s.Max)
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
