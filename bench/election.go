//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/bench/plot"
)

// arena is what operations are done on: sessions that are shared, and for each worker elections of a key of its own. Nobody waits for
// anybody: what is measured is the work.
type arena struct {
	cli     *clientv3.Client
	session *coord.Session
	theirs  *concurrency.Session
	ours    []*coord.Election
	peers   []*concurrency.Election
	locks   []*concurrency.Mutex
	slots   []*coord.Semaphore
}

// race is what is measured side by side: ours first, then the peer, then the limit, and then what explains the distance.
type race struct {
	name string
	min  []float64 // ratios to reach with most in flight: of the peer, and of the limit
	ways []way
}

// way is one way to do a thing.
type way struct {
	name string
	op   operation
}

// election measures taking and giving up: of this module, of the client's package concurrency, and the requests that it takes
// at least; with one call in flight, and with many.
func (b *bench) election(ctx context.Context) (outcome, error) {
	a, err := b.newArena(ctx, slices.Max(b.flights))
	if err != nil {
		return outcome{}, err
	}
	defer a.close(ctx)
	var o outcome
	for i, r := range a.races() {
		chart, results, err := b.run(ctx, r)
		if err != nil {
			return outcome{}, fmt.Errorf("%s: %w", r.name, err)
		}
		chart.Name = []string{"campaign", "try", "acquire"}[i]
		o.charts, o.results = append(o.charts, chart), append(o.results, results...)
	}
	return o, nil
}

// run measures a race with each number of calls in flight.
func (b *bench) run(ctx context.Context, r race) (chart plot.Chart, results []result, err error) {
	chart = plot.Chart{Title: r.name, X: plot.Axis{Label: "calls in flight", Log: true}, Y: plot.Axis{Label: "pairs of calls a second"}}
	for _, w := range r.ways {
		chart.Lines = append(chart.Lines, plot.Line{Label: w.name})
	}
	for _, flight := range b.flights {
		var all []contestant
		for _, w := range r.ways {
			all = append(all, b.rate(w.name, flight, w.op))
		}
		s, err := alternate(ctx, b.rounds, all...)
		if err != nil {
			return chart, nil, err
		}
		name := fmt.Sprintf("%s, %d in flight", r.name, flight)
		for k := range s {
			if k > 0 {
				against := compare(name, "/s", s[0], s[k])
				if flight == slices.Max(b.flights) && k <= len(r.min) {
					against = against.atLeast(r.min[k-1])
				}
				results = append(results, against)
			}
			chart.Lines[k].Points = append(chart.Lines[k].Points, [2]float64{float64(flight), s[k].figure().Median})
		}
	}
	return chart, results, nil
}

func (b *bench) newArena(ctx context.Context, workers int) (a arena, err error) {
	a.cli = b.common.client
	if a.session, err = coord.NewSession(ctx, a.cli, coord.SessionOptions{TTL: patientTTL * time.Second}); err != nil {
		return a, err
	}
	if a.theirs, err = concurrency.NewSession(a.cli, concurrency.WithTTL(patientTTL)); err != nil {
		return a, err
	}
	for w := range workers {
		e, err := a.session.Election(coord.ElectionOptions{Key: fmt.Sprintf("/bench/ours/%d", w)})
		if err != nil {
			return a, err
		}
		m, err := coord.NewSemaphore(a.cli, coord.SemaphoreOptions{Key: fmt.Sprintf("/bench/slots/%d", w), Max: 4})
		if err != nil {
			return a, err
		}
		a.ours, a.slots = append(a.ours, e), append(a.slots, m)
		a.peers = append(a.peers, concurrency.NewElection(a.theirs, fmt.Sprintf("/bench/theirs/%d", w)))
		a.locks = append(a.locks, concurrency.NewMutex(a.theirs, fmt.Sprintf("/bench/locks/%d", w)))
	}
	return a, nil
}

func (a arena) close(ctx context.Context) {
	_ = a.session.Close(context.WithoutCancel(ctx))
	_ = a.theirs.Close()
}

func (a arena) races() []race {
	least := way{"a put and a delete", a.putAndDelete}
	same := func(refused func(prefix, key string) []clientv3.Op) way {
		return way{"the same transactions, bare", func(ctx context.Context, w int) error { return a.sameTransactions(ctx, w, refused) }}
	}
	return []race{
		{"Campaign and Resign", []float64{1.25, 0.8}, []way{{"coord.Election", a.campaign}, {"concurrency.Election", a.theirCampaign}, least, same(a.queues)}},
		{"TryCampaign and Resign", []float64{1.25, 0.8}, []way{{"coord.Election", a.try}, {"concurrency.Mutex, TryLock", a.theirTry}, least, same(nil)}},
		{"Acquire and Release of a slot, a lease each", []float64{1, 0.5}, []way{
			{"coord.Semaphore", a.acquire}, {"concurrency.Mutex, a session each", a.theirAcquire}, {"grant, put, delete, revoke", a.grantAndRevoke},
		}},
	}
}

func (a arena) campaign(ctx context.Context, w int) error {
	if err := a.ours[w].Campaign(ctx, "x"); err != nil {
		return err
	}
	return a.ours[w].Resign(ctx)
}

func (a arena) theirCampaign(ctx context.Context, w int) error {
	if err := a.peers[w].Campaign(ctx, "x"); err != nil {
		return err
	}
	return a.peers[w].Resign(ctx)
}

func (a arena) putAndDelete(ctx context.Context, w int) error {
	key := fmt.Sprintf("/bench/raw/%d", w)
	if _, err := a.cli.Put(ctx, key, "x", clientv3.WithLease(a.theirs.Lease())); err != nil {
		return err
	}
	_, err := a.cli.Delete(ctx, key)
	return err
}

// sameTransactions sends what a campaign, or a try, and a resignation send, and does nothing else: no session is asked, nothing is kept or
// watched. Each resignation goes alone here, as it does from a session that ends few terms.
func (a arena) sameTransactions(ctx context.Context, w int, refused func(prefix, key string) []clientv3.Op) error {
	prefix := fmt.Sprintf("/bench/same/%d/", w)
	key, lease := fmt.Sprintf("%s%x", prefix, a.theirs.Lease()), a.theirs.Lease()
	var orElse []clientv3.Op
	if refused != nil {
		orElse = refused(prefix, key)
	}
	got, err := a.cli.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(prefix), "=", 0).WithPrefix()).
		Then(clientv3.OpPut(key, "x", clientv3.WithLease(lease))).Else(orElse...).Commit()
	if err != nil {
		return err
	}
	_, err = a.cli.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", got.Header.Revision)).Then(clientv3.OpDelete(key)).Commit()
	return err
}

// queues is what a campaign does where somebody leads; a try does nothing.
func (a arena) queues(prefix, key string) []clientv3.Op {
	older := []clientv3.OpOption{
		clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(100), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend),
	}
	return []clientv3.Op{
		clientv3.OpPut(key, "x", clientv3.WithLease(a.theirs.Lease()), clientv3.WithPrevKV()),
		clientv3.OpGet(prefix, older...), clientv3.OpGet(prefix, clientv3.WithFirstCreate()...),
	}
}

func (a arena) try(ctx context.Context, w int) error {
	led, err := a.ours[w].TryCampaign(ctx, "x")
	if err != nil {
		return err
	}
	if !led {
		return fmt.Errorf("somebody else leads where nobody is")
	}
	return a.ours[w].Resign(ctx)
}

func (a arena) theirTry(ctx context.Context, w int) error {
	if err := a.locks[w].TryLock(ctx); err != nil {
		return err
	}
	return a.locks[w].Unlock(ctx)
}

func (a arena) acquire(ctx context.Context, w int) error {
	term, err := a.slots[w].Acquire(ctx, "x")
	if err != nil {
		return err
	}
	return a.slots[w].Release(ctx, term)
}

func (a arena) theirAcquire(ctx context.Context, w int) error {
	s, err := concurrency.NewSession(a.cli, concurrency.WithTTL(10))
	if err != nil {
		return err
	}
	m := concurrency.NewMutex(s, fmt.Sprintf("/bench/each/%d", w))
	if err = m.Lock(ctx); err == nil {
		err = m.Unlock(ctx)
	}
	if closed := s.Close(); err == nil {
		err = closed
	}
	return err
}

func (a arena) grantAndRevoke(ctx context.Context, w int) error {
	lease, err := a.cli.Grant(ctx, 10)
	if err != nil {
		return err
	}
	key := fmt.Sprintf("/bench/grant/%d", w)
	if _, err := a.cli.Put(ctx, key, "x", clientv3.WithLease(lease.ID)); err != nil {
		return err
	}
	if _, err := a.cli.Delete(ctx, key); err != nil {
		return err
	}
	_, err = a.cli.Revoke(ctx, lease.ID)
	return err
}
