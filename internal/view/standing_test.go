package view

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// Names of the tests.
var (
	office = Name{hold.KindElect, "o"}
	sema   = Name{hold.KindSema, "s"}
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func who(host string) hold.Holder {
	h, ok := hold.DecodeHolder([]byte(hold.NewHolder(host, 1, began, nil).Encode()))
	if !ok {
		panic("no holder: " + host)
	}
	return h
}

// text is the value of a foreign client.
func text(s string) hold.Holder {
	h, _ := hold.DecodeHolder([]byte(s))
	return h
}

// candidate is a key in the queue of an office, made at a revision.
func candidate(host string, lease, create int64) Entry {
	return Entry{Key: hold.ElectKey("o", lease).String(), Create: create, Mod: create, Lease: lease, Holder: who(host)}
}

// contender is a key in the queue of a semaphore, which took a slot at mod, or did not where that is its create revision.
func contender(host string, max int, lease, create, mod int64) Entry {
	return Entry{Key: hold.SemaKey("s", max, lease).String(), Create: create, Mod: mod, Lease: lease, Holder: who(host)}
}

func slot(max, n int, lease, create int64) Entry {
	return Entry{Key: hold.SlotKey("s", max, n).String(), Create: create, Mod: create, Lease: lease}
}

// record is an open record, written at a revision.
func recordAt(key hold.Key, host string, lease, mod int64) Entry {
	return Entry{Key: key.String(), Create: mod, Mod: mod, Open: &Open{Lease: lease, TTL: 10 * time.Second, Holder: who(host), At: began, Mod: mod}}
}

func opened(host string, lease, mod int64) Entry {
	open, _ := hold.OfficeKeys("o")
	return recordAt(open, host, lease, mod)
}

func openedSlot(max, n int, host string, lease, mod int64) Entry {
	open, _ := hold.SlotKeys("s", max, n)
	return recordAt(open, host, lease, mod)
}

// unreadable makes a record one that cannot be read.
func unreadable(e Entry) Entry {
	e.Open = &Open{Mod: e.Mod}
	return e
}

func end(key hold.Key, host string, token uint64, mod int64) Entry {
	return Entry{Key: key.String(), Create: mod, Mod: mod, Last: &Last{Token: token, Holder: who(host), How: hold.EndReleased, At: began, Mod: mod}}
}

func ended(host string, token uint64, mod int64) Entry {
	_, last := hold.OfficeKeys("o")
	return end(last, host, token, mod)
}

func endedSlot(max, n int, host string, token uint64, mod int64) Entry {
	_, last := hold.SlotKeys("s", max, n)
	return end(last, host, token, mod)
}

// odd is a key that is none of ours.
func odd(key string, create int64) Entry { return Entry{Key: key, Create: create, Mod: create} }

// tell is a seat in a few words.
func tell(s Seat) string {
	words := []string{string(s.State)}
	if s.Max > 0 {
		words = append(words, fmt.Sprintf("%d/%d", s.Slot, s.Max))
	}
	if s.State != Vacant {
		words = append(words, fmt.Sprintf("%s@%d", s.Holder.Host, s.Token))
	}
	if s.Unsettled != nil {
		words = append(words, "for "+s.Unsettled.Holder.Host)
	}
	if s.Last != nil {
		words = append(words, fmt.Sprintf("after %s@%d", s.Last.Holder.Host, s.Last.Token)+string(s.Last.How[:min(len(s.Last.How), 1)]))
	}
	if !s.Since.IsZero() {
		words = append(words, "since")
	}
	return strings.Join(words, " ")
}

func tellAll(seats []Seat) (all []string) {
	for _, s := range seats {
		all = append(all, tell(s))
	}
	return all
}

// tellStanding is a standing in a few words: seats, then vacancies, then odd keys.
func tellStanding(s Standing) []string {
	all := tellAll(slices.Concat(s.Seats, s.Vacancies()))
	for _, e := range s.Odd {
		all = append(all, "odd "+e.Key)
	}
	return all
}

func TestHowANameStands(t *testing.T) {
	t.Parallel()
	fenced := candidate("a", 7, 10)
	fenced.Holder.Fenced = true
	fencedSlot := contender("a", 2, 7, 10, 11)
	fencedSlot.Holder.Fenced = true
	foreign := candidate("x", 7, 10)
	foreign.Holder = text("foreign")
	noLease := contender("a", 2, 7, 10, 10)
	noLease.Lease = 0
	for name, tt := range map[string]struct {
		of      Name
		entries []Entry
		want    []string
	}{
		"nobody":                       {office, nil, nil},
		"held":                         {office, []Entry{candidate("a", 7, 10), opened("a", 7, 10)}, []string{"held a@10 since"}},
		"held without a record":        {office, []Entry{candidate("a", 7, 10)}, []string{"held a@10"}},
		"held by a foreign client":     {office, []Entry{foreign}, []string{"held @10"}},
		"held and a queue":             {office, []Entry{candidate("c", 9, 12), candidate("b", 8, 11), candidate("a", 7, 10)}, []string{"held a@10", "waiting b@11", "waiting c@12"}},
		"fenced":                       {office, []Entry{fenced, opened("a", 7, 10)}, []string{"fenced a@10 since"}},
		"settling":                     {office, []Entry{candidate("b", 8, 11), opened("a", 7, 9)}, []string{"settling b@11 for a"}},
		"settling what cannot be read": {office, []Entry{candidate("b", 8, 11), unreadable(opened("a", 7, 9))}, []string{"settling b@11 for "}},
		"settling what cannot be read, by a key of no lease": {office, []Entry{{Key: "/conch/v1/elect/o/0", Create: 3, Mod: 3, Holder: who("b")}, unreadable(opened("a", 7, 9))}, []string{"settling b@3 for "}},
		"the key is younger than its record":                 {office, []Entry{candidate("a", 7, 10), opened("a", 7, 9)}, []string{"settling a@10 for a"}},
		"settled, then held":                                 {office, []Entry{candidate("b", 8, 11), opened("b", 8, 30), ended("a", 10, 30)}, []string{"held b@11 after a@10r since"}},
		"vacant, and how it ended":                           {office, []Entry{ended("a", 10, 12)}, []string{"vacant after a@10r"}},
		"vacant, and unsettled":                              {office, []Entry{opened("a", 7, 10), ended("z", 3, 4)}, []string{"vacant for a after z@3r"}},
		"a last record that cannot be read":                  {office, []Entry{{Key: ended("a", 1, 1).Key, Create: 5, Mod: 5}}, nil},
		"a key that goes on":                                 {office, []Entry{candidate("a", 7, 10), odd("/conch/v1/elect/o/7/8", 11)}, []string{"held a@10", "odd /conch/v1/elect/o/7/8"}},
		"a nested election in front":                         {office, []Entry{odd("/conch/v1/elect/o/7/8", 9), candidate("a", 7, 10)}, []string{"waiting a@10", "odd /conch/v1/elect/o/7/8"}},
		"a candidate without a lease's name":                 {office, []Entry{{Key: "/conch/v1/elect/o/x y", Create: 4, Mod: 4, Holder: who("a")}}, []string{"held a@4"}},
		"a record that goes on":                              {office, []Entry{odd("/conch/v1/open/elect/o/1", 3)}, []string{"odd /conch/v1/open/elect/o/1"}},

		"slots are held": {sema, []Entry{
			contender("a", 2, 7, 10, 11), slot(2, 1, 7, 11), openedSlot(2, 1, "a", 7, 11),
			contender("b", 2, 8, 12, 13), slot(2, 0, 8, 13), openedSlot(2, 0, "b", 8, 13), contender("c", 2, 9, 14, 14),
		}, []string{"held 0/2 b@13 since", "held 1/2 a@11 since", "waiting -1/2 c@14"}},
		"a try took key and slot in one step":   {sema, []Entry{contender("a", 2, 7, 10, 10), slot(2, 0, 7, 10)}, []string{"held 0/2 a@10"}},
		"fenced in a slot":                      {sema, []Entry{fencedSlot, slot(2, 0, 7, 11)}, []string{"fenced 0/2 a@11"}},
		"entitled, with a free slot":            {sema, []Entry{contender("a", 2, 7, 10, 10)}, []string{"waiting -1/2 a@10"}},
		"entitled, with a free and a dirty one": {sema, []Entry{contender("a", 2, 7, 10, 10), openedSlot(2, 0, "z", 3, 4)}, []string{"waiting -1/2 a@10", "vacant 0/2 for z"}},
		"entitled, and the free ones are dirty": {sema, []Entry{
			contender("a", 2, 7, 10, 10), contender("b", 2, 8, 11, 11), contender("c", 2, 9, 12, 12),
			openedSlot(2, 0, "z", 3, 4), openedSlot(2, 1, "y", 5, 6),
		}, []string{"settling -1/2 a@10 for z", "settling -1/2 b@11 for y", "waiting -1/2 c@12"}},
		"as many settle as can": {sema, []Entry{
			contender("a", 3, 7, 10, 10), contender("b", 3, 8, 11, 11), openedSlot(3, 0, "z", 3, 4), openedSlot(3, 1, "y", 5, 6),
		}, []string{"waiting -1/3 a@10", "settling -1/3 b@11 for z", "vacant 1/3 for y"}},
		"a record of the owner of the slot":         {sema, []Entry{contender("a", 1, 7, 10, 11), slot(1, 0, 7, 11), unreadable(openedSlot(1, 0, "a", 7, 11))}, []string{"held 0/1 a@11"}},
		"the place is lost, the slot is not":        {sema, []Entry{slot(2, 1, 7, 11), openedSlot(2, 1, "a", 7, 11), contender("b", 2, 8, 12, 12)}, []string{"leaving 1/2 a@11 since", "waiting -1/2 b@12"}},
		"the slot is lost, the place is not":        {sema, []Entry{contender("a", 2, 7, 10, 11), openedSlot(2, 1, "a", 7, 11)}, []string{"leaving -1/2 a@10", "vacant 1/2 for a"}},
		"a slot of another's hold before":           {sema, []Entry{slot(2, 1, 7, 11), openedSlot(2, 1, "z", 3, 4)}, []string{"leaving 1/2 @11"}},
		"a record of an earlier hold on that lease": {sema, []Entry{contender("a", 1, 7, 10, 20), slot(1, 0, 7, 20), openedSlot(1, 0, "a", 7, 11)}, []string{"held 0/1 a@20"}},
		"behind as many as may hold nobody settles": {sema, []Entry{
			contender("a", 2, 7, 10, 11), contender("b", 2, 8, 12, 12), contender("c", 2, 9, 13, 13), openedSlot(2, 0, "z", 3, 4), openedSlot(2, 1, "y", 5, 6),
		}, []string{"leaving -1/2 a@10", "settling -1/2 b@12 for z", "waiting -1/2 c@13", "vacant 1/2 for y"}},
		"two slots on a lease":                {sema, []Entry{contender("a", 2, 7, 10, 11), slot(2, 0, 7, 11), slot(2, 1, 7, 12)}, []string{"held 0/2 a@11", "leaving 1/2 @12"}},
		"no lease is nobody's":                {sema, []Entry{noLease, slot(2, 0, 0, 11)}, []string{"leaving 0/2 @11", "waiting -1/2 a@10"}},
		"a slot under another max is another": {sema, []Entry{contender("a", 2, 7, 10, 10), slot(3, 0, 7, 11)}, []string{"waiting -1/2 a@10", "leaving 0/3 @11"}},
		"two maxima": {sema, []Entry{
			contender("b", 3, 8, 9, 9), contender("a", 2, 7, 10, 11), slot(2, 0, 7, 11), endedSlot(2, 0, "z", 3, 4),
		}, []string{"held 0/2 a@11 after z@3r", "waiting -1/3 b@9"}},
		"a free semaphore":               {sema, []Entry{endedSlot(2, 0, "z", 3, 14), endedSlot(2, 1, "y", 5, 6)}, []string{"vacant 0/2 after z@3r"}},
		"a free one, unsettled":          {sema, []Entry{openedSlot(2, 1, "a", 7, 11), endedSlot(2, 1, "y", 5, 6), endedSlot(2, 0, "z", 3, 14)}, []string{"vacant 1/2 for a after y@5r"}},
		"ends that cannot be read":       {sema, []Entry{{Key: endedSlot(2, 0, "z", 1, 1).Key, Create: 5, Mod: 5}}, nil},
		"what is none of its candidates": {sema, oddSemas(), tellOdd(oddSemas())},
		"the keys without a name":        {Name{}, []Entry{odd("/conch/v1/elect/", 2), odd("/conch/v1/elect/../7", 1)}, []string{"odd /conch/v1/elect/../7", "odd /conch/v1/elect/"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slices.SortFunc(tt.entries, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
			for range 3 { // in whatever order they come
				if got := tellStanding(Stand(tt.of, tt.entries, 99)); !slices.Equal(got, tt.want) {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				rand.Shuffle(len(tt.entries), func(i, j int) { tt.entries[i], tt.entries[j] = tt.entries[j], tt.entries[i] })
			}
		})
	}
}

func oddSemas() (all []Entry) {
	for i, key := range []string{
		"sema/s/0/7", "sema/s/03/7", "sema/s/-1/7", "sema/s/x/7", "sema/s/3", "sema/s/3/7/8", "sema/s/99999999999999999999/7",
		"slot/s/3/3", "slot/s/3/x", "slot/s/3", "open/sema/s/3/3", "open/sema/s", "last/sema/s/3/-1", "last/sema/s/3/1/1",
		"evict/sema/s/7", "elect/s/7",
	} {
		all = append(all, odd(hold.Root+key, int64(i+1)))
	}
	return all
}

func tellOdd(entries []Entry) (all []string) {
	for _, e := range entries {
		all = append(all, "odd "+e.Key)
	}
	return all
}

func TestWhatIsCounted(t *testing.T) {
	t.Parallel()
	s := Stand(sema, []Entry{
		contender("a", 2, 7, 10, 11), slot(2, 0, 7, 11), contender("b", 2, 8, 12, 12), openedSlot(4, 3, "z", 3, 4), slot(3, 0, 9, 1),
	}, 20)
	if got := s.Maxima(); !slices.Equal(got, []int{2, 3, 4}) || s.Waiting() != 1 || s.Vacant() || s.Rev != 20 {
		t.Errorf("maxima %v, %d waiting, vacant %v, revision %d", got, s.Waiting(), s.Vacant(), s.Rev)
	}
	s = Stand(office, []Entry{opened("a", 7, 9)}, 20)
	if got := s.Maxima(); len(got) != 0 || !s.Vacant() || s.Waiting() != 0 {
		t.Errorf("maxima %v, %d waiting, vacant %v", got, s.Waiting(), s.Vacant())
	}
}

func TestWhatLeasesHaveLeft(t *testing.T) {
	t.Parallel()
	s := Stand(office, []Entry{candidate("a", 7, 10), candidate("b", 8, 11)}, 20)
	if got := s.Leases(); !slices.Equal(got, []int64{7, 8}) {
		t.Errorf("leases %v", got)
	}
	s.SetLeft(map[int64]time.Duration{8: time.Second})
	if s.Seats[0].Left != Unknown || s.Seats[1].Left != time.Second {
		t.Errorf("got %+v", s.Seats)
	}
}

func TestNamesOfKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]struct {
		name Name
		ok   bool
	}{
		"elect/o/7b":       {office, true},
		"elect/o":          {office, true},
		"open/elect/o":     {office, true},
		"last/elect/o/x":   {office, true},
		"sema/s/3/7b":      {sema, true},
		"slot/s/3/0":       {sema, true},
		"open/sema/s/3/0":  {sema, true},
		"elect/":           {Name{}, true},
		"elect/../7b":      {Name{}, true},
		"elect/\x1b[2J/7b": {Name{}, true},
		"open/other/o":     {Name{}, true},
		"open":             {Name{}, true},
		"evict/elect/o/7b": {Name{}, false},
		"cron/job/x":       {Name{}, false},
		"":                 {Name{}, false},
	} {
		if n, ok := NameOf(hold.Root + key); n != want.name || ok != want.ok {
			t.Errorf("%q is about %v, %v", key, n, ok)
		}
	}
	if n, ok := NameOf("/coord/hosts/x"); ok {
		t.Errorf("a host is about %v", n)
	}
}

func TestEveryKeyOfANameIsInItsRanges(t *testing.T) {
	t.Parallel()
	open, last := hold.OfficeKeys("o")
	openSlot, lastSlot := hold.SlotKeys("s", 3, 1)
	for _, key := range []hold.Key{hold.ElectKey("o", 7), open, last, hold.SemaKey("s", 3, 7), hold.SlotKey("s", 3, 1), openSlot, lastSlot} {
		n, _ := NameOf(key.String())
		within := func(r string) bool {
			return r == key.String() || strings.HasSuffix(r, "/") && strings.HasPrefix(key.String(), r)
		}
		for _, ranges := range [][]string{n.Ranges(), KindRanges(n.Kind)} {
			if !slices.ContainsFunc(ranges, within) {
				t.Errorf("%s is in none of %q", key, ranges)
			}
			if slices.ContainsFunc(ranges, func(r string) bool { return strings.HasPrefix(hold.AreaRange(hold.AreaElect)+"other/7", r) }) && n == sema {
				t.Errorf("%v is not only about itself: %q", n, ranges)
			}
		}
	}
}

func TestABookIsTheKeysThatWerePut(t *testing.T) {
	t.Parallel()
	b := NewBook([]Entry{candidate("a", 7, 10), contender("b", 2, 8, 3, 3), odd("/conch/v1/elect//7", 4), odd("/conch/v1/cron/job/x", 5)}, 12)
	told := func() (all []string) {
		for _, s := range b.Standings() {
			all = append(all, s.Kind+":"+s.Name.Name+fmt.Sprint(tellStanding(s)))
		}
		return all
	}
	want := []string{":[odd /conch/v1/elect//7]", "elect:o[held a@10]", "sema:s[waiting -1/2 b@3]"}
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n, ok := b.Delete(candidate("a", 7, 10).Key); n != office || !ok {
		t.Errorf("deleted a key of %v, %v", n, ok)
	}
	if _, ok := b.Delete("/conch/v1/cron/job/x"); ok {
		t.Error("a job is looked at")
	}
	b.Delete("/conch/v1/elect//7")
	if got := told(); !slices.Equal(got, want[2:]) {
		t.Errorf("got %q, want %q", got, want[2:])
	}
	if s := b.Standing(office); !s.Vacant() || s.Rev != 12 {
		t.Errorf("got %+v", s)
	}
}
