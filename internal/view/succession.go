package view

import (
	"slices"

	"github.com/go-coord/coord/internal/hold"
)

// Succession finds out who comes after a hold that is to end: the next who really holds, and nobody later, however
// short that one's time was. It takes in how the name stands, in order and without a gap, from a standing on in which the
// hold was there.
//
//	the hold stands ──► its keys are gone ──► nothing of its child is left, and the next holds, or nobody wants to
//
// The next of an office is the first whose own open record stands: who is first in the queue without one may be dead, and
// never begin. A foreign client opens none, and neither do those under --settle off: where the hold that is to end had
// none, none is asked for. The next of a semaphore is the first who takes a slot under the same max, that slot or another
// one: who waits takes whichever is free.
type Succession struct {
	hold Seat
	seen int64 // revision of the last standing with the hold in it
	next *Seat // who holds, once somebody does: it stays so
	end  Last
}

// Handover is how far a hold has got in ending.
type Handover struct {
	Hold   *Seat // it stands; nil: its keys are gone
	Open   *Open // no word has come yet that nothing of its child is left, or of an earlier one's
	Next   *Seat // who holds after it
	Coming *Seat // there is no Next, and this is who will hold: it settles, or has not begun
	Vacant bool  // nobody holds after it, and nobody waits
	End    Last  // how the hold ended; nothing, in How, where no record says so
}

// Settled reports whether only the word of the ended hold is missing, or not even that.
func (h Handover) Settled() bool { return h.Hold == nil && (h.Next != nil || h.Vacant) }

// Over reports whether there is nothing more to come.
func (h Handover) Over() bool { return h.Settled() && h.Open == nil }

// NewSuccession begins with a hold as it is in a standing at a revision.
func NewSuccession(of Seat, rev int64) *Succession {
	return &Succession{hold: of, seen: rev, end: Last{Max: of.Max, Slot: of.Slot, Token: of.Token, Holder: of.Holder}}
}

// Take takes in the next standing.
func (s *Succession) Take(is Standing) Handover {
	for _, end := range is.Ends {
		if end.Max == s.hold.Max && end.Slot == s.hold.Slot && end.Token == s.hold.Token {
			s.end = end
		}
	}
	if i := slices.IndexFunc(is.Seats, s.isHold); i >= 0 {
		s.seen = is.Rev
		return Handover{Hold: &is.Seats[i], End: s.end}
	}
	h := Handover{End: s.end}
	if is.Kind == hold.KindElect {
		s.office(is, &h)
	} else {
		s.slot(is, &h)
	}
	if s.next == nil {
		s.next = h.Next
	}
	if s.next != nil {
		h.Next, h.Coming, h.Vacant = s.next, nil, false
	}
	return h
}

// Believe takes who is Coming for the Next: somebody has reason to think that it holds without a record.
func (s *Succession) Believe(coming Seat) {
	if s.next == nil {
		s.next = &coming
	}
}

func (s *Succession) isHold(seat Seat) bool {
	if s.hold.Slot >= 0 {
		return seat.Max == s.hold.Max && seat.Slot == s.hold.Slot && seat.Token == s.hold.Token
	}
	return seat.Key == s.hold.Key && seat.Create == s.hold.Create
}

func (s *Succession) office(is Standing, h *Handover) {
	if len(is.Unsettled) > 0 {
		h.Open = &is.Unsettled[0]
	}
	if h.Vacant = is.Vacant(); h.Vacant {
		return
	}
	first := &is.Seats[0]
	switch {
	case !Known(first.Holder): // it does not settle, and opens nothing
		h.Next = first
	case first.State.Holds() && (first.Opened || !s.hold.Opened):
		h.Next = first
	default:
		h.Coming = first
	}
}

// Unopened reports whether who holds an office has no record of its own: it has none, or has not begun.
func (s Standing) Unopened() bool {
	return s.Kind == hold.KindElect && len(s.Seats) > 0 && s.Seats[0].State.Holds() && !s.Seats[0].Opened
}

func (s *Succession) slot(is Standing, h *Handover) {
	for i, open := range is.Unsettled {
		if open.Max == s.hold.Max && (open.Slot == s.hold.Slot || open.Lease == s.hold.Lease && open.Lease != 0) {
			h.Open = &is.Unsettled[i]
		}
	}
	for i := range is.Seats {
		switch seat := &is.Seats[i]; {
		case seat.Max != s.hold.Max:
		case seat.State.Holds():
			if seat.Slot >= 0 && seat.Token > uint64(s.seen) && (h.Next == nil || seat.Token < h.Next.Token) {
				h.Next = seat
			}
		case h.Coming == nil || seat.Position < h.Coming.Position:
			h.Coming = seat
		}
	}
	h.Vacant = h.Next == nil && h.Coming == nil
}
