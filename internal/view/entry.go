package view

import (
	"strings"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// Name is a thing that can be held: an office or a semaphore. The zero Name is that of keys which have none.
type Name struct {
	Kind string // hold.KindElect or hold.KindSema
	Name string
}

// Ranges are what a Standing is made of: prefixes, where they end with a slash, and keys. The first is the queue, the last
// how the last holds ended.
func (n Name) Ranges() []string {
	if n.Kind == hold.KindElect {
		open, last := hold.OfficeKeys(n.Name)
		return []string{hold.ElectRange(n.Name), open.String(), last.String()}
	}
	open, last := hold.SemaRecords(n.Name)
	return []string{hold.SemaRange(n.Name), hold.SlotPrefix(n.Name) + "/", open + "/", last + "/"}
}

// KindRanges are what the Standings of all names of a kind are made of, the queues first.
func KindRanges(kind string) []string {
	records := func(a hold.Area) string { return hold.AreaRange(a) + kind + "/" }
	if kind == hold.KindElect {
		return []string{hold.AreaRange(hold.AreaElect), records(hold.AreaOpen), records(hold.AreaLast)}
	}
	return []string{hold.AreaRange(hold.AreaSema), hold.AreaRange(hold.AreaSlot), records(hold.AreaOpen), records(hold.AreaLast)}
}

// NameOf is what a key is about. ok is false for a key in no area that is looked at here; a key in one that names
// nothing, or what cannot be a name, has the zero Name.
func NameOf(key string) (n Name, ok bool) {
	rest, ok := strings.CutPrefix(key, hold.Root)
	if !ok {
		return Name{}, false
	}
	area, rest, _ := strings.Cut(rest, "/")
	switch hold.Area(area) {
	case hold.AreaElect:
		n.Kind = hold.KindElect
	case hold.AreaSema, hold.AreaSlot:
		n.Kind = hold.KindSema
	case hold.AreaOpen, hold.AreaLast:
		n.Kind, rest, _ = strings.Cut(rest, "/")
		if n.Kind != hold.KindElect && n.Kind != hold.KindSema {
			return Name{}, true
		}
	default:
		return Name{}, false
	}
	if n.Name, _, _ = strings.Cut(rest, "/"); hold.ValidName(n.Name) != nil {
		return Name{}, true
	}
	return n, true
}

// Entry is one key as it stood at some revision, its value read as far as it can be.
type Entry struct {
	Key    string
	Create int64 // revision
	Mod    int64 // revision
	Lease  int64 // that it is on; 0: on none

	Holder hold.Holder // of a candidate's key
	Open   *Open       // of an open record
	Last   *Last       // of a last record; nil where it cannot be read
}

// Open is what an open record says of its hold: that it began, and has not said that it is over.
type Open struct {
	Max, Slot int // of a semaphore; 0 and -1 of an office

	Lease  int64         // of the hold; 0: the record cannot be read
	TTL    time.Duration // how long a successor settles at most
	Holder hold.Holder
	At     time.Time // when it began, by its own clock; for people
	Mod    int64     // revision of the record
}

// Last is how a hold ended. After one of a foreign client, which writes none, it is about an earlier one.
type Last struct {
	Max, Slot int // of a semaphore; 0 and -1 of an office

	Token  uint64
	Holder hold.Holder
	How    hold.End // "": nobody has said
	At     time.Time
	Mod    int64 // revision of the record
}

// Known reports whether a holder is one of ours. Of any other its String is the escaped beginning of the value.
func Known(h hold.Holder) bool { return h.Host != "" }
