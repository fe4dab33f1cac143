package view

import (
	"strings"

	"github.com/go-coord/coord/internal/hold"
)

// office derives the standing of an office from its keys, oldest first.
func (s *Standing) office(entries []Entry) {
	queue := hold.ElectRange(s.Name.Name)
	openKey, lastKey := hold.OfficeKeys(s.Name.Name)
	var open *Open
	nested := false // the key of a nested election is ahead of all candidates
	for _, e := range entries {
		rest, queued := strings.CutPrefix(e.Key, queue)
		switch {
		case e.Key == openKey.String() && e.Open != nil:
			record := *e.Open
			record.Slot, open = -1, &record
		case e.Key == lastKey.String():
			if e.Last != nil {
				last := *e.Last
				last.Slot = -1
				s.Ends = append(s.Ends, last)
			}
		case queued && !strings.Contains(rest, "/"):
			s.Seats = append(s.Seats, seatOf(e, len(s.Seats)))
		default:
			nested = nested || queued && len(s.Seats) == 0
			s.Odd = append(s.Odd, e)
		}
	}
	own := open != nil && len(s.Seats) > 0 && open.ofOffice(s.Name.Name, s.Seats[0])
	if open != nil && !own {
		s.Unsettled = append(s.Unsettled, *open)
	}
	if len(s.Seats) == 0 {
		return
	}
	first := &s.Seats[0]
	first.Last = s.LastEnd()
	switch {
	case nested:
	case open != nil && !own:
		first.State, first.Unsettled = Settling, open
	default:
		first.holds()
		if first.Opened = own; own {
			first.Since = open.At
		}
	}
}

// ofOffice reports whether the record is about the hold of that candidate for that office, so that nobody settles. A
// key made after the record is a later hold's.
func (o *Open) ofOffice(office string, first Seat) bool {
	return o.Lease != 0 && first.Key == hold.ElectKey(office, o.Lease).String() && first.Create <= o.Mod
}
