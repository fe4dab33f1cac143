package command

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// following is a follower whose words are kept.
type following struct {
	follower
	office string
	told   chan string // identities, with "settles" for who does; "" for nobody, "away" and "back"
}

func follow(t *testing.T, cli *clientv3.Client, office string) *following {
	t.Helper()
	f := &following{office: office, told: make(chan string, 99)}
	f.follower = follower{
		client: cli, office: office, prefix: hold.ElectRange(office), every: 200 * time.Millisecond, within: 300 * time.Millisecond,
		patience: 1000, // a busy machine is no reason to skip a change
		say: func(c coord.Candidate, unsettled *openHold) error {
			if unsettled != nil {
				c.Identity += " settles"
			}
			f.told <- c.Identity
			return nil
		},
		away:   func(error) { f.told <- "away" },
		back:   func() { f.told <- "back" },
		listen: func() error { return nil },
	}
	return f
}

// run lets it follow until the test ends.
func (f *following) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.follower.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the follower ended: %v", err)
		}
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
		case <-time.After(time.Minute):
			t.Fatalf("told %q, want %q", got, want)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("told %q, want %q", got, want)
	}
}

// seatAs puts a candidate's key, and takes it away again where asked to.
func seatAs(t *testing.T, cli *clientv3.Client, office, identity string) (leave func()) {
	t.Helper()
	lease := put(t, cli, office, identity)
	id, err := hold.ParseLease(lease)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := cli.Delete(t.Context(), hold.ElectKey(office, id).String()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFollowerSkipsNoChangeHoweverShort(t *testing.T) {
	t.Parallel()
	office, cli := etcdtest.Office(t), etcdtest.Shared(t).Client(t)
	f := follow(t, cli, office)
	if err := f.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	// All of it is over before the first event is read.
	leave := seatAs(t, cli, office, "a")
	leaveB := seatAs(t, cli, office, "b")
	leaveC := seatAs(t, cli, office, "c")
	leave()
	leaveC()
	leaveB()
	seatAs(t, cli, office, "d")
	f.run(t)
	f.tells(t, "", "a", "b", "", "d")
}

func TestAHandOverInOneStepIsNoVacancy(t *testing.T) {
	t.Parallel()
	office, cli := etcdtest.Office(t), etcdtest.Shared(t).Client(t)
	f := follow(t, cli, office)
	if err := f.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, second := hold.ElectKey(office, 1).String(), hold.ElectKey(office, 2).String()
	if _, err := cli.Put(t.Context(), first, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.Txn(t.Context()).Then(clientv3.OpDelete(first), clientv3.OpPut(second, "b")).Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.Put(t.Context(), second+"/nested", "not of this office"); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.Put(t.Context(), second, "b says more"); err != nil {
		t.Fatal(err)
	}
	f.run(t)
	f.tells(t, "", "a", "b", "b says more")
}

func TestAFollowerSurvivesCompaction(t *testing.T) {
	t.Parallel()
	office, cli := etcdtest.Office(t), etcdtest.One(t).Client(t)
	f := follow(t, cli, office)
	if err := f.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	seatAs(t, cli, office, "a")()
	seatAs(t, cli, office, "b")
	now, err := cli.Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cli.Compact(t.Context(), now.Header.Revision); err != nil {
		t.Fatal(err)
	}
	f.run(t)
	f.tells(t, "", "b")
	seatAs(t, cli, office, "c")
}

func TestAFollowerTellsInOrderWhatHappenedWhileEtcdWasAway(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*etcdtest.Proxy){
		"gone": (*etcdtest.Proxy).Cut, "silent": (*etcdtest.Proxy).Blackhole, "deaf": (*etcdtest.Proxy).DropReplies,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			office, cli := etcdtest.Office(t), etcdtest.Shared(t).Client(t)
			proxy := etcdtest.NewProxy(t, etcdtest.Shared(t).Endpoint())
			f := follow(t, etcdtest.Client(t, proxy.Addr()), office)
			if err := f.list(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.run(t)
			leave := seatAs(t, cli, office, "a")
			f.tells(t, "", "a")
			fault(proxy)
			f.tells(t, "away")
			leave()
			seatAs(t, cli, office, "b")
			proxy.Revive()
			f.tells(t, "back", "", "b")
		})
	}
}

func TestAFollowerDoesNotBelieveAWatchThatContradictsTheStore(t *testing.T) {
	t.Parallel()
	office, cli := etcdtest.Office(t), etcdtest.Shared(t).Client(t)
	seatAs(t, cli, office, "a")
	for name, tt := range map[string]struct {
		spoil    func(*following)
		patience int // for events that do not come
	}{
		"an event was lost":     {func(f *following) { f.queue = map[string]coord.Candidate{} }, 2},
		"the history went back": {func(f *following) { f.queue, f.rev = map[string]coord.Candidate{}, f.rev+1<<40 }, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := follow(t, etcdtest.Shared(t).Client(t), office)
			if err := f.list(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.patience = tt.patience
			tt.spoil(f)
			f.run(t)
			f.tells(t, "", "a")
		})
	}
}

func TestAFollowerEndsWhenNobodyListens(t *testing.T) {
	t.Parallel()
	deaf := errors.New("deaf")
	office, cli := etcdtest.Office(t), etcdtest.Shared(t).Client(t)
	f := follow(t, cli, office)
	f.listen = func() error { return deaf }
	if err := f.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.follower.run(t.Context()); !errors.Is(err, deaf) {
		t.Errorf("got %v", err)
	}
	f = follow(t, cli, office)
	f.say = func(coord.Candidate, *openHold) error { return deaf }
	if err := f.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	seatAs(t, cli, office, "a")
	if err := f.follower.run(t.Context()); !errors.Is(err, deaf) {
		t.Errorf("got %v", err)
	}
}
