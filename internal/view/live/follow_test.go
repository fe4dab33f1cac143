package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// patience is how long something is waited for that has to happen.
const patience = time.Minute

// soon finds out in a second that etcd is away.
var soon = FollowOptions{StaleAfter: time.Second}

// following keeps what a follower says.
type following struct {
	told chan string // seats; and "stale" and "fresh"
	end  func() error
}

// seatWords is a change in a few words.
func seatWords(s view.Seat) string {
	word := string(s.State)
	if s.Slot >= 0 {
		word = fmt.Sprintf("%d ", s.Slot) + word
	}
	if s.State != view.Vacant {
		word += " " + s.Holder.String()
	}
	return word
}

// startFollowing follows until the test ends, or end is called.
func startFollowing(t *testing.T, o FollowOptions, follow func(context.Context, FollowOptions, func(...string)) error) *following {
	t.Helper()
	f := &following{told: make(chan string, 9999)}
	o.Stale, o.Fresh = func(error) { f.told <- "stale" }, func() { f.told <- "fresh" }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- follow(ctx, o, func(words ...string) {
			for _, word := range words {
				f.told <- word
			}
		})
	}()
	f.end = func() error { cancel(); err := <-done; done <- err; return err }
	t.Cleanup(func() {
		if err := f.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("the following ended: %v", err)
		}
	})
	return f
}

func follow(t *testing.T, client *clientv3.Client, n view.Name, o FollowOptions) *following {
	t.Helper()
	return startFollowing(t, o, func(ctx context.Context, o FollowOptions, say func(...string)) error {
		return Follow(ctx, client, n, o, func(changes []view.Seat, _ view.Standing) error {
			for _, seat := range changes {
				say(seatWords(seat))
			}
			return nil
		})
	})
}

// tells waits for words, in order.
func (f *following) tells(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for len(got) < len(want) {
		select {
		case word := <-f.told:
			got = append(got, word)
		case <-time.After(patience):
			t.Fatalf("told %q, want %q", got, want)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("told %q, want %q", got, want)
	}
}

// pen writes keys by hand.
type pen struct {
	t      *testing.T
	client *clientv3.Client
	name   view.Name
	lease  int64
}

func (p *pen) put(key, value string) {
	p.t.Helper()
	p.do(clientv3.OpPut(key, value))
}

func (p *pen) remove(keys ...string) {
	p.t.Helper()
	var ops []clientv3.Op
	for _, key := range keys {
		ops = append(ops, clientv3.OpDelete(key))
	}
	p.do(ops...)
}

func (p *pen) do(ops ...clientv3.Op) {
	p.t.Helper()
	if _, err := p.client.Txn(p.t.Context()).Then(ops...).Commit(); err != nil {
		p.t.Fatal(err)
	}
}

// comes puts a candidate for an office, and gives its key and the record that it would open.
func (p *pen) comes(identity string) (key, record string) {
	p.t.Helper()
	p.lease++
	key = hold.ElectKey(p.name.Name, p.lease).String()
	p.put(key, identity)
	return key, recordOf(p.lease)
}

// recordOf is the open record of a hold by a lease.
func recordOf(lease int64) string {
	return fmt.Sprintf(`{"lease":"%s","n":1,"ttl":10}`, hold.FormatLease(lease))
}

func (p *pen) compact() {
	p.t.Helper()
	now, err := p.client.Get(p.t.Context(), "x")
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.client.Compact(p.t.Context(), now.Header.Revision); err != nil {
		p.t.Fatal(err)
	}
}

// held lets the watches of a medium hear nothing until release is called: all that is done meanwhile is over before the
// first event is read.
func held(t *testing.T) (p *pen, client *clientv3.Client, m *coordtest.Medium) {
	t.Helper()
	m = coordtest.Start(t, coordtest.Options{})
	client = m.Client(t)
	return &pen{t: t, client: client, name: view.Name{Kind: hold.KindElect, Name: "o"}}, client, m
}

func TestNoChangeIsSkippedHoweverShort(t *testing.T) {
	t.Parallel()
	p, client, m := held(t)
	f := follow(t, client, p.name, FollowOptions{})
	f.tells(t, "vacant")
	m.HoldWatches(true)
	a, _ := p.comes("a")
	b, _ := p.comes("b")
	c, _ := p.comes("c")
	p.remove(a)
	p.remove(c)
	p.remove(b)
	p.comes("d")
	m.HoldWatches(false)
	f.tells(t, "held a", "held b", "vacant", "held d")
}

func TestAHandOverInOneStepIsNoVacancy(t *testing.T) {
	t.Parallel()
	p, client, m := held(t)
	f := follow(t, client, p.name, FollowOptions{})
	f.tells(t, "vacant")
	m.HoldWatches(true)
	first, _ := p.comes("a")
	second := hold.ElectKey("o", 99).String()
	p.do(clientv3.OpDelete(first), clientv3.OpPut(second, "b"))
	p.put(second+"/nested", "not of this office")
	p.put(second, "b says more")
	p.comes("behind it")
	p.remove(second + "/nested")
	p.remove(second)
	m.HoldWatches(false)
	f.tells(t, "held a", "held b", "held b says more", "held behind it")
}

func TestAKeyOfANestedElectionInFrontIsNoLeader(t *testing.T) {
	t.Parallel()
	p, client, m := held(t)
	nested := hold.ElectKey("o", 99).String() + "/nested"
	p.put(nested, "not of this office")
	f := follow(t, client, p.name, FollowOptions{})
	f.tells(t, "vacant")
	m.HoldWatches(true)
	a, _ := p.comes("a")
	p.remove(a)
	p.comes("b")
	p.remove(nested)
	m.HoldWatches(false)
	f.tells(t, "waiting a", "vacant", "waiting b", "held b")
}

func TestASettlerIsToldFromAHolder(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(p *pen, open, own string){
		"the earlier hold says that it is over":  func(p *pen, open, _ string) { p.remove(open) },
		"it is waited out, and the settler wins": func(p *pen, open, own string) { p.put(open, own) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, client, _ := held(t)
			open, _ := hold.OfficeKeys("o")
			p.put(open.String(), recordOf(0x7b))
			f := follow(t, client, p.name, FollowOptions{StaleAfter: time.Hour}) // no proof comes to its help
			f.tells(t, "vacant")
			key, own := p.comes("next")
			f.tells(t, "settling next")
			ends(p, open.String(), own)
			f.tells(t, "held next")
			p.remove(key)
			f.tells(t, "vacant")
		})
	}
}

func TestAVacancyIsToldAgainWhenTheEarlierHoldIsOver(t *testing.T) {
	t.Parallel()
	client := etcdtest.Shared(t).Client(t)
	office, _ := names(t)
	var ends []string
	told := make(chan string, 9)
	startFollowing(t, FollowOptions{}, func(ctx context.Context, o FollowOptions, _ func(...string)) error {
		return Follow(ctx, client, office, o, func(changes []view.Seat, is view.Standing) error {
			for _, s := range changes {
				word := seatWords(s)
				if s.Unsettled != nil {
					word += ", unsettled"
				}
				if s.Last != nil {
					word += ", after " + s.Last.Holder.Host + " " + string(s.Last.How)
				}
				told <- word
			}
			return nil
		})
	})
	next := func(want string) {
		t.Helper()
		select {
		case got := <-told:
			ends = append(ends, got)
			if got != want {
				t.Fatalf("told %q, want %q", ends, want)
			}
		case <-time.After(patience):
			t.Fatalf("told %q, want %q", ends, want)
		}
	}
	next("vacant")
	el := election(t, client, office)
	if err := el.Campaign(t.Context(), identity("a")); err != nil {
		t.Fatal(err)
	}
	next("held a pid 1")
	if _, err := client.Delete(t.Context(), hold.ElectKey(office.Name, int64(el.Session().Lease())).String()); err != nil {
		t.Fatal(err)
	}
	next("vacant, unsettled, after a ") // nobody has said yet
	if err := el.ResignAs(t.Context(), coord.EndLost); err != nil {
		t.Fatal(err)
	}
	next("vacant, after a lost")
}

func TestNoHoldThatCameOfSettlingIsSkipped(t *testing.T) {
	t.Parallel()
	p, client, m := held(t)
	open, _ := hold.OfficeKeys("o")
	p.put(open.String(), recordOf(0x7b))
	key, own := p.comes("next")
	f := follow(t, client, p.name, FollowOptions{})
	f.tells(t, "settling next")
	m.HoldWatches(true)
	p.put(open.String(), own)
	_, behind := p.comes("behind")
	p.remove(key)
	p.put(open.String(), behind)
	m.HoldWatches(false)
	f.tells(t, "held next", "settling behind", "held behind")
}

func TestTheEndOfSettlingIsSeenWithoutAHintAsWell(t *testing.T) {
	t.Parallel()
	client := etcdtest.Shared(t).Client(t)
	office, _ := names(t)
	p := &pen{t: t, client: client, name: office}
	open, _ := hold.OfficeKeys(office.Name)
	p.put(open.String(), recordOf(0x7b))
	p.comes("next")
	proxy := etcdtest.NewProxy(t, etcdtest.Shared(t).Endpoint())
	f := follow(t, etcdtest.Client(t, proxy.Addr()), office, soon)
	f.tells(t, "settling next")
	proxy.Cut()
	f.tells(t, "stale")
	p.remove(open.String())
	proxy.Revive()
	f.tells(t, "held next", "fresh")
}

func TestFollowingSurvivesCompaction(t *testing.T) {
	t.Parallel()
	for name, revive := range map[string]func(*testing.T, *coordtest.Medium){
		"of the events":            func(_ *testing.T, m *coordtest.Medium) { m.EndWatches(nil) },
		"of what the records were": func(*testing.T, *coordtest.Medium) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, client, m := held(t)
			f := follow(t, client, p.name, FollowOptions{})
			f.tells(t, "vacant")
			m.HoldWatches(true)
			a, _ := p.comes("a")
			p.remove(a)
			p.comes("b")
			p.compact()
			revive(t, m)
			m.HoldWatches(false)
			f.tells(t, "held b")
			p.comes("c")
			p.remove(hold.ElectKey("o", 2).String())
			f.tells(t, "held c")
		})
	}
}

func TestWhatHappenedWhileEtcdWasAwayIsToldInOrder(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*etcdtest.Proxy){
		"gone": (*etcdtest.Proxy).Cut, "silent": (*etcdtest.Proxy).Blackhole, "deaf": (*etcdtest.Proxy).DropReplies,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := etcdtest.Shared(t).Client(t)
			office, _ := names(t)
			p := &pen{t: t, client: client, name: office}
			proxy := etcdtest.NewProxy(t, etcdtest.Shared(t).Endpoint())
			f := follow(t, etcdtest.Client(t, proxy.Addr()), office, soon)
			f.tells(t, "vacant")
			a, _ := p.comes("a")
			f.tells(t, "held a")
			fault(proxy)
			f.tells(t, "stale")
			p.remove(a)
			p.comes("b")
			proxy.Revive()
			f.tells(t, "vacant", "held b", "fresh")
		})
	}
}

func TestAStoppedMemberIsNotBelieved(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{Members: 2})
	p := &pen{t: t, client: m.Client(t, 1), name: view.Name{Kind: hold.KindElect, Name: "o"}}
	f := follow(t, m.Client(t), p.name, soon)
	f.tells(t, "vacant")
	m.Stop(0)
	p.comes("a")
	var got []string
	for !slices.Contains(got, "held a") {
		select {
		case word := <-f.told:
			got = append(got, word)
		case <-time.After(patience):
			t.Fatalf("told %q", got)
		}
	}
	m.Cont(0)
	if rest := slices.DeleteFunc(got, func(s string) bool { return s == "stale" || s == "fresh" }); len(rest) != 1 {
		t.Errorf("told %q", got)
	}
}

func TestAStoreThatWentBackIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	p, client, m := held(t)
	before := m.Snapshot()
	f := follow(t, client, p.name, soon)
	f.tells(t, "vacant")
	p.comes("a")
	f.tells(t, "held a")
	m.Restore(before)
	m.EndWatches(nil)
	for {
		select {
		case word := <-f.told:
			if word == "vacant" {
				return
			}
			if word != "stale" {
				t.Fatalf("told %q", word)
			}
		case <-time.After(patience):
			t.Fatal("what is gone is not told of")
		}
	}
}

func TestFollowingEndsWithTheErrorOfWhoIsTold(t *testing.T) {
	t.Parallel()
	deaf := errors.New("deaf")
	p, client, _ := held(t)
	err := Follow(t.Context(), client, p.name, FollowOptions{}, func([]view.Seat, view.Standing) error { return deaf })
	if !errors.Is(err, deaf) {
		t.Errorf("got %v", err)
	}
	if err := FollowAll(t.Context(), client, FollowOptions{}, func(*view.Book, []view.Name) error { return deaf }); !errors.Is(err, deaf) {
		t.Errorf("got %v", err)
	}
	if err := Follow(t.Context(), client, p.name, FollowOptions{StaleAfter: time.Millisecond}, nil); !errors.Is(err, coord.ErrInvalidOption) {
		t.Errorf("got %v", err)
	}
}
