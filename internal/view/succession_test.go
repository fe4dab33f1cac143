package view

import (
	"slices"
	"testing"

	"github.com/go-coord/coord/internal/hold"
)

// tellHandover is how far a hold has got, in a few words.
func tellHandover(h Handover) string {
	text := "gone"
	switch {
	case h.Hold != nil:
		text = string(h.Hold.State)
	case h.Over():
		text = "over"
	case h.Settled():
		text = "settled"
	}
	if h.End.How != "" {
		text += " " + string(h.End.How)
	}
	if h.Open != nil {
		text += ", open " + h.Open.Holder.Host
	}
	if h.Coming != nil {
		text += ", comes " + h.Coming.Holder.Host
	}
	if h.Next != nil {
		text += ", next " + tell(*h.Next)
	}
	if h.Vacant {
		text += ", vacant"
	}
	return text
}

func TestWhoComesAfterAHold(t *testing.T) {
	t.Parallel()
	a, aOpen, aEnd := candidate("a", 7, 10), opened("a", 7, 10), ended("a", 10, 20)
	b, bOpen, bEnd := candidate("b", 8, 11), opened("b", 8, 21), ended("b", 11, 22)
	c, cOpen := candidate("c", 9, 12), opened("c", 9, 23)
	fenced := a
	fenced.Holder.Fenced = true
	foreign := candidate("x", 8, 11)
	foreign.Holder = text("foreign")
	behind := odd(hold.ElectRange("o")+"7/8", 9)
	s0, s0Open, s0End := slot(2, 0, 7, 11), openedSlot(2, 0, "a", 7, 11), endedSlot(2, 0, "a", 11, 20)
	s1, s1Open := slot(2, 1, 8, 13), openedSlot(2, 1, "b", 8, 13)
	sa, sb, sc := contender("a", 2, 7, 10, 11), contender("b", 2, 8, 12, 13), contender("c", 2, 9, 14, 14)
	cIn := func(n int, at int64) []Entry {
		return []Entry{contender("c", 2, 9, 14, at), slot(2, n, 9, at), openedSlot(2, n, "c", 9, at)}
	}
	for name, tt := range map[string]struct {
		of    Name
		was   []Entry   // with the hold of a in it
		steps [][]Entry // at revisions 20, 21, ...
		want  []string
	}{
		"it stays":                             {office, []Entry{a, aOpen}, [][]Entry{{a, aOpen, b}}, []string{"held"}},
		"it is fenced":                         {office, []Entry{a, aOpen}, [][]Entry{{fenced, aOpen, b}}, []string{"fenced"}},
		"nobody waits":                         {office, []Entry{a, aOpen}, [][]Entry{{aEnd}}, []string{"over released, vacant"}},
		"nobody waits, and nobody says how":    {office, []Entry{a, aOpen}, [][]Entry{{ended("z", 3, 4)}}, []string{"over, vacant"}},
		"the next opens":                       {office, []Entry{a, aOpen, b}, [][]Entry{{b, aEnd}, {b, bOpen, aEnd}}, []string{"gone released, comes b", "over released, next held b@11 after a@10r since"}},
		"the next never opens":                 {office, []Entry{a, aOpen, b, c}, [][]Entry{{b, c, aEnd}, {c, aEnd}, {c, cOpen, aEnd}}, []string{"gone released, comes b", "gone released, comes c", "over released, next held c@12 after a@10r since"}},
		"the next was there for a moment":      {office, []Entry{a, aOpen, b, c}, [][]Entry{{b, c, aEnd}, {b, c, bOpen, aEnd}, {c, bEnd}, {c, cOpen, bEnd}}, []string{"gone released, comes b", "over released, next held b@11 after a@10r since", "over released, next held b@11 after a@10r since", "over released, next held b@11 after a@10r since"}},
		"the next settles":                     {office, []Entry{a, aOpen, b}, [][]Entry{{b, aOpen}, {b, bOpen, ended("a", 10, 21)}}, []string{"gone, open a, comes b", "over released, next held b@11 after a@10r since"}},
		"who settles goes":                     {office, []Entry{a, aOpen, b}, [][]Entry{{b, aOpen}, {aOpen}, {ended("a", 10, 22)}}, []string{"gone, open a, comes b", "settled, open a, vacant", "over released, vacant"}},
		"a newcomer settles":                   {office, []Entry{a, aOpen}, [][]Entry{{aOpen}, {aOpen, c}, {c, cOpen}}, []string{"settled, open a, vacant", "gone, open a, comes c", "over, next held c@12 since"}},
		"nobody ever opens":                    {office, []Entry{a, b}, [][]Entry{{b}}, []string{"over, next held b@11"}},
		"the next is of another kind":          {office, []Entry{a, aOpen, foreign}, [][]Entry{{foreign, aEnd}}, []string{"over released, next held @11 after a@10r"}},
		"which does not settle":                {office, []Entry{a, aOpen, foreign}, [][]Entry{{foreign, aOpen}, {foreign, aEnd}}, []string{"settled, open a, next settling @11 for a", "over released, next settling @11 for a"}},
		"a nested election is ahead":           {office, []Entry{a, aOpen, b}, [][]Entry{{behind, b, aEnd}}, []string{"gone released, comes b"}},
		"another with its key":                 {office, []Entry{a, aOpen}, [][]Entry{{candidate("a", 7, 25), opened("a", 7, 25)}}, []string{"over, next held a@25 since"}},
		"a slot that nobody waits for":         {sema, []Entry{sa, s0, s0Open}, [][]Entry{{s0End}}, []string{"over released, vacant"}},
		"a slot among others":                  {sema, []Entry{sa, s0, s0Open, sb, s1, s1Open}, [][]Entry{{sb, s1, s1Open, s0End}}, []string{"over released, vacant"}},
		"who waits takes the slot":             {sema, []Entry{sa, s0, s0Open, sb, s1, s1Open, sc}, [][]Entry{{sb, s1, s1Open, sc, s0End}, append(cIn(0, 21), sb, s1, s1Open, s0End)}, []string{"gone released, comes c", "over released, next held 0/2 c@21 after a@11r since"}},
		"who waits takes another slot":         {sema, []Entry{sa, s0, s0Open, sb, s1, s1Open, sc}, [][]Entry{{sc, s0End}, append(cIn(1, 21), s0End)}, []string{"gone released, comes c", "over released, next held 1/2 c@21 since"}},
		"who held before is not next":          {sema, []Entry{sa, s0, s0Open, sc}, [][]Entry{{sa, s0, s0Open, sc, sb, slot(2, 1, 8, 20)}, {sb, slot(2, 1, 8, 20), sc, s0End}, {sb, slot(2, 1, 8, 20), s0End}}, []string{"held", "gone released, comes c", "over released, vacant"}},
		"two come at once, the first is next":  {sema, []Entry{sa, s0, s0Open, sc}, [][]Entry{append(cIn(1, 22), contender("d", 2, 6, 15, 21), slot(2, 0, 6, 21))}, []string{"over, next held 0/2 d@21"}},
		"its slot is lost, with its child":     {sema, []Entry{sa, s0, s0Open, sc}, [][]Entry{{sa, s0Open, sc}, append(cIn(1, 21), s0Open), append(cIn(1, 21), s0End)}, []string{"gone, open a, comes c", "settled, open a, next held 1/2 c@21 since", "over released, next held 1/2 c@21 since"}},
		"who waits goes":                       {sema, []Entry{sa, s0, s0Open, sc}, [][]Entry{{sc, s0End}, {s0End}}, []string{"gone released, comes c", "over released, vacant"}},
		"another max is another semaphore":     {sema, []Entry{sa, s0, s0Open}, [][]Entry{{contender("b", 3, 8, 12, 21), slot(3, 0, 8, 21), openedSlot(3, 0, "z", 4, 4), s0End}}, []string{"over released, vacant"}},
		"the key is lost and the slot is not":  {sema, []Entry{sa, s0, s0Open}, [][]Entry{{s0, s0Open}}, []string{"leaving"}},
		"the first of two that wait is coming": {sema, []Entry{sa, s0, s0Open, sc, contender("d", 2, 6, 15, 15)}, [][]Entry{{sc, contender("d", 2, 6, 15, 15), s0End}}, []string{"gone released, comes c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was := Stand(tt.of, tt.was, 19)
			s := NewSuccession(was.Seats[0], was.Rev)
			if h := s.Take(was); h.Hold == nil || h.Hold.Token != was.Seats[0].Token {
				t.Fatalf("at first it is %q", tellHandover(h))
			}
			var got []string
			for i, entries := range tt.steps {
				got = append(got, tellHandover(s.Take(Stand(tt.of, entries, 20+int64(i)))))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q,\nwant %q", got, tt.want)
			}
		})
	}
}

func TestWhoIsBelievedToHoldIsNext(t *testing.T) {
	t.Parallel()
	a, b, c := candidate("a", 7, 10), candidate("b", 8, 11), candidate("c", 9, 12)
	was := Stand(office, []Entry{a, opened("a", 7, 10), b, c}, 19)
	s := NewSuccession(was.Seats[0], was.Rev)
	h := s.Take(Stand(office, []Entry{b, c, ended("a", 10, 20)}, 20))
	s.Believe(*h.Coming)
	s.Believe(was.Seats[2]) // it is too late for another
	if got := tellHandover(s.Take(Stand(office, []Entry{c, opened("c", 9, 21), ended("a", 10, 20)}, 21))); got != "over released, next held b@11 after a@10r" {
		t.Error(got)
	}
}

func TestWhoHoldsAnOfficeWithoutARecord(t *testing.T) {
	t.Parallel()
	a, b := candidate("a", 7, 10), candidate("b", 8, 11)
	for name, tt := range map[string]struct {
		of      Name
		entries []Entry
		want    bool
	}{
		"nobody":             {office, nil, false},
		"it has one":         {office, []Entry{a, opened("a", 7, 10)}, false},
		"it has none":        {office, []Entry{a, b}, true},
		"it settles":         {office, []Entry{b, opened("a", 7, 10)}, false},
		"a slot has no need": {sema, []Entry{contender("a", 2, 7, 10, 11), slot(2, 0, 7, 11)}, false},
	} {
		if got := Stand(tt.of, tt.entries, 20).Unopened(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
