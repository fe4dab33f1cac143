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

// succession measures hand-overs inside a process: from the call that gives up to the return of the call that waited.
func (b *bench) succession(ctx context.Context) (outcome, error) {
	var all []contestant
	for _, c := range []struct {
		name string
		open func(context.Context, [2]*clientv3.Client) (pair, error)
	}{
		{"coord.Election", pairOfElections}, {"concurrency.Election", pairOfTheirs}, {"concurrency.Mutex", pairOfMutexes},
		{"delete, event, transaction", pairOfNothing},
	} {
		var clients [2]*clientv3.Client
		for i := range clients {
			var err error
			if clients[i], err = connect(b.common.endpoint); err != nil {
				return outcome{}, err
			}
			defer clients[i].Close()
		}
		p, err := c.open(ctx, clients)
		if err != nil {
			return outcome{}, fmt.Errorf("%s: %w", c.name, err)
		}
		defer p.close()
		all = append(all, contestant{c.name, func(ctx context.Context, _ int) ([]float64, error) { return b.handOn(ctx, p) }})
	}
	s, err := alternate(ctx, b.rounds, all...)
	if err != nil {
		return outcome{}, err
	}
	return outcome{results: []result{
		compare("resign to leader, two processes' clients", "ms", s[0], s[1]).atMost(1),
		compare("resign to leader, two processes' clients", "ms", s[0], s[2]).atMost(1),
		compare("resign to leader, two processes' clients", "ms", s[0], s[3]),
	}}, nil
}

// handOn hands over, back and forth, for a slice.
func (b *bench) handOn(ctx context.Context, p pair) (times []float64, err error) {
	holder := 0
	if err := p.enter[holder](ctx); err != nil {
		return nil, err
	}
	for began := time.Now(); len(times) == 0 || time.Since(began) < b.slice; holder = 1 - holder {
		type entry struct {
			at  time.Time
			err error
		}
		entered := make(chan entry, 1)
		go func() {
			err := p.enter[1-holder](ctx)
			entered <- entry{time.Now(), err}
		}()
		if err := b.common.await(ctx, p.prefix, 2); err != nil {
			return nil, err
		}
		// Whoever waits has put its key, and looks at the other's: that takes it a round trip, or two.
		if err := wait(ctx, 3*time.Millisecond); err != nil {
			return nil, err
		}
		left := time.Now()
		err := p.leave[holder](ctx)
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
		e, err := coord.NewElection(ctx, cli, coord.ElectionOptions{Key: "/bench/succession/ours"})
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
		if s[i], err = concurrency.NewSession(cli, concurrency.WithTTL(10)); err != nil {
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
