package view

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-coord/coord/internal/hold"
)

// place is a slot under a max.
type place struct{ max, slot int }

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.max, o.max), cmp.Compare(p.slot, o.slot))
}

// deck is a semaphore's keys, sorted out.
type deck struct {
	queues map[int][]Seat // by max, oldest first
	slots  map[place]Entry
	opens  map[place]*Open
	lasts  map[place]*Last
}

// semaphore derives the standing of a semaphore from its keys, oldest first.
func (s *Standing) semaphore(entries []Entry) {
	d := deck{map[int][]Seat{}, map[place]Entry{}, map[place]*Open{}, map[place]*Last{}}
	for _, e := range entries {
		if !d.take(s.Name.Name, e) {
			s.Odd = append(s.Odd, e)
		}
	}
	d.seat()
	maxima := map[int]bool{}
	for max := range d.queues {
		maxima[max] = true
	}
	for at := range d.opens {
		maxima[at.max] = true
	}
	for _, max := range slices.Sorted(maps.Keys(maxima)) {
		s.Unsettled = append(s.Unsettled, d.settle(max)...)
		s.Seats = append(s.Seats, d.queues[max]...)
	}
	for _, at := range slices.SortedFunc(maps.Keys(d.lasts), place.compare) {
		s.Ends = append(s.Ends, *d.lasts[at])
	}
}

// take sorts a key in. It reports whether it is one of the semaphore's.
func (d *deck) take(name string, e Entry) bool {
	if rest, queued := strings.CutPrefix(e.Key, hold.SemaRange(name)); queued {
		number, lease, found := strings.Cut(rest, "/")
		max, err := strconv.Atoi(number)
		if err != nil || max < 1 || strconv.Itoa(max) != number || !found || strings.Contains(lease, "/") {
			return false
		}
		seat := seatOf(e, len(d.queues[max]))
		seat.Max = max
		d.queues[max] = append(d.queues[max], seat)
		return true
	}
	key, err := hold.ParseKey(e.Key)
	if err != nil || key.Name != name {
		return false
	}
	at := place{key.Max, key.Slot}
	switch {
	case key.Area == hold.AreaSlot:
		d.slots[at] = e
	case key.Area == hold.AreaOpen && key.Kind == hold.KindSema && e.Open != nil:
		open := *e.Open
		open.Max, open.Slot = at.max, at.slot
		d.opens[at] = &open
	case key.Area == hold.AreaLast && key.Kind == hold.KindSema:
		if e.Last != nil {
			last := *e.Last
			last.Max, last.Slot = at.max, at.slot
			d.lasts[at] = &last
		}
	default:
		return false
	}
	return true
}

// seat gives each slot to the candidate on its lease, or, where there is none, a seat of its own; and puts who has a
// slot in front of who has none.
func (d *deck) seat() {
	type ticket struct {
		max   int
		lease int64
	}
	candidates := map[ticket]int{} // places in the queues
	for max, queue := range d.queues {
		for i, seat := range slices.Backward(queue) {
			candidates[ticket{max, seat.Lease}] = i
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(d.slots), place.compare) {
		e := d.slots[at]
		queue := d.queues[at.max]
		i, found := candidates[ticket{at.max, e.Lease}]
		if found && e.Lease != 0 && queue[i].Slot < 0 {
			queue[i].holds()
		} else {
			left := seatOf(e, -1)
			left.Max, left.State = at.max, Leaving
			if open := d.opens[at]; open.ofSlot(e) {
				left.Holder = open.Holder
			}
			queue, i = append(queue, left), len(queue)
			d.queues[at.max] = queue
		}
		queue[i].Slot, queue[i].Token, queue[i].Last = at.slot, uint64(e.Create), d.lasts[at]
		if open := d.opens[at]; open.ofSlot(e) {
			queue[i].Opened, queue[i].Since = true, open.At
		}
	}
	for _, queue := range d.queues {
		for i, seat := range queue {
			if seat.Slot < 0 && seat.Mod != seat.Create {
				queue[i].State = Leaving // it was put again when it took a slot
			}
		}
		slices.SortStableFunc(queue, func(a, b Seat) int {
			return cmp.Or(cmp.Compare(noSlot(a), noSlot(b)), cmp.Compare(a.Slot, b.Slot))
		})
	}
}

func noSlot(s Seat) int {
	if s.Slot < 0 {
		return 1
	}
	return 0
}

// settle finds out who, under a max, is entitled to a slot and has to wait for the end of an earlier hold. It returns the
// records of these holds: those whose slot is nobody's.
func (d *deck) settle(max int) (unsettled []Open) {
	taken := 0 // slots with a key or a record
	for at := range d.slots {
		if at.max == max {
			taken++
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(d.opens), place.compare) {
		if _, owned := d.slots[at]; at.max == max && !owned {
			unsettled = append(unsettled, *d.opens[at])
			taken++
		}
	}
	// Slots without a record are taken first, and by those who came first.
	clean, next := max-taken, 0
	for i := range d.queues[max] {
		switch seat := &d.queues[max][i]; {
		case seat.State != Waiting || seat.Position >= max:
		case clean > 0:
			clean--
		case next < len(unsettled):
			seat.State, seat.Unsettled = Settling, &unsettled[next]
			next++
		}
	}
	return unsettled
}

// ofSlot reports whether the record is about the hold of the owner of that slot's key. One that cannot be read is about
// whichever.
func (o *Open) ofSlot(slot Entry) bool {
	return o != nil && (o.Lease == 0 || o.Lease == slot.Lease && slot.Create <= o.Mod)
}
