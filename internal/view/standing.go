package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// State is how a seat stands. See the package comment for what makes it so.
type State string

const (
	Held     State = "held"
	Settling State = "settling" // entitled, and waiting for the end of an earlier hold
	Fenced   State = "fenced"   // on-lose failed under --fence-on-lose: nobody is at work, and the lease runs out
	Leaving  State = "leaving"  // it held a slot and has lost its place, or the slot, and has not left yet
	Waiting  State = "waiting"
	Vacant   State = "vacant" // nobody's: it stands for the office, the slot or the semaphore
	Odd      State = "odd"    // a key that is none of ours
)

// Holds reports whether the name, or a slot of it, is taken.
func (s State) Holds() bool { return s == Held || s == Fenced || s == Leaving }

// Unknown is what a lease has left where nobody has said so.
const Unknown time.Duration = -1

// Seat is somebody who holds or waits.
type Seat struct {
	State State

	Max      int // of a semaphore; 0 of an office
	Slot     int // that it holds; -1: none
	Position int // in the queue, which 0 leads; -1 where it is in none

	Key    string // of the candidate; where there is none, of the slot
	Create int64  // revision of Key
	Mod    int64  // revision of Key
	Token  uint64 // of a holder, its fencing token; else the create revision of its key
	Lease  int64  // that Key is on; 0: none
	Holder hold.Holder
	Opened bool          // it holds, and its open record stands
	Since  time.Time     // when it began to hold, by its own clock; zero: not known, or it does not
	Left   time.Duration // that its lease has; Unknown until somebody has asked

	Unsettled *Open // settling: the earlier hold that it waits for
	Last      *Last // how the hold before it ended: of the office, or of its slot
}

// Standing is how a name stands at one revision.
type Standing struct {
	Name
	Rev int64

	// Seats are the queue of an office, in order. Of a semaphore they are, for one max after the other, who holds, by
	// slot, and then who waits, in order.
	Seats []Seat
	// Unsettled are the open records of holds of which no key is left: whoever comes next waits for their end.
	Unsettled []Open
	// Ends are how the last holds ended: of an office, or of each slot.
	Ends []Last
	// Odd are keys that lie among those of this name and are none of ours.
	Odd []Entry
}

// Stand is the standing of a name whose keys are entries, in any order. What is not about that name is Odd.
func Stand(n Name, entries []Entry, rev int64) Standing {
	entries = slices.SortedFunc(slices.Values(entries), func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Create, b.Create), strings.Compare(a.Key, b.Key))
	})
	s := Standing{Name: n, Rev: rev}
	switch n.Kind {
	case hold.KindElect:
		s.office(entries)
	case hold.KindSema:
		s.semaphore(entries)
	default:
		s.Odd = entries
	}
	return s
}

// Vacant reports whether nobody holds, and nobody waits.
func (s Standing) Vacant() bool { return len(s.Seats) == 0 }

// Known reports whether there is anything to tell of it.
func (s Standing) Known() bool {
	return !s.Vacant() || len(s.Unsettled)+len(s.Ends)+len(s.Odd) > 0
}

// Waiting counts who has no hold yet.
func (s Standing) Waiting() (n int) {
	for _, seat := range s.Seats {
		if !seat.State.Holds() {
			n++
		}
	}
	return n
}

// Maxima are the max that candidates, slots and open records go by, lowest first; none of an office. Where there is
// more than one, nobody enters.
func (s Standing) Maxima() (all []int) {
	for _, seat := range s.Seats {
		all = append(all, seat.Max)
	}
	for _, open := range s.Unsettled {
		all = append(all, open.Max)
	}
	all = slices.DeleteFunc(all, func(max int) bool { return max == 0 })
	slices.Sort(all)
	return slices.Compact(all)
}

// LastEnd is the end that was recorded last; nil: none was.
func (s Standing) LastEnd() (last *Last) {
	for i, end := range s.Ends {
		if last == nil || end.Mod > last.Mod {
			last = &s.Ends[i]
		}
	}
	return last
}

// Leases are those of all seats.
func (s Standing) Leases() (all []int64) {
	for _, seat := range s.Seats {
		all = append(all, seat.Lease)
	}
	return all
}

// SetLeft takes in what leases have left; it changes the seats.
func (s Standing) SetLeft(left map[int64]time.Duration) {
	for i, seat := range s.Seats {
		if d, known := left[seat.Lease]; known {
			s.Seats[i].Left = d
		}
	}
}

// seatOf is a candidate, before it is known how it stands.
func seatOf(e Entry, position int) Seat {
	return Seat{
		State: Waiting, Slot: -1, Position: position, Key: e.Key, Create: e.Create, Mod: e.Mod, Token: uint64(e.Create),
		Lease: e.Lease, Holder: e.Holder, Left: Unknown,
	}
}

// holds makes a seat one that holds.
func (s *Seat) holds() {
	if s.State = Held; s.Holder.Fenced {
		s.State = Fenced
	}
}
