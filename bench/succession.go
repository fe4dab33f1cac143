//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/go-coord/coord"
)

// pair are two that take turns in holding something: while one holds, the other waits. Each has a client of its own.
type pair struct {
	enter  [2]func(ctx context.Context) error
	leave  [2]func(ctx context.Context) error
	prefix string // under which their keys are
	close  func()
}

// patientTTL, in seconds, is of sessions on which other things are measured than renewals: a busy machine that keeps one from renewing
// for some seconds does not end the run.
const patientTTL = 60

// How long who waits has waited before the other gives up. Etcd hands on what happened before a watch began, or just as it did, at its
// next look only, and it looks ten times a second: whoever watches from the revision that it has read, as package concurrency does,
// hears of an early end up to 100 ms late. That is told apart from what a hand-over costs.
const (
	longQueued = 150 * time.Millisecond
	justQueued = 3 * time.Millisecond
)

// succession measures hand-overs inside a process: from the call that gives up to the return of the call that waited.
func (b *bench) succession(ctx context.Context) (o outcome, err error) {
	pairs, dismiss, err := b.pairs(ctx)
	defer dismiss()
	if err != nil {
		return o, err
	}
	for _, row := range []struct {
		name   string
		queued time.Duration
	}{{"resign to leader", longQueued}, {"resign to leader, who has just queued", justQueued}} {
		var all []contestant
		for i, name := range pairNames() {
			all = append(all, contestant{name, func(ctx context.Context, _ int) ([]float64, error) { return b.handOn(ctx, pairs[i], row.queued) }})
		}
		s, err := alternate(ctx, b.rounds, all...)
		if err != nil {
			return o, err
		}
		election, mutex := compare(row.name, "ms", s[0], s[1]), compare(row.name, "ms", s[0], s[2])
		if row.queued == longQueued {
			election, mutex = election.atMost(1), mutex.atMost(1)
		}
		o.results = append(o.results, election, mutex, compare(row.name, "ms", s[0], s[3]))
	}
	return o, nil
}

func pairNames() []string {
	return []string{"coord.Election", "concurrency.Election", "concurrency.Mutex", "delete, event, transaction"}
}

// pairs opens one of each kind, in the order of their names. dismiss is due also after an error.
func (b *bench) pairs(ctx context.Context) (all []pair, dismiss func(), err error) {
	var clients []*clientv3.Client
	dismiss = func() {
		for _, p := range all {
			p.close()
		}
		for _, cli := range clients {
			_ = cli.Close()
		}
	}
	for _, open := range []func(context.Context, [2]*clientv3.Client) (pair, error){pairOfElections, pairOfTheirs, pairOfMutexes, pairOfNothing} {
		for range 2 {
			cli, err := connect(b.common.endpoint)
			if err != nil {
				return all, dismiss, err
			}
			clients = append(clients, cli)
		}
		p, err := open(ctx, [2]*clientv3.Client(clients[len(clients)-2:]))
		if err != nil {
			return all, dismiss, err
		}
		all = append(all, p)
	}
	return all, dismiss, nil
}

// handOn hands over, back and forth, for two slices.
func (b *bench) handOn(ctx context.Context, p pair, queued time.Duration) (times []float64, err error) {
	holder := 0
	if err := p.enter[holder](ctx); err != nil {
		return nil, err
	}
	for began := time.Now(); len(times) == 0 || time.Since(began) < 2*b.slice; holder = 1 - holder {
		type entry struct {
			at  time.Time
			err error
		}
		entered := make(chan entry, 1)
		queueing, fail := context.WithCancelCause(ctx)
		go func() {
			err := p.enter[1-holder](ctx)
			entered <- entry{time.Now(), err}
			fail(err) // before it has queued, there is nothing to wait for
		}()
		err := b.common.await(queueing, p.prefix, 2)
		if err != nil {
			return nil, errors.Join(err, context.Cause(queueing))
		}
		if err := wait(ctx, queued); err != nil {
			return nil, err
		}
		left := time.Now()
		err = p.leave[holder](ctx)
		next := <-entered
		if err = errors.Join(err, next.err); err != nil {
			return nil, err
		}
		times = append(times, millis(next.at.Sub(left)))
	}
	return times, p.leave[holder](ctx)
}

func pairOfElections(ctx context.Context, clients [2]*clientv3.Client) (p pair, err error) {
	p.prefix = "/bench/succession/ours/"
	var all [2]*coord.Election
	for i, cli := range clients {
		e, err := coord.NewElection(ctx, cli, coord.ElectionOptions{Key: "/bench/succession/ours", TTL: patientTTL})
		if err != nil {
			return p, err
		}
		all[i] = e
		p.enter[i] = func(ctx context.Context) error { return e.Campaign(ctx, "x") }
		p.leave[i] = e.Resign
	}
	p.close = func() { _, _ = all[0].Close(), all[1].Close() }
	return p, nil
}

// theirSessions opens one of the client's own for each.
func theirSessions(clients [2]*clientv3.Client) (s [2]*concurrency.Session, closeAll func(), err error) {
	for i, cli := range clients {
		if s[i], err = concurrency.NewSession(cli, concurrency.WithTTL(patientTTL)); err != nil {
			return s, nil, err
		}
	}
	return s, func() { _, _ = s[0].Close(), s[1].Close() }, nil
}

func pairOfTheirs(_ context.Context, clients [2]*clientv3.Client) (p pair, err error) {
	sessions, closeAll, err := theirSessions(clients)
	p.prefix, p.close = "/bench/succession/theirs/", closeAll
	for i, s := range sessions {
		e := concurrency.NewElection(s, "/bench/succession/theirs")
		p.enter[i] = func(ctx context.Context) error { return e.Campaign(ctx, "x") }
		p.leave[i] = e.Resign
	}
	return p, err
}

func pairOfMutexes(_ context.Context, clients [2]*clientv3.Client) (p pair, err error) {
	sessions, closeAll, err := theirSessions(clients)
	p.prefix, p.close = "/bench/succession/mutex/", closeAll
	for i, s := range sessions {
		m := concurrency.NewMutex(s, "/bench/succession/mutex")
		p.enter[i], p.leave[i] = m.Lock, m.Unlock
	}
	return p, err
}

// pairOfNothing does what a hand-over cannot do without: a delete, an event, a transaction that decides.
func pairOfNothing(_ context.Context, clients [2]*clientv3.Client) (p pair, err error) {
	p.prefix, p.close = "/bench/succession/raw/", func() {}
	for i, cli := range clients {
		own, other := fmt.Sprintf("%s%d", p.prefix, i), fmt.Sprintf("%s%d", p.prefix, 1-i)
		p.enter[i] = func(ctx context.Context) error {
			got, err := cli.Txn(ctx).Then(clientv3.OpPut(own, "x"), clientv3.OpGet(other, clientv3.WithCountOnly())).Commit()
			if err != nil {
				return err
			}
			if got.Responses[1].GetResponseRange().Count > 0 {
				watching, cancel := context.WithCancel(ctx)
				news := <-cli.Watch(watching, other, clientv3.WithRev(got.Header.Revision+1), clientv3.WithFilterPut())
				cancel()
				if err := news.Err(); err != nil {
					return err
				}
			}
			_, err = cli.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(other), "=", 0)).Then(clientv3.OpGet(own)).Commit()
			return err
		}
		p.leave[i] = func(ctx context.Context) error { _, err := cli.Delete(ctx, own); return err }
	}
	return p, nil
}
