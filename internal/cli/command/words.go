package command

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// What people read of a standing. All of it is safe on a terminal, whatever stands in etcd.

// standingText says in a few words how a seat stands whose changes are told; see view.Changes.
func standingText(s view.Seat) string {
	who := fmt.Sprintf("%s, token %d", s.Holder, s.Token)
	switch s.State {
	case view.Settling:
		return "next is " + who + ", which waits for the end of " + whose(*s.Unsettled)
	case view.Fenced:
		return "left by " + who + ", whose on-lose failed: nobody is at work, and it is free when the lease is over"
	case view.Leaving:
		return "lost by " + cmp.Or(s.Holder.String(), "an unknown holder") + fmt.Sprintf(", token %d, which has not left yet", s.Token)
	case view.Waiting: // first in its queue
		return who + " is kept waiting by a key of another election, nested in this one"
	case view.Vacant:
		return "vacant" + vacancyText(s)
	}
	return "held by " + who
}

// vacancyText goes behind "vacant": what is known of the hold before.
func vacancyText(s view.Seat) string {
	switch {
	case s.Unsettled != nil:
		return ", and unsettled: " + unsettledText(*s.Unsettled)
	case s.Last != nil:
		return "; last held by " + endText(*s.Last)
	}
	return ""
}

// slotText names a slot, in front of how it stands; nothing for an office.
func slotText(max, slot int) string {
	if slot < 0 {
		return ""
	}
	return fmt.Sprintf("slot %d of %d ", slot, max)
}

// whose says whose hold an open record is about.
func whose(o view.Open) string {
	if o.Lease == 0 {
		return "an earlier hold, whose record cannot be read"
	}
	return fmt.Sprintf("an earlier hold: %s, lease %s", o.Holder, hold.FormatLease(o.Lease))
}

// unsettledText says why the next holder settles.
func unsettledText(o view.Open) string {
	if o.Lease == 0 {
		return "an earlier hold left a record that cannot be read; the next holder waits for its own ttl"
	}
	return fmt.Sprintf("%s, lease %s, has not said that nothing of it is left; the next holder waits for that, %v at most",
		o.Holder, hold.FormatLease(o.Lease), o.TTL)
}

// howLimit is how much is shown of the word for an end, in bytes.
const howLimit = 20

// endText says whose hold ended, and how.
func endText(l view.Last) string {
	how := "which has not said how it ended"
	if l.How != "" {
		how = hold.EscapeCut(string(l.How), howLimit) + " " + l.At.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s, token %d, %s", l.Holder, l.Token, how)
}

// lastText says how the last hold of a vacant name ended; nothing where that is not known.
func lastText(s view.Standing) string {
	last := s.LastEnd()
	switch {
	case last == nil:
		return ""
	case last.Slot >= 0:
		return slotText(last.Max, last.Slot) + "was last held by " + endText(*last)
	}
	return "last held by " + endText(*last)
}

// remarks are what is not as it should be with a name, a line each.
func remarks(s view.Standing) (all []string) {
	if maxima := s.Maxima(); len(maxima) > 1 {
		text := strings.Trim(strings.ReplaceAll(fmt.Sprint(maxima), " ", ", "), "[]")
		all = append(all, fmt.Sprintf("in use with max %s at the same time: nobody else enters while that is so", text))
	}
	for _, o := range s.Unsettled {
		all = append(all, "unsettled: "+slotOf(o.Max, o.Slot)+unsettledText(o))
	}
	for _, e := range s.Odd {
		all = append(all, "odd key: "+hold.EscapeCut(e.Key, oddLimit))
	}
	return all
}

// slotOf is slotText in a list.
func slotOf(max, slot int) string {
	if text := slotText(max, slot); text != "" {
		return strings.TrimSuffix(text, " ") + ", "
	}
	return ""
}

// oddLimit is how much is shown of a key that is none of ours, in bytes.
const oddLimit = 256
