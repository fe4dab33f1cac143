package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// choose picks the one hold that is meant, as the name stands. Where it is not clear which one, or there is none, the error
// says who holds: whoever is evicted by mistake ends its work for nothing.
func (f *evictFlags) choose(is view.Standing) (view.Seat, error) {
	if f.force {
		return f.chooseToken(is)
	}
	var meant []view.Seat
	for _, seat := range is.Seats {
		if seat.State.Holds() && f.means(seat) {
			meant = append(meant, seat)
		}
	}
	switch len(meant) {
	case 0:
		return view.Seat{}, f.nobody(is)
	case 1:
		return meant[0], listens(is.Name, meant[0])
	}
	return view.Seat{}, notEvicted("%s; want --holder%s to say which one", holdersText(is), slotToo(is.Kind))
}

func slotToo(kind string) string {
	if kind == hold.KindSema {
		return " or --slot"
	}
	return ""
}

// means reports whether the flags mean that holder. Without flags they mean all.
func (f *evictFlags) means(seat view.Seat) bool {
	switch {
	case f.holder.pid != 0:
		return f.holder.is(seat.Holder)
	case f.bySlot:
		return seat.Slot == f.slot
	}
	return true
}

// nobody says why no holder is meant.
func (f *evictFlags) nobody(is view.Standing) error {
	if f.holder.pid == 0 {
		if f.bySlot {
			return notEvicted("nobody holds slot %d of %s; %s", f.slot, is.Name.Name, holdersText(is))
		}
		return notEvicted("%s", holdersText(is))
	}
	who := fmt.Sprintf("%s pid %d", hold.Escape(f.holder.host), f.holder.pid)
	if i := slices.IndexFunc(is.Seats, func(s view.Seat) bool { return f.holder.is(s.Holder) }); i >= 0 {
		return notEvicted("%s waits for %s and holds nothing; %s", who, is.Name.Name, holdersText(is))
	}
	return notEvicted("%s does not hold %s; %s", who, is.Name.Name, holdersText(is))
}

// chooseToken picks the hold with the token of --rev. Who settles for an office holds its key as well.
func (f *evictFlags) chooseToken(is view.Standing) (view.Seat, error) {
	i := slices.IndexFunc(is.Seats, func(s view.Seat) bool { return s.Token == f.rev })
	switch {
	case i < 0:
		return view.Seat{}, notEvicted("nobody holds %s with token %d; %s", is.Name.Name, f.rev, holdersText(is))
	case !is.Seats[i].State.Holds() && (is.Seats[i].State != view.Settling || is.Kind != hold.KindElect):
		return view.Seat{}, notEvicted("%s, waits for %s and holds nothing; %s", tokenText(is.Seats[i]), is.Name.Name, holdersText(is))
	}
	return is.Seats[i], nil
}

// listens refuses to ask who does not hear it.
func listens(n view.Name, seat view.Seat) error {
	key := hold.ElectKey(n.Name, seat.Lease)
	if n.Kind == hold.KindSema {
		key = hold.SemaKey(n.Name, seat.Max, seat.Lease)
	}
	force := forceText(n, seat)
	switch {
	case seat.State == view.Fenced:
		return notEvicted("%s was left by %s, whose on-lose failed: nobody is at work, and it is free when its lease is over; %s deletes its key", n.Name, tokenText(seat), force)
	case seat.State == view.Leaving:
		return notEvicted("%s, has lost its place at %s already, and leaves; %s deletes what it has left", tokenText(seat), n.Name, force)
	case !view.Known(seat.Holder), seat.Key != key.String():
		return notEvicted("%s is held by %s, which is no conch and does not listen: only %s can end it", n.Name, tokenText(seat), force)
	}
	return nil
}

// forceText is the command that deletes the keys of a hold.
func forceText(n view.Name, seat view.Seat) string {
	return fmt.Sprintf("conch evict %s %s --force --rev %d", n.Kind, n.Name, seat.Token)
}

// notEvicted is the error that says why nobody was asked to leave. What stands in it is escaped.
func notEvicted(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{hold.ErrNotEvicted}, args...)...)
}

// tokenText is somebody, with its slot where it has one, and its token.
func tokenText(seat view.Seat) string {
	who := seat.Holder.String()
	if who == "" {
		who = "somebody"
	}
	if seat.Slot >= 0 {
		who = fmt.Sprintf("slot %d by %s", seat.Slot, who)
	}
	return fmt.Sprintf("%s, token %d", who, seat.Token)
}

// holdersText says who holds a name: the first few.
func holdersText(is view.Standing) string {
	var who []string
	for _, seat := range is.Seats {
		if seat.State.Holds() {
			who = append(who, tokenText(seat))
		}
	}
	name := is.Name.Name
	switch {
	case len(who) > nameMost:
		return fmt.Sprintf("%s is held by %s and %d more", name, strings.Join(who[:nameMost], "; "), len(who)-nameMost)
	case len(who) > 0:
		return fmt.Sprintf("%s is held by %s", name, strings.Join(who, "; "))
	case len(is.Seats) > 0 && is.Seats[0].State == view.Settling:
		return fmt.Sprintf("nobody holds %s: %s, waits for the end of an earlier hold", name, tokenText(is.Seats[0]))
	}
	return "nobody holds " + name
}
