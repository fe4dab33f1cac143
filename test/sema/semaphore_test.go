package sema

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// options are those of a semaphore that settles, below a prefix of the test's own.
func options(t *testing.T, max int) coord.SemaphoreOptions {
	p := etcdtest.Prefix(t)
	return coord.SemaphoreOptions{
		Key: p + "sema", Slots: p + "slot", Max: max, TTL: 30 * time.Second, // a busy machine is no loss
		Settle: coord.SettleOptions{Open: p + "open", Last: p + "last"},
	}
}

// seats notes who works in which slot, and fails where two do.
type seats struct {
	mu  sync.Mutex
	who map[int]string
	max int
}

func (s *seats) sit(t *testing.T, slot int, who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, taken := s.who[slot]; taken || slot < 0 || slot >= s.max {
		t.Errorf("%s in slot %d, where %q is", who, slot, other)
	}
	s.who[slot] = who
}

func (s *seats) rise(slot int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.who, slot)
}

func TestFiftyContendersForThreeSlots(t *testing.T) {
	t.Parallel()
	server := etcdtest.Shared(t)
	o := options(t, 3)
	m, err := coord.NewSemaphore(server.Client(t), o)
	must(t, err)
	s := &seats{who: map[int]string{}, max: 3}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			err := m.Do(t.Context(), fmt.Sprint(i), func(ctx context.Context, term *coord.Term) error {
				s.sit(t, term.Slot(), fmt.Sprint(i))
				defer s.rise(term.Slot())
				return term.Verify(ctx)
			})
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
		all.Go(func() {
			term, held, err := m.TryAcquire(t.Context(), "try")
			if err != nil {
				t.Errorf("try %d: %v", i, err)
			}
			if held {
				s.sit(t, term.Slot(), "try")
				s.rise(term.Slot())
				if err := m.Release(t.Context(), term); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	left, err := coord.ListHolders(t.Context(), server.Client(t), o.Key, o.Slots)
	if err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestAnotherMaxIsRefusedByEtcd(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	o := options(t, 3)
	three, err := coord.NewSemaphore(cli, o)
	must(t, err)
	o.Max = 30
	thirty, err := coord.NewSemaphore(cli, o)
	must(t, err)
	term, err := three.Acquire(t.Context(), "first")
	must(t, err)
	if _, err := thirty.Acquire(t.Context(), "second"); !errors.Is(err, coord.ErrOtherMax) {
		t.Error(err)
	}
	must(t, three.Release(t.Context(), term))
	term, held, err := thirty.TryAcquire(t.Context(), "second")
	if !held || err != nil {
		t.Fatal(held, err)
	}
	if _, err := three.Acquire(t.Context(), "first"); !errors.Is(err, coord.ErrOtherMax) {
		t.Error(err)
	}
	must(t, thirty.Release(t.Context(), term))
}

func TestASlotsKeyDeletedByHandIsALossAndSettled(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	m, err := coord.NewSemaphore(cli, options(t, 1))
	must(t, err)
	a, err := m.Acquire(t.Context(), "a")
	must(t, err)
	next := make(chan *coord.Term, 1)
	go func() {
		term, err := m.Acquire(t.Context(), "b")
		if err != nil {
			t.Error(err)
		}
		next <- term
	}()
	_, err = cli.Delete(t.Context(), a.Keys().Slot)
	must(t, err)
	<-a.Lost()
	if err := a.Check(); !errors.Is(err, coord.ErrTermLost) || !errors.Is(err, coord.ErrKeyGone) {
		t.Error(err)
	}
	select {
	case <-next:
		t.Error("the slot is given away while its holder's work goes on")
	default:
	}
	must(t, m.Release(t.Context(), a))
	b := <-next
	if b == nil || b.Slot() != 0 || b.Token() <= a.Token() {
		t.Fatal(b)
	}
	must(t, m.Release(t.Context(), b))
}

func TestATermEndedByAnotherProcessFreesItsSlot(t *testing.T) {
	t.Parallel()
	server := etcdtest.Shared(t)
	m, err := coord.NewSemaphore(server.Client(t), options(t, 1))
	must(t, err)
	a, err := m.Acquire(t.Context(), "a")
	must(t, err)
	must(t, a.Keys().Release(t.Context(), server.Client(t), "orphaned"))
	<-a.Lost()
	b, held, err := m.TryAcquire(t.Context(), "b")
	if !held || err != nil {
		t.Fatal(held, err)
	}
	must(t, m.Release(t.Context(), a)) // late, and harmless
	must(t, b.Verify(t.Context()))
	must(t, m.Release(t.Context(), b))
}

func TestAPoolUnderManyKeys(t *testing.T) {
	t.Parallel()
	cli, prefix := etcdtest.Shared(t).Client(t), etcdtest.Prefix(t)
	pool := coord.NewElectionPool(cli, coord.PoolOptions{SharedSession: true})
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			e, err := pool.Election(t.Context(), fmt.Sprintf("%s%d", prefix, i))
			if err != nil {
				t.Error(err)
				return
			}
			if won, err := e.TryCampaign(t.Context(), "me"); !won || err != nil {
				t.Error(won, err)
			}
		})
	}
	all.Wait()
	if st := pool.Stats(); st.SessionCount != 1 || st.Active != 300 {
		t.Errorf("%+v", st)
	}
	must(t, pool.Close())
	got, err := cli.Get(t.Context(), prefix+"0/")
	if err != nil || len(got.Kvs) != 0 {
		t.Error(got, err)
	}
}
