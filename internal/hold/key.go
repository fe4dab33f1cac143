package hold

import (
	"fmt"
	"strconv"
	"strings"
)

// Root is where all keys of this schema version live.
const Root = "/conch/v1/"

// Kinds of holds.
const (
	KindElect = "elect"
	KindSema  = "sema"
	KindHost  = "host"  // a registration; it has no keys below Root
	KindCron  = "cron"  // a start of a job; package record says where it stands
	KindFence = "fence" // a lock on a file; it has no keys at all
)

// Area is the first element of a key below Root.
type Area string

const (
	AreaElect Area = "elect" // <office>/<lease>: candidates, holder JSON
	AreaSema  Area = "sema"  // <name>/<max>/<lease>: candidates, holder JSON
	AreaSlot  Area = "slot"  // <name>/<max>/<slot>: who owns a slot
	AreaOpen  Area = "open"  // <kind>/<name>[/<max>/<slot>]: there while a hold lasts
	AreaLast  Area = "last"  // <kind>/<name>[/<max>/<slot>]: how the last hold ended
	AreaEvict Area = "evict" // <kind>/<name>/<lease>: please leave
	// AreaSpread is <name>/<host>/<lease>: who on a host goes for a slot of a semaphore, one after the other.
	AreaSpread Area = "spread"
)

// Key is one key below Root, taken apart. Fields that its area does not use are zero.
//
// Key.String and ParseKey are inverse to each other for every Key whose Name is valid, and no key is the
// beginning of another one at a '/': a range over one name never sees another name.
type Key struct {
	Area  Area
	Kind  string // open, last, evict
	Name  string // valid by ValidName
	Max   int    // sema, slot; open and last of a semaphore
	Slot  int    // slot; open and last of a semaphore; counts from 0
	Host  string // spread; valid by ValidName
	Lease int64  // elect, sema, evict, spread
}

// ElectKey is a candidate for an office.
func ElectKey(office string, lease int64) Key {
	return Key{Area: AreaElect, Name: office, Lease: lease}
}

// SemaKey is a candidate for a semaphore.
func SemaKey(name string, most int, lease int64) Key {
	return Key{Area: AreaSema, Name: name, Max: most, Lease: lease}
}

// SlotKey is one slot of a semaphore.
func SlotKey(name string, most, slot int) Key {
	return Key{Area: AreaSlot, Name: name, Max: most, Slot: slot}
}

// OfficeKeys are the open record and the last record of an office.
func OfficeKeys(office string) (open, last Key) {
	return Key{Area: AreaOpen, Kind: KindElect, Name: office}, Key{Area: AreaLast, Kind: KindElect, Name: office}
}

// SlotKeys are the open record and the last record of one slot.
func SlotKeys(name string, most, slot int) (open, last Key) {
	open = Key{Area: AreaOpen, Kind: KindSema, Name: name, Max: most, Slot: slot}
	last = open
	last.Area = AreaLast
	return open, last
}

// EvictKey asks the holder with this lease to leave.
func EvictKey(kind, name string, lease int64) Key {
	return Key{Area: AreaEvict, Kind: kind, Name: name, Lease: lease}
}

// SpreadPrefix is what the election works on by which the contenders of one host take turns.
func SpreadPrefix(name, host string) string {
	return Root + string(AreaSpread) + "/" + name + "/" + host
}

// EvictRange is the range of all requests to leave that are about one name.
func EvictRange(kind, name string) string { return AreaRange(AreaEvict) + kind + "/" + name + "/" }

// ElectPrefix is what an election works on: its candidates are ElectPrefix + "/" + lease. It has no
// trailing slash, because the election adds its own.
func ElectPrefix(office string) string { return Root + string(AreaElect) + "/" + office }

// ElectRange is the range of all candidates for an office.
func ElectRange(office string) string { return ElectPrefix(office) + "/" }

// SemaPrefix and SlotPrefix are what a semaphore works on: its candidates and slots lie below them, by maximum.
func SemaPrefix(name string) string { return Root + string(AreaSema) + "/" + name }

// SlotPrefix is said with SemaPrefix.
func SlotPrefix(name string) string { return Root + string(AreaSlot) + "/" + name }

// SemaRecords are the prefixes below which the open and the last records of a semaphore's slots lie.
func SemaRecords(name string) (open, last string) {
	return AreaRange(AreaOpen) + KindSema + "/" + name, AreaRange(AreaLast) + KindSema + "/" + name
}

// SemaRange is the range of all candidates for a semaphore, whatever maximum they go by.
func SemaRange(name string) string { return SemaPrefix(name) + "/" }

// SemaMaxRange is the range of the candidates that go by one maximum.
func SemaMaxRange(name string, most int) string { return SemaRange(name) + strconv.Itoa(most) + "/" }

// SlotRange is the range of the slots under one maximum.
func SlotRange(name string, most int) string {
	return SlotPrefix(name) + "/" + strconv.Itoa(most) + "/"
}

// AreaRange is the range of a whole area.
func AreaRange(a Area) string { return Root + string(a) + "/" }

// String is the key as etcd has it.
func (k Key) String() string {
	at := AreaRange(k.Area)
	if k.kinded() {
		at += k.Kind + "/"
	}
	at += k.Name
	if k.slotted() || k.Area == AreaSema {
		at += "/" + strconv.Itoa(k.Max)
	}
	if k.slotted() {
		at += "/" + strconv.Itoa(k.Slot)
	}
	if k.Area == AreaSpread {
		at += "/" + k.Host
	}
	if k.leased() {
		at += "/" + strconv.FormatInt(k.Lease, 16)
	}
	return at
}

func (k Key) kinded() bool {
	return k.Area == AreaOpen || k.Area == AreaLast || k.Area == AreaEvict
}

func (k Key) leased() bool {
	return k.Area == AreaElect || k.Area == AreaSema || k.Area == AreaEvict || k.Area == AreaSpread
}

func (k Key) slotted() bool {
	return k.Area == AreaSlot || k.Kind == KindSema && (k.Area == AreaOpen || k.Area == AreaLast)
}

// ParseKey takes a key apart. It is strict: a key that String would not have written is an error, but for
// the digits of a lease, which are read as a number, however many zeros stand in front.
func ParseKey(s string) (Key, error) {
	rest, ok := strings.CutPrefix(s, Root)
	if !ok {
		return Key{}, keyError(s, "is not below "+Root)
	}
	part := strings.Split(rest, "/")
	take := func() string {
		if len(part) == 0 {
			return ""
		}
		p := part[0]
		part = part[1:]
		return p
	}

	// What follows depends on the area, and for two of them on the kind.
	k := Key{Area: Area(take())}
	if !k.kinded() && !k.leased() && k.Area != AreaSlot {
		return Key{}, keyError(s, "is in no area known here")
	}
	if k.kinded() {
		if k.Kind = take(); k.Kind != KindElect && k.Kind != KindSema {
			return Key{}, keyError(s, "has no known kind")
		}
	}
	if k.Name = take(); ValidName(k.Name) != nil {
		return Key{}, keyError(s, "has no valid name")
	}

	if k.Area == AreaSpread {
		if k.Host = take(); ValidName(k.Host) != nil {
			return Key{}, keyError(s, "has no valid host")
		}
	}

	if missing := k.parseNumbers(take); missing != "" {
		return Key{}, keyError(s, "has no valid "+missing)
	}
	if len(part) > 0 {
		return Key{}, keyError(s, "goes on after its last part")
	}
	return k, nil
}

// parseNumbers reads what comes after the names, and says which of it is not valid.
func (k *Key) parseNumbers(take func() string) (missing string) {
	var err error
	if k.slotted() || k.Area == AreaSema {
		if k.Max, err = parseCount(take()); err != nil || k.Max == 0 {
			return "maximum"
		}
	}
	if k.slotted() {
		if k.Slot, err = parseCount(take()); err != nil || k.Slot >= k.Max {
			return "slot"
		}
	}
	if k.leased() {
		if k.Lease, err = ParseLease(take()); err != nil {
			return "lease"
		}
	}
	return ""
}

// ParseLease reads a lease id from hexadecimal digits, of any width.
func ParseLease(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 16, 63)
	if err != nil || n == 0 {
		return 0, fmt.Errorf(`parse lease "%s": not a positive hexadecimal number`, EscapeCut(s, 40))
	}
	return int64(n), nil
}

// FormatLease writes a lease id as etcd's own tools do.
func FormatLease(id int64) string { return strconv.FormatInt(id, 16) }

// parseCount reads a decimal number as strconv.Itoa writes it: no sign, no leading zero.
func parseCount(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0, strconv.ErrSyntax
	}
	return int(n), nil
}

func keyError(s, what string) error {
	return fmt.Errorf(`parse key "%s": it %s`, EscapeCut(s, 80), what)
}
