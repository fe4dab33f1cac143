package live

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

var seeds = flag.Int("histories", 6, "how many random histories are followed")

// contender is a candidate of a history.
type contender struct {
	lease clientv3.LeaseID
	gone  bool // its key was taken away by hand
	slot  int  // that it holds, 0 for an office; -1: none
}

// history does with one name what holders, their successors and operators do, at random, one revision at a time.
type history struct {
	t      *testing.T
	m      *coordtest.Medium
	client *clientv3.Client
	dice   *rand.Rand
	name   view.Name
	max    int // 1 of an office

	all     []*contender // in the order in which they came
	records map[int]bool // slots with a record
	left    map[int]bool // of these, those of a hold of which nothing else is left
	truth   map[int64]view.Standing
}

func (h *history) key(c *contender) string {
	if h.name.Kind == hold.KindElect {
		return hold.ElectKey(h.name.Name, int64(c.lease)).String()
	}
	return hold.SemaKey(h.name.Name, h.max, int64(c.lease)).String()
}

func (h *history) recordKeys(slot int) (open, last string) {
	if h.name.Kind == hold.KindElect {
		o, l := hold.OfficeKeys(h.name.Name)
		return o.String(), l.String()
	}
	o, l := hold.SlotKeys(h.name.Name, h.max, slot)
	return o.String(), l.String()
}

func (h *history) putKey(c *contender) clientv3.Op {
	return clientv3.OpPut(h.key(c), identity(fmt.Sprintf("h%d", c.lease)), clientv3.WithLease(c.lease))
}

// takes are the puts of a contender that takes a slot.
func (h *history) takes(c *contender, slot int) []clientv3.Op {
	open, last := h.recordKeys(slot)
	ops := []clientv3.Op{clientv3.OpPut(open, recordOf(int64(c.lease)))}
	if h.left[slot] {
		ops = append(ops, clientv3.OpPut(last, `{"rev":1,"how":"expired","holder":"x"}`))
	}
	if h.name.Kind == hold.KindSema {
		ops = append(ops, clientv3.OpPut(hold.SlotKey(h.name.Name, h.max, slot).String(), "", clientv3.WithLease(c.lease)))
	}
	c.slot, h.records[slot], h.left[slot] = slot, true, false
	return ops
}

// closes are the operations that end the hold of a slot, or close what it has left.
func (h *history) closes(slot int, how string) []clientv3.Op {
	open, last := h.recordKeys(slot)
	h.records[slot], h.left[slot] = false, false
	return []clientv3.Op{clientv3.OpDelete(open), clientv3.OpPut(last, fmt.Sprintf(`{"rev":%d,"how":%q,"holder":"x"}`, h.m.Rev(), how))}
}

func (h *history) remove(c *contender) {
	h.all = slices.DeleteFunc(h.all, func(o *contender) bool { return o == c })
}

// queue are those whose keys are there.
func (h *history) queue() (all []*contender) {
	for _, c := range h.all {
		if !c.gone {
			all = append(all, c)
		}
	}
	return all
}

func (h *history) slotKey(slot int) []clientv3.Op {
	if h.name.Kind == hold.KindElect {
		return nil
	}
	return []clientv3.Op{clientv3.OpDelete(hold.SlotKey(h.name.Name, h.max, slot).String())}
}

// free are the slots that nobody has the key of; clean those without a record, if there are any.
func (h *history) free() (all []int) {
	var dirty []int
	for slot := range h.max {
		switch {
		case slices.ContainsFunc(h.all, func(c *contender) bool { return c.slot == slot }):
		case h.records[slot]:
			dirty = append(dirty, slot)
		default:
			all = append(all, slot)
		}
	}
	if len(all) == 0 {
		return dirty
	}
	return all
}

// step does one thing, if it is possible.
func (h *history) step() (ops []clientv3.Op) {
	queue := h.queue()
	switch h.dice.IntN(9) {
	case 0, 1: // one comes, and wins at once where it can, as often as not
		if len(h.all) > 6 {
			return nil
		}
		lease, err := h.m.Grant(0, 3600)
		if err != nil {
			h.t.Fatal(err)
		}
		c := &contender{lease: lease, slot: -1}
		h.all = append(h.all, c)
		ops = append(ops, h.putKey(c))
		if free := h.free(); len(queue) < h.max && len(free) > 0 && !h.records[free[0]] && h.dice.IntN(2) == 0 {
			ops = append(ops, h.takes(c, free[0])...)
		}
	case 2, 3: // somebody who is entitled takes a slot
		free := h.free()
		for _, c := range queue[:min(len(queue), h.max)] {
			if c.slot < 0 && len(free) > 0 {
				ops = h.takes(c, free[h.dice.IntN(len(free))])
				if h.name.Kind == hold.KindSema {
					ops = append(ops, h.putKey(c))
				}
				return ops
			}
		}
	case 4: // a lease runs out
		if len(h.all) > 0 {
			c := h.all[h.dice.IntN(len(h.all))]
			if c.slot >= 0 {
				h.left[c.slot] = true
			}
			h.remove(c)
			if err := h.m.Revoke(c.lease); err != nil {
				h.t.Fatal(err)
			}
		}
	case 5: // a key is deleted by hand
		if len(queue) > 0 {
			c := queue[h.dice.IntN(len(queue))]
			ops = []clientv3.Op{clientv3.OpDelete(h.key(c))}
			switch {
			case c.slot < 0:
				h.remove(c)
			case h.name.Kind == hold.KindElect:
				h.left[0] = true
				h.remove(c)
			default:
				c.gone = true // and its slot's key is still there
			}
		}
	case 6: // what is left of a hold is said to be over
		for slot, left := range h.left {
			if left {
				return h.closes(slot, "lost")
			}
		}
	default: // one gives up what it has
		if len(h.all) == 0 {
			return nil
		}
		c := h.all[h.dice.IntN(len(h.all))]
		h.remove(c)
		if !c.gone {
			ops = append(ops, clientv3.OpDelete(h.key(c)))
		}
		if c.slot >= 0 {
			ops = append(append(ops, h.slotKey(c.slot)...), h.closes(c.slot, "released")...)
		}
	}
	return ops
}

// live lets a history go on for a while. It knows how the name stood at each revision.
func (h *history) live(steps int, between func()) {
	h.t.Helper()
	for range steps {
		if ops := h.step(); len(ops) > 0 {
			if _, err := h.client.Txn(h.t.Context()).Then(ops...).Commit(); err != nil {
				h.t.Fatal(err)
			}
		}
		h.note()
		between()
	}
}

func (h *history) note() {
	h.t.Helper()
	s, err := Look(h.t.Context(), h.client, h.name)
	if err != nil {
		h.t.Fatal(err)
	}
	h.truth[s.Rev] = s
}

func newHistory(t *testing.T, m *coordtest.Medium, client *clientv3.Client, n view.Name, max int, seed int) *history {
	h := &history{
		t: t, m: m, client: client, dice: rand.New(rand.NewPCG(uint64(seed), uint64(max))), name: n, max: max,
		records: map[int]bool{}, left: map[int]bool{}, truth: map[int64]view.Standing{},
	}
	h.note()
	return h
}

// story is all that there is to tell, from revision to revision.
func (h *history) story() (all []string) {
	var was *view.Standing
	for rev := int64(0); rev <= h.m.Rev(); rev++ {
		is, known := h.truth[rev]
		if !known {
			continue
		}
		for _, s := range view.Changes(was, is) {
			all = append(all, seatWords(s))
		}
		was = &is
	}
	return all
}

func histories(t *testing.T, do func(t *testing.T, n view.Name, max, seed int)) {
	for seed := range *seeds {
		for _, max := range []int{1, 2, 3, 0} {
			n := view.Name{Kind: hold.KindSema, Name: "x"}
			if max == 0 {
				n.Kind, max = hold.KindElect, 1
			}
			t.Run(fmt.Sprintf("%s %d of %d", n.Kind, max, seed), func(t *testing.T) {
				t.Parallel()
				do(t, n, max, seed)
			})
		}
	}
}

// TestFollowingTellsTheWholeStory: whatever happens, and however late the events come, all is told, in order, once.
func TestFollowingTellsTheWholeStory(t *testing.T) {
	t.Parallel()
	histories(t, func(t *testing.T, n view.Name, max, seed int) {
		m := coordtest.Start(t, coordtest.Options{})
		client := m.Client(t)
		h := newHistory(t, m, client, n, max, seed)
		f := follow(t, m.Client(t), n, FollowOptions{})
		f.tells(t, "vacant")
		held := false
		h.live(120, func() {
			switch h.dice.IntN(12) {
			case 0, 1:
				held = !held
				m.HoldWatches(held)
			case 2:
				m.EndWatches(nil)
			}
		})
		m.HoldWatches(false)
		f.hears(t, h.story()[1:])
	})
}

// hears waits until all of a story was told, slot by slot. The ends of earlier holds may be told late: so what is told of
// several slots at once has no order, and twice the same is as good as once.
func (f *following) hears(t *testing.T, story []string) {
	t.Helper()
	var told []string
	late := time.After(patience)
	for {
		select {
		case word := <-f.told:
			if word != "stale" && word != "fresh" { // the machine is busy
				told = append(told, word)
			}
		case <-late:
			t.Fatalf("told %q, want %q", plot(told), plot(story))
		}
		if slices.Equal(plot(told), plot(story)) {
			return
		}
		if got, want := plot(told), plot(story); len(got) >= len(want) {
			t.Fatalf("told %q, want %q", got, want)
		}
	}
}

// plot is a story, slot by slot, without repetitions.
func plot(story []string) []string {
	story = slices.Clone(story)
	if strings.ContainsAny(story[0][:1], "0123456789") {
		slices.SortStableFunc(story, func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
	}
	return slices.Compact(story)
}

// TestWhatIsToldIsTrue: nothing is told that never was, also where the past was compacted; and in the end all is as it is told.
func TestWhatIsToldIsTrue(t *testing.T) {
	t.Parallel()
	histories(t, func(t *testing.T, n view.Name, max, seed int) {
		m := coordtest.Start(t, coordtest.Options{})
		client := m.Client(t)
		h := newHistory(t, m, client, n, max, seed)
		told := make(chan view.Standing, 9999)
		startFollowing(t, FollowOptions{}, func(ctx context.Context, o FollowOptions, _ func(...string)) error {
			return Follow(ctx, m.Client(t), n, o, func(_ []view.Seat, is view.Standing) error { told <- is; return nil })
		})
		next := func() view.Standing {
			t.Helper()
			select {
			case s := <-told:
				return s
			case <-time.After(patience):
				t.Fatal("no more is told")
				return view.Standing{}
			}
		}
		last := next()
		held := false
		h.live(120, func() {
			switch h.dice.IntN(12) {
			case 0, 1:
				held = !held
				m.HoldWatches(held)
			case 2:
				m.EndWatches(nil)
			case 3, 4:
				_ = m.Compact(m.Rev() - h.dice.Int64N(min(15, m.Rev()))) // or it was already
			}
		})
		m.HoldWatches(false)
		end := h.truth[m.Rev()]
		for {
			truth, known := h.truth[last.Rev]
			if !known {
				t.Fatalf("told of revision %d", last.Rev)
			}
			if changes := view.Changes(&truth, last); len(changes) > 0 {
				t.Fatalf("told of revision %d what was not so: %+v", last.Rev, changes)
			}
			if len(view.Changes(&last, end)) == 0 {
				return
			}
			last = next()
		}
	})
}

// TestTheBookIsTheTruth: everything that is told of a revision is how it stood.
func TestTheBookIsTheTruth(t *testing.T) {
	t.Parallel()
	histories(t, func(t *testing.T, n view.Name, max, seed int) {
		m := coordtest.Start(t, coordtest.Options{})
		client := m.Client(t)
		h := newHistory(t, m, client, n, max, seed)
		told := make(chan view.Standing, 9999)
		startFollowing(t, FollowOptions{}, func(ctx context.Context, o FollowOptions, _ func(...string)) error {
			return FollowAll(ctx, m.Client(t), o, func(book *view.Book, names []view.Name) error {
				if len(names) > 0 && !slices.Equal(names, []view.Name{n}) {
					t.Errorf("names are %v", names)
				}
				told <- book.Standing(n)
				return nil
			})
		})
		h.live(120, func() {
			switch h.dice.IntN(12) {
			case 0:
				m.EndWatches(nil)
			case 1:
				_ = m.Compact(m.Rev())
			}
		})
		for {
			var s view.Standing
			select {
			case s = <-told:
			case <-time.After(patience):
				t.Fatal("no more is told")
			}
			truth, known := h.truth[s.Rev]
			if !known {
				t.Fatalf("told of revision %d", s.Rev)
			}
			got, err := json.Marshal(s.Lines())
			if err != nil {
				t.Fatal(err)
			}
			if want, _ := json.Marshal(truth.Lines()); string(got) != string(want) {
				t.Fatalf("revision %d: told %s, it was %s", s.Rev, got, want)
			}
			if s.Rev == m.Rev() {
				return
			}
		}
	})
}
