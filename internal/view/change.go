package view

import (
	"cmp"
	"maps"
	"slices"

	"github.com/go-coord/coord/internal/hold"
)

// vacancy is a seat that is nobody's: the one of the office, one slot, or, in slot -1 of max 0, all of them.
func vacancy(max, slot int, unsettled *Open, last *Last) Seat {
	return Seat{State: Vacant, Max: max, Slot: slot, Left: Unknown, Unsettled: unsettled, Last: last}
}

// Vacancies are the seats that are nobody's, as far as there is something to tell of them: an earlier hold that has not
// said that it is over, and for which nobody waits yet; or, of a name that is vacant, how its last hold ended.
func (s Standing) Vacancies() (all []Seat) {
	waited := map[Open]bool{}
	for _, seat := range s.Seats {
		if seat.Unsettled != nil {
			waited[*seat.Unsettled] = true
		}
	}
	for i, open := range s.Unsettled {
		if !waited[open] && (s.Kind == hold.KindSema || s.Vacant()) {
			all = append(all, vacancy(open.Max, open.Slot, &s.Unsettled[i], s.endOf(open.Max, open.Slot)))
		}
	}
	if last := s.LastEnd(); s.Vacant() && len(all) == 0 && last != nil {
		all = append(all, vacancy(last.Max, last.Slot, nil, last))
	}
	return all
}

// endOf is how the last hold of a slot, or of an office, ended; nil: not known.
func (s Standing) endOf(max, slot int) *Last {
	for i, end := range s.Ends {
		if end.Max == max && end.Slot == slot {
			return &s.Ends[i]
		}
	}
	return nil
}

// posts are the seats whose changes are told: the first of an office, or that it is vacant; of a semaphore its slots, but
// for those that are free and settled.
func (s Standing) posts() map[place]Seat {
	all := map[place]Seat{}
	if s.Kind == hold.KindElect {
		at := place{0, -1}
		switch {
		case !s.Vacant():
			all[at] = s.Seats[0]
		case len(s.Unsettled) > 0:
			all[at] = vacancy(0, -1, &s.Unsettled[0], s.endOf(0, -1))
		default:
			all[at] = vacancy(0, -1, nil, s.endOf(0, -1))
		}
		return all
	}
	for i, open := range s.Unsettled {
		all[place{open.Max, open.Slot}] = vacancy(open.Max, open.Slot, &s.Unsettled[i], s.endOf(open.Max, open.Slot))
	}
	for _, seat := range s.Seats {
		if seat.Slot >= 0 {
			all[place{seat.Max, seat.Slot}] = seat
		}
	}
	return all
}

// Changes are the seats of is that differ from was, another standing of the same name: those that have become vacant
// first. Where was is nil they are all seats that are told of, or a vacancy.
//
// Last is how the hold that was seen in was ended; nothing, in How, where no record says so.
func Changes(was *Standing, is Standing) (all []Seat) {
	before, now := map[place]Seat{}, is.posts()
	if was != nil {
		before = was.posts()
	}
	for at := range before {
		if _, there := now[at]; !there {
			now[at] = vacancy(at.max, at.slot, nil, is.endOf(at.max, at.slot))
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(now), place.compare) {
		seat, earlier := now[at], before[at]
		if seat.same(earlier) {
			continue
		}
		if earlier.State.Holds() && seat.Token != earlier.Token && (seat.Last == nil || seat.Last.Token != earlier.Token) {
			seat.Last = &Last{Max: at.max, Slot: at.slot, Token: earlier.Token, Holder: earlier.Holder}
		}
		all = append(all, seat)
	}
	if was == nil && len(all) == 0 {
		all = append(all, vacancy(0, -1, nil, is.LastEnd()))
	}
	slices.SortStableFunc(all, func(a, b Seat) int { return cmp.Compare(taken(a), taken(b)) })
	return all
}

func taken(s Seat) int {
	if s.State == Vacant {
		return 0
	}
	return 1
}

// same reports whether two seats are told alike.
func (s Seat) same(o Seat) bool {
	return s.State == o.State && s.Key == o.Key && s.Create == o.Create && s.Token == o.Token && s.Lease == o.Lease &&
		s.Holder == o.Holder && s.Unsettled.mod() == o.Unsettled.mod()
}

func (o *Open) mod() int64 {
	if o == nil {
		return 0
	}
	return o.Mod
}
