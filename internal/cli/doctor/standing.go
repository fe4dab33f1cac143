package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// piles is what is wrong with how offices and semaphores stand, one sort beside the other.
type piles struct {
	maxima, crowds, slots, leaseless, unsettled pile
}

// standings says what is wrong with how offices and semaphores stand.
func (v *visit) standings(c *census) {
	p := piles{
		maxima:    pile{check: "max", level: Fail, root: hold.Root, what: "such semaphores"},
		crowds:    pile{check: "holders", level: Fail, root: hold.Root, what: "such semaphores"},
		slots:     pile{check: "slot", level: Warn, root: hold.Root, what: "such slots"},
		leaseless: pile{check: "stale", level: Warn, root: hold.Root, what: "such keys"},
		unsettled: pile{check: "unsettled", level: Warn, root: hold.Root, what: "such offices and slots"},
	}
	for _, s := range c.book.Standings() {
		if s.Name.Name == "" || !c.whole(s.Kind) {
			continue // these are odd, or only a part of what there is
		}
		p.take(s)
	}
	for _, one := range []pile{p.maxima, p.crowds, p.slots, p.leaseless, p.unsettled} {
		v.show(one)
	}
}

// whole reports whether all was listed that tells how what is of one kind stands.
func (c *census) whole(kind string) bool {
	return !slices.ContainsFunc(kindParts(kind), func(part string) bool { return slices.Contains(c.hidden, part) })
}

// take takes in one standing.
func (p *piles) take(s view.Standing) {
	if s.Kind == hold.KindSema {
		p.counts(s)
		p.places(s)
	}
	for _, seat := range s.Seats {
		if seat.Lease == 0 {
			p.leaseless.add(seat.Key, "of %s is on no lease: it never goes by itself, and keeps others out of %s until somebody deletes it",
				whose(seat), s.Name.Name)
		}
	}
	for _, seat := range s.Vacancies() {
		if open := seat.Unsettled; open != nil && s.Kind == hold.KindElect {
			p.unsettled.add(s.Name.Name, "the last hold did not say that its child is gone: whoever comes next waits for that, %s; it was that of %s",
				atMost(open.TTL), text(open.Holder))
		} else if open != nil {
			p.unsettled.add(slotText(s.Name.Name, open.Max, open.Slot), "the last hold did not say that its child is gone: whoever finds no other slot waits for that, %s, "+
				"and nobody enters with another max; it was that of %s", atMost(open.TTL), text(open.Holder))
		}
	}
}

// counts compares how many hold with how many may.
func (p *piles) counts(s view.Standing) {
	hold := map[int]int{}
	all := 0
	for _, seat := range s.Seats {
		if seat.State.Holds() {
			hold[seat.Max]++
			all++
		}
	}
	maxima := s.Maxima()
	if len(maxima) > 1 {
		p.maxima.add(s.Name.Name, "%s are in use at once, and %d hold: nobody else enters with any of them", maximaText(maxima), all)
	}
	for _, max := range maxima {
		if hold[max] > max {
			p.crowds.add(s.Name.Name, "%d hold, or have not left yet, where max %d are to", hold[max], max)
		}
	}
}

// places looks for slots that are nobody's in the queue, and for holders that have lost theirs.
func (p *piles) places(s view.Standing) {
	type ticket struct {
		max   int
		lease int64
	}
	slot := map[ticket]int{} // of who is in the queue
	for _, seat := range s.Seats {
		if seat.Position >= 0 && seat.Slot >= 0 {
			slot[ticket{seat.Max, seat.Lease}] = seat.Slot
		}
	}
	for _, seat := range s.Seats {
		if seat.State != view.Leaving {
			continue
		}
		switch first, twice := slot[ticket{seat.Max, seat.Lease}]; {
		case seat.Slot < 0:
			p.slots.add(s.Name.Name, "%s has lost its slot of max %d, and has not left yet", whose(seat), seat.Max)
		case twice:
			p.slots.add(slotText(s.Name.Name, seat.Max, seat.Slot), "%s has slot %d as well: nobody can be in two", whose(seat), first)
		default:
			p.slots.add(slotText(s.Name.Name, seat.Max, seat.Slot), "%s has lost its place in the queue, and has not left yet", whose(seat))
		}
	}
}

// request is an order to leave.
type request struct {
	key   hold.Key
	lease int64 // that it is on; 0: none
	says  hold.Eviction
}

// askedFor is how long after it was asked a holder should have left: longer than most hooks take.
const askedFor = time.Minute

// requests looks for holders that were asked to leave, and have not.
func (v *visit) requests(c *census, now time.Time) {
	p := pile{check: "evict", level: Warn, root: hold.AreaRange(hold.AreaEvict), what: "such requests"}
	for _, r := range c.asked {
		ago := now.Sub(r.says.At)
		switch {
		case !r.says.At.IsZero() && ago < askedFor:
			continue
		case !c.whole(r.key.Kind):
			continue
		}
		since := "nobody knows when"
		if !r.says.At.IsZero() {
			since = short(ago.Truncate(time.Second)) + " ago"
		}
		if seat := c.holder(r.key); seat != nil {
			p.add(r.key.Name, "%s was asked to leave %s, and has not: it is busy or frozen, or does not listen; conch evict %s %s --force --rev %d takes away what it holds",
				whose(*seat), since, r.key.Kind, r.key.Name, seat.Token)
			continue
		}
		p.add(r.key.String(), "asks a holder that is gone to leave, %s", since)
	}
	v.show(p)
}

// holder is who was asked by a request; nil: it does not hold.
func (c *census) holder(asked hold.Key) *view.Seat {
	for _, seat := range c.book.Standing(view.Name{Kind: asked.Kind, Name: asked.Name}).Seats {
		if seat.Lease == asked.Lease && seat.State.Holds() {
			return &seat
		}
	}
	return nil
}

// whose says whose a seat is, for people. A slot's key tells no more than its lease.
func whose(s view.Seat) string {
	lease := "lease " + hold.FormatLease(s.Lease)
	switch {
	case !view.Known(s.Holder) && s.Position < 0:
		return "the holder on " + lease
	case s.Lease == 0:
		return text(s.Holder)
	}
	return text(s.Holder) + " on " + lease
}

// text is a holder, for people.
func text(h hold.Holder) string {
	s := h.String()
	switch {
	case s == "":
		return "somebody"
	case len(s) > holderMost:
		return strings.ToValidUTF8(s[:holderMost], "") + "..."
	}
	return s
}

// holderMost is how much of a holder is told, in bytes.
const holderMost = 150

func slotText(name string, max, slot int) string {
	return fmt.Sprintf("%s slot %d of %d", name, slot, max)
}

func maximaText(all []int) string {
	var words []string
	for _, max := range all[:min(len(all), showMost)] {
		words = append(words, fmt.Sprintf("max %d", max))
	}
	if more := len(all) - showMost; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// atMost is a recorded TTL; 0: the record cannot be read.
func atMost(ttl time.Duration) string {
	if ttl == 0 {
		return "for its own TTL at most"
	}
	return short(ttl) + " at most"
}
