package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

func identity(host string) string { return hold.NewHolder(host, 1, time.Time{}, nil).Encode() }

func settle(n view.Name) coord.SettleOptions {
	if n.Kind == hold.KindElect {
		open, last := hold.OfficeKeys(n.Name)
		return coord.SettleOptions{Open: open.String(), Last: last.String()}
	}
	open, last := hold.SemaRecords(n.Name)
	return coord.SettleOptions{Open: open, Last: last}
}

// election is a contender for an office, as conch is one.
func election(t *testing.T, client *clientv3.Client, n view.Name) *coord.Election {
	t.Helper()
	el, err := coord.NewElection(t.Context(), client, coord.ElectionOptions{Key: hold.ElectPrefix(n.Name), TTL: 60, Settle: settle(n)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = el.Close() })
	return el
}

// semaphore is one as conch makes it.
func semaphore(t *testing.T, client *clientv3.Client, n view.Name, max int) *coord.Semaphore {
	t.Helper()
	m, err := coord.NewSemaphore(client, coord.SemaphoreOptions{
		Key: hold.SemaPrefix(n.Name), Slots: hold.SlotPrefix(n.Name), Max: max,
		TTL: time.Minute, Settle: settle(n),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// acquire takes a slot, until the test ends or gives it up.
func acquire(t *testing.T, m *coord.Semaphore, host string) *coord.Term {
	t.Helper()
	term, err := m.Acquire(t.Context(), identity(host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Release(context.WithoutCancel(t.Context()), term) })
	return term
}

func names(t *testing.T) (office, sema view.Name) {
	name := etcdtest.Office(t)
	return view.Name{Kind: hold.KindElect, Name: name}, view.Name{Kind: hold.KindSema, Name: name}
}

// standingOf is how a name stands now, in a few words.
func standingOf(t *testing.T, client *clientv3.Client, n view.Name) string {
	t.Helper()
	s, err := Look(t.Context(), client, n)
	if err != nil {
		t.Fatal(err)
	}
	return words(s)
}

func words(s view.Standing) string {
	var all []string
	for _, seat := range slices.Concat(s.Seats, s.Vacancies()) {
		word := string(seat.State) + " " + seat.Holder.Host
		if seat.Slot >= 0 {
			word += fmt.Sprintf(" %d/%d", seat.Slot, seat.Max)
		}
		if seat.Last != nil {
			word += " after " + seat.Last.Holder.Host + " " + string(seat.Last.How)
		}
		all = append(all, word)
	}
	for range s.Odd {
		all = append(all, "odd")
	}
	return strings.Join(all, "; ")
}

func TestALookAtAnOffice(t *testing.T) {
	t.Parallel()
	client := etcdtest.Shared(t).Client(t)
	office, _ := names(t)
	if got := standingOf(t, client, office); got != "" {
		t.Errorf("got %q", got)
	}
	a, b := election(t, client, office), election(t, client, office)
	if err := a.Campaign(t.Context(), identity("a")); err != nil {
		t.Fatal(err)
	}
	s, err := Look(t.Context(), client, office)
	if err != nil {
		t.Fatal(err)
	}
	first := s.Seats[0]
	lease := int64(a.Session().Lease())
	if first.Token != uint64(a.Term().Token()) || first.Lease != lease || first.Key != hold.ElectKey(office.Name, lease).String() ||
		first.Since.IsZero() || s.Rev < first.Mod || first.State != view.Held {
		t.Errorf("got %+v", s)
	}
	if left := Left(t.Context(), client, []int64{lease, lease, 0, 12345}); len(left) != 1 || left[lease] <= 0 || left[lease] > time.Minute {
		t.Errorf("got %v", left)
	}
	if err := a.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := standingOf(t, client, office); got != "vacant  after a released" {
		t.Errorf("got %q", got)
	}
	if s, err := LookHolders(t.Context(), client, office); err != nil || !s.Vacant() || len(s.Ends) != 0 {
		t.Errorf("got %+v, %v", s, err)
	}
	if err := b.Campaign(t.Context(), identity("b")); err != nil {
		t.Fatal(err)
	}
	if got := standingOf(t, client, office); got != "held b after a released" {
		t.Errorf("got %q", got)
	}
}

func TestALookAtASemaphore(t *testing.T) {
	t.Parallel()
	client := etcdtest.Shared(t).Client(t)
	_, sema := names(t)
	m := semaphore(t, client, sema, 2)
	first, second := acquire(t, m, "a"), acquire(t, m, "b")
	s, err := Look(t.Context(), client, sema)
	if err != nil {
		t.Fatal(err)
	}
	holders, err := m.Holders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, seat := range s.Seats {
		if h := holders[i]; seat.State != view.Held || seat.Slot != h.Slot || seat.Max != h.Max || seat.Token != h.Token || seat.Key != h.Key || seat.Since.IsZero() {
			t.Errorf("got %+v, want %+v", seat, h)
		}
	}
	if got := standingOf(t, client, sema); got != "held a 0/2; held b 1/2" || first.Slot() != 0 || second.Slot() != 1 {
		t.Errorf("got %q", got)
	}
	if err := m.Release(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if got := standingOf(t, client, sema); got != "held b 1/2" {
		t.Errorf("got %q", got)
	}
	if err := m.Release(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if got := standingOf(t, client, sema); got != "vacant  1/2 after b released" {
		t.Errorf("got %q", got)
	}
}

func TestALookReadsNothingOfAnotherName(t *testing.T) {
	t.Parallel()
	client := etcdtest.Shared(t).Client(t)
	office, sema := names(t)
	for _, key := range []string{hold.ElectKey(office.Name+"b", 1).String(), hold.SemaKey(sema.Name+"b", 1, 1).String(), hold.SlotKey(sema.Name+".b", 2, 1).String()} {
		if _, err := client.Put(t.Context(), key, ""); err != nil {
			t.Fatal(err)
		}
	}
	if got := standingOf(t, client, office) + standingOf(t, client, sema); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestALookThatFailsSaysAtWhat(t *testing.T) {
	t.Parallel()
	client := etcdtest.Shared(t).Client(t)
	office, sema := names(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Look(ctx, client, office); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "read elect "+office.Name) {
		t.Errorf("got %v", err)
	}
	if _, err := LookAll(ctx, client, sema.Kind); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "below /conch/v1/sema/") {
		t.Errorf("got %v", err)
	}
	if _, err := Hosts(ctx, client); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left := Left(ctx, client, []int64{1, 2}); len(left) != 0 {
		t.Errorf("got %v", left)
	}
}

func TestALookAtEverythingIsAtOneRevision(t *testing.T) {
	t.Parallel()
	client := etcdtest.One(t).Client(t)
	all := func() string {
		t.Helper()
		standings, err := LookAll(t.Context(), client, hold.KindElect, hold.KindSema)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, s := range standings {
			if s.Rev != standings[0].Rev || s.Rev == 0 {
				t.Errorf("%v is of revision %d, others of %d", s.Name, s.Rev, standings[0].Rev)
			}
			out = append(out, s.Kind+" "+s.Name.Name+": "+words(s))
		}
		return strings.Join(out, "\n")
	}
	if got := all(); got != "" {
		t.Errorf("got %q", got)
	}
	a := election(t, client, view.Name{Kind: hold.KindElect, Name: "a"})
	if err := a.Campaign(t.Context(), identity("x")); err != nil {
		t.Fatal(err)
	}
	acquire(t, semaphore(t, client, view.Name{Kind: hold.KindSema, Name: "a"}, 3), "y")
	if _, err := client.Put(t.Context(), hold.AreaRange(hold.AreaSlot)+"\x1b/1", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), hold.ElectKey("b", 0x7b).String(), "foreign"); err != nil {
		t.Fatal(err)
	}
	if got, want := all(), " : odd\nelect a: held x\nelect b: held \nsema a: held y 0/3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestManyKeysAreReadPageByPage(t *testing.T) {
	t.Parallel()
	client := etcdtest.One(t).Client(t)
	const many = page + 10
	for i := 0; i < many; i += 100 {
		var ops []clientv3.Op
		for j := i; j < min(i+100, many); j++ {
			ops = append(ops, clientv3.OpPut(hold.ElectKey("o"+strconv.Itoa(j), 1).String(), ""))
		}
		if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	standings, err := LookAll(t.Context(), client, hold.KindElect)
	if err != nil || len(standings) != many {
		t.Errorf("%d names, %v", len(standings), err)
	}
	rev := standings[0].Rev
	if _, err := client.Compact(t.Context(), rev); err != nil {
		t.Fatal(err)
	}
	if _, err := readPages(t.Context(), client, hold.Root, clientv3.GetPrefixRangeEnd(hold.Root), page, rev-1, func(*mvccpb.KeyValue) {}); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("got %v", err)
	}
}

func TestALookAtEverythingBeginsAnewWhereItsRevisionIsCompacted(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	client := m.Client(t)
	if _, err := client.Put(t.Context(), hold.ElectKey("o", 1).String(), ""); err != nil {
		t.Fatal(err)
	}
	compacted := coordtest.Rule{Method: coordtest.Range, Skip: 1, Times: 2, Action: coordtest.Refuse(rpctypes.ErrGRPCCompacted)}
	m.Inject(compacted)
	if all, err := LookAll(t.Context(), client, hold.KindElect); err != nil || len(all) != 1 {
		t.Errorf("%d names, %v", len(all), err)
	}
	compacted.Skip, compacted.Times = 0, coordtest.Forever
	m.Inject(compacted)
	if _, err := LookAll(t.Context(), client, hold.KindElect); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("got %v", err)
	}
}

func TestHostsAsTheyAre(t *testing.T) {
	t.Parallel()
	client := etcdtest.One(t).Client(t)
	for uuid, value := range map[string]string{
		"a": `{"hostname":"h1","version":"2","started_at_unix_ns":1767225600000000000}`, "b": `{"stopping":true,"started_at_unix_ns":9000000000000000000}`, "c": "broken",
	} {
		if _, err := client.Put(t.Context(), coord.HostsPrefix+uuid, value); err != nil {
			t.Fatal(err)
		}
	}
	hosts, err := Hosts(t.Context(), client)
	if err != nil || len(hosts) != 3 {
		t.Fatalf("%d hosts, %v", len(hosts), err)
	}
	a, b, c := hosts[0], hosts[1], hosts[2]
	if a.UUID != "a" || a.State != view.Up || a.Hostname != "h1" || a.Version != "2" || a.Since.Format(time.RFC3339) != "2026-01-01T00:00:00Z" || a.Rev == 0 || a.Left != view.Unknown {
		t.Errorf("got %+v", a)
	}
	if b.State != view.Stopping || !b.Since.IsZero() || c.UUID != "c" || c.State != view.Up {
		t.Errorf("got %+v and %+v", b, c)
	}
}

func TestWhatALongValueCostsIsNotKept(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	open, last := hold.OfficeKeys("o")
	for _, kv := range []*mvccpb.KeyValue{
		{Key: []byte(hold.ElectKey("o", 1).String()), Value: []byte(long)},
		{Key: []byte(hold.ElectKey("o", 1).String()), Value: []byte(`{"host":"` + long + `","pid":1,"started":"2026-01-01T00:00:00Z"}`)},
		{Key: []byte(open.String()), Value: []byte(`{"lease":"7b","ttl":10,"holder":"` + long + `"}`)},
		{Key: []byte(last.String()), Value: []byte(`{"rev":7,"how":"` + long + `","holder":"` + long + `"}`)},
	} {
		e := EntryOf(kv)
		texts := []string{e.Holder.String()}
		if e.Open != nil {
			texts = append(texts, e.Open.Holder.String())
		}
		if e.Last != nil {
			texts = append(texts, e.Last.Holder.String(), string(e.Last.How))
		}
		for _, kept := range texts {
			if len(kept) > 300 {
				t.Errorf("%s: %d bytes are kept", kv.Key, len(kept))
			}
		}
	}
}
