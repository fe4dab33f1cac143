package command

import (
	"errors"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// contends is the key of somebody in a queue; with a slot, that of the slot as well.
func contends(n view.Name, max int, a actor, create int64, slots ...int) []view.Entry {
	h, _ := hold.DecodeHolder([]byte(a.identity()))
	if a.host == "" {
		h, _ = hold.DecodeHolder([]byte("foreign\x1b"))
	}
	key := hold.ElectKey(n.Name, a.lease)
	if max > 0 {
		key = hold.SemaKey(n.Name, max, a.lease)
	}
	all := []view.Entry{{Key: key.String(), Create: create, Mod: create, Lease: a.lease, Holder: h}}
	for _, slot := range slots {
		all = append(all, view.Entry{Key: hold.SlotKey(n.Name, max, slot).String(), Create: create + 1, Mod: create + 1, Lease: a.lease})
	}
	return all
}

func TestWhoIsMeant(t *testing.T) {
	t.Parallel()
	o, m := view.Name{Kind: hold.KindElect, Name: "o"}, view.Name{Kind: hold.KindSema, Name: "s"}
	stand := func(n view.Name, parts ...[]view.Entry) view.Standing {
		var all []view.Entry
		for _, p := range parts {
			all = append(all, p...)
		}
		return view.Stand(n, all, 99)
	}
	open, _ := hold.OfficeKeys("o")
	unsettled := []view.Entry{{Key: open.String(), Create: 3, Mod: 3, Open: &view.Open{Lease: 99, TTL: 10 * time.Second, Mod: 3}}}
	fenced := contends(o, 0, ann, 10)
	fenced[0].Holder.Fenced = true
	moved := contends(o, 0, ann, 10)
	moved[0].Lease = 70
	office := stand(o, contends(o, 0, ann, 10), contends(o, 0, bob, 20))
	one := stand(m, contends(m, 3, ann, 10, 2), contends(m, 3, bob, 20))
	two := stand(m, contends(m, 3, ann, 10, 2), contends(m, 3, bob, 20, 1), contends(m, 3, cat, 30))
	many := stand(m, contends(m, 9, ann, 10, 0), contends(m, 9, bob, 20, 1), contends(m, 9, cat, 30, 2), contends(m, 9, actor{"d", 10, 3}, 40, 3), contends(m, 9, actor{"e", 11, 4}, 50, 4))
	by := func(host string) evictFlags { return evictFlags{holder: holderFlag{host, 1}} }
	slot := func(n int) evictFlags { return evictFlags{bySlot: true, slot: n} }
	token := func(rev uint64) evictFlags { return evictFlags{force: true, rev: rev} }
	for name, tt := range map[string]struct {
		flags evictFlags
		is    view.Standing
		token uint64 // who is meant; 0: nobody
		why   string
	}{
		"nobody":                       {evictFlags{}, stand(o), 0, "nobody holds o"},
		"nobody with a free slot":      {evictFlags{}, stand(m, contends(m, 3, ann, 10)), 0, "nobody holds s"},
		"only one who settles":         {evictFlags{}, stand(o, contends(o, 0, ann, 10), unsettled), 0, "nobody holds o: a pid 1, token 10, waits for the end of an earlier hold"},
		"the leader":                   {evictFlags{}, office, 10, ""},
		"the leader by name":           {by("a"), office, 10, ""},
		"another pid":                  {evictFlags{holder: holderFlag{"a", 2}}, office, 0, "a pid 2 does not hold o; o is held by a pid 1, token 10"},
		"a name to be escaped":         {by("a\x1b"), office, 0, `a\x1b pid 1 does not hold o`},
		"who waits":                    {by("b"), office, 0, "b pid 1 waits for o and holds nothing; o is held by a pid 1, token 10"},
		"who settles":                  {by("a"), stand(o, contends(o, 0, ann, 10), unsettled), 0, "a pid 1 waits for o and holds nothing; nobody holds o: a pid 1, token 10, waits"},
		"a foreign client":             {evictFlags{}, stand(o, contends(o, 0, actor{"", 7, 0}, 10)), 0, `o is held by foreign\x1b, token 10, which is no conch and does not listen: only conch evict elect o --force --rev 10 can end it`},
		"a key on another lease":       {evictFlags{}, stand(o, moved), 0, "does not listen"},
		"who has gone and is fenced":   {evictFlags{}, stand(o, fenced), 0, "o was left by a pid 1, token 10, whose on-lose failed: nobody is at work, and it is free when its lease is over; conch evict elect o --force --rev 10 deletes its key"},
		"a nested election ahead":      {evictFlags{}, stand(o, []view.Entry{{Key: hold.ElectRange("o") + "1/2", Create: 1, Mod: 1}}, contends(o, 0, ann, 10)), 0, "nobody holds o"},
		"the only holder of a slot":    {evictFlags{}, one, 11, ""},
		"one of two":                   {evictFlags{}, two, 0, "s is held by slot 1 by b pid 1, token 21; slot 2 by a pid 1, token 11; want --holder or --slot to say which one"},
		"one of many":                  {evictFlags{}, many, 0, "token 31 and 2 more; want --holder"},
		"one by its slot":              {slot(1), two, 21, ""},
		"a free slot":                  {slot(0), two, 0, "nobody holds slot 0 of s; s is held by slot 1 by b pid 1"},
		"one by its name":              {by("a"), two, 11, ""},
		"who waits for a slot":         {by("c"), two, 0, "c pid 1 waits for s and holds nothing"},
		"a slot under two maxima":      {slot(0), stand(m, contends(m, 2, ann, 10, 0), contends(m, 3, bob, 20, 0)), 0, "want --holder or --slot"},
		"two of a name":                {by("a"), stand(m, contends(m, 3, ann, 10, 0), contends(m, 3, actor{"a", 70, 1}, 20, 1)), 0, "slot 0 by a pid 1, token 11; slot 1 by a pid 1, token 21; want --holder or --slot"},
		"two of a name, by slot":       {slot(1), stand(m, contends(m, 3, ann, 10, 0), contends(m, 3, actor{"a", 70, 1}, 20, 1)), 21, ""},
		"who is about to leave":        {slot(2), stand(m, contends(m, 3, ann, 10, 2)[1:]), 0, "slot 2 by somebody, token 11, has lost its place at s already, and leaves; conch evict sema s --force --rev 11 deletes what it has left"},
		"by token":                     {token(10), office, 10, ""},
		"by a token of nobody":         {token(11), office, 0, "nobody holds o with token 11; o is held by a pid 1, token 10"},
		"by the token of who waits":    {token(20), office, 0, "b pid 1, token 20, waits for o and holds nothing"},
		"by the token of who settles":  {token(10), stand(o, contends(o, 0, ann, 10), unsettled), 10, ""},
		"by the token of a foreigner":  {token(10), stand(o, contends(o, 0, actor{"", 7, 0}, 10)), 10, ""},
		"by the token of who left":     {token(10), stand(o, fenced), 10, ""},
		"by the token of a slot":       {token(21), two, 21, ""},
		"by the key of who has a slot": {token(20), two, 0, "nobody holds s with token 20"},
		"by the token of a waiter":     {token(30), two, 0, "c pid 1, token 30, waits for s"},
	} {
		seat, err := tt.flags.choose(tt.is)
		switch {
		case tt.token != 0 && (err != nil || seat.Token != tt.token):
			t.Errorf("%s: got token %d, %v", name, seat.Token, err)
		case tt.token == 0 && !errors.Is(err, hold.ErrNotEvicted):
			t.Errorf("%s: got token %d, %v", name, seat.Token, err)
		case tt.token == 0:
			contains(t, err.Error(), tt.why)
		}
	}
}
