package doctor

import (
	"context"
	"errors"
	"strings"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// probe is an office, a semaphore and a host that is asked about and never there: its name sorts behind most.
const probe = "zz-conch-doctor"

// work is something that a user may want to do, with what it takes. What a user is not granted at all is no fault where
// some other work can be done.
type work struct {
	what    string
	takes   []right
	extends bool // it is an option of another one: not by itself what somebody is there for
}

// right is what a work does with one kind of key.
type right struct {
	key           string
	reads, writes bool
}

// works are all there are, by the keys of what is never held.
func works() []work {
	open, last := hold.OfficeKeys(probe)
	slotOpen, slotLast := hold.SlotKeys(probe, 1, 0)
	return []work{
		{what: "conch elect", takes: []right{
			{hold.ElectKey(probe, 1).String(), true, true}, {open.String(), true, true}, {last.String(), false, true},
			{hold.EvictKey(hold.KindElect, probe, 1).String(), true, true},
		}},
		{what: "conch sema", takes: []right{
			{hold.SemaKey(probe, 1, 1).String(), true, true}, {hold.SlotKey(probe, 1, 0).String(), true, true},
			{slotOpen.String(), true, true}, {slotLast.String(), false, true},
			{hold.EvictKey(hold.KindSema, probe, 1).String(), true, true},
		}},
		{what: "conch sema --spread", extends: true, takes: []right{{hold.SpreadPrefix(probe, probe) + "/1", true, true}}},
		{what: "conch hosts register", takes: []right{{coord.HostsPrefix + probe, true, true}}},
	}
}

func (r right) String() string {
	if r.reads {
		return "read and write"
	}
	return "write"
}

// granted is what a user may do with one kind of key.
type granted struct{ reads, writes bool }

func (g granted) String() string {
	switch {
	case g.reads && g.writes:
		return "may read and write"
	case g.reads:
		return "may read, not write"
	case g.writes:
		return "may write, not read"
	}
	return "may neither read nor write"
}

// meets reports whether it is enough.
func (g granted) meets(r right) bool { return (g.reads || !r.reads) && (g.writes || !r.writes) }

// permissions asks for every kind of key that a hold or a host reads and writes.
func (v *visit) permissions(ctx context.Context) {
	has := map[string]granted{}
	for _, w := range works() {
		for _, r := range w.takes {
			g, err := v.granted(ctx, r.key)
			if err != nil {
				v.say("permission", Fail, areaOf(r.key), "cannot be found out: %v", cli.Classify(err))
				return
			}
			has[r.key] = g
		}
	}
	v.rights(has)
}

// rights judges what a user may do.
func (v *visit) rights(has map[string]granted) {
	all := works()
	able := false // to do any of it
	for _, w := range all {
		able = able || !w.extends && w.granted(has)
	}
	for _, w := range all {
		lacking := Fail
		if !w.touched(has) && (able || w.extends) {
			lacking = Note
		}
		for _, r := range w.takes {
			if g := has[r.key]; g.meets(r) {
				v.say("permission", OK, areaOf(r.key), "%v", g)
			} else {
				v.say("permission", lacking, areaOf(r.key), "%v; %s has to %s", g, w.what, r)
			}
		}
	}
}

// granted reports whether the work can be done.
func (w work) granted(has map[string]granted) bool {
	for _, r := range w.takes {
		if !has[r.key].meets(r) {
			return false
		}
	}
	return true
}

// touched reports whether somebody meant it to be done: something of it may be written.
func (w work) touched(has map[string]granted) bool {
	for _, r := range w.takes {
		if has[r.key].writes {
			return true
		}
	}
	return false
}

// granted finds out what may be done with a key.
func (v *visit) granted(ctx context.Context, key string) (g granted, err error) {
	if g.reads, err = v.permitted(ctx, cli.Need{Key: key}); err == nil {
		g.writes, err = v.permitted(ctx, cli.Need{Key: key, Writes: true})
	}
	return g, err
}

func (v *visit) permitted(ctx context.Context, n cli.Need) (bool, error) {
	ctx, cancel := v.bounded(ctx)
	defer cancel()
	err := cli.Permitted(ctx, v.cli, n)
	if errors.Is(cli.Classify(err), hold.ErrPermission) {
		return false, nil
	}
	return err == nil, err
}

// areaOf is what all keys of a kind begin with.
func areaOf(key string) string { return key[:strings.Index(key, probe)] }
