//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/go-coord/coord"
)

// pool measures elections on sessions that are kept, against a session of the client's own for each.
func (b *bench) pool(ctx context.Context) ([]result, error) {
	held, err := b.manyKeys(ctx)
	if err != nil {
		return nil, err
	}
	again, err := b.againAndAgain(ctx)
	return append(held, again...), err
}

// manyKeys leads many elections, and keeps leading them: on one shared session, on a session each, and as bare
// transactions that create a key.
func (b *bench) manyKeys(ctx context.Context) ([]result, error) {
	var rates [3][]float64
	for round := range max(b.rounds/3, 1) {
		for k, way := range []func(context.Context, int) (float64, error){b.onAPool, b.onASessionEach, b.bare} {
			rate, err := way(ctx, round)
			if err != nil {
				return nil, err
			}
			rates[k] = append(rates[k], rate)
		}
	}
	name := fmt.Sprintf("borrow and try, shared session, %d keys", many)
	ours := middle(rates[0])
	return []result{
		faster(name, "a session for each", ours, middle(rates[1]), 2.5),
		faster(name, "bare create-if-absent", ours, middle(rates[2]), 0.85),
	}, nil
}

func (b *bench) onAPool(ctx context.Context, round int) (float64, error) {
	pool := coord.NewElectionPool(b.queue.client, coord.PoolOptions{SharedSession: true})
	rate, err := spread(ctx, func(i int) error {
		e, err := pool.Election(ctx, fmt.Sprintf("/bench/pool/%d/%d", round, i))
		if err != nil {
			return err
		}
		_, err = e.TryCampaign(ctx, "x")
		return err
	})
	if err = errors.Join(err, pool.Close()); err != nil {
		return 0, fmt.Errorf("pool: %w", err)
	}
	return rate, nil
}

func (b *bench) onASessionEach(ctx context.Context, round int) (float64, error) {
	sessions := make([]*concurrency.Session, many)
	rate, err := spread(ctx, func(i int) (err error) {
		if sessions[i], err = concurrency.NewSession(b.queue.client, concurrency.WithTTL(30)); err != nil {
			return err
		}
		return concurrency.NewElection(sessions[i], fmt.Sprintf("/bench/each/%d/%d", round, i)).Campaign(ctx, "x")
	})
	if err == nil {
		_, err = spread(ctx, func(i int) error { return sessions[i].Close() })
	}
	if err != nil {
		return 0, fmt.Errorf("a session for each key: %w", err)
	}
	return rate, nil
}

func (b *bench) bare(ctx context.Context, round int) (float64, error) {
	cli := b.queue.client
	lease, err := cli.Grant(ctx, 600)
	if err != nil {
		return 0, err
	}
	rate, err := spread(ctx, func(i int) error {
		key := fmt.Sprintf("/bench/create/%d/%d", round, i)
		_, err := cli.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, "x", clientv3.WithLease(lease.ID))).Commit()
		return err
	})
	_, revoked := cli.Revoke(ctx, lease.ID)
	if err = errors.Join(err, revoked); err != nil {
		return 0, fmt.Errorf("bare transactions: %w", err)
	}
	return rate, nil
}

// againAndAgain leads and resigns on a pool's sessions, and with a session of the client's own each time.
func (b *bench) againAndAgain(ctx context.Context) ([]result, error) {
	cli := b.queue.client
	pool := coord.NewElectionPool(cli, coord.PoolOptions{})
	rates, err := throughput(ctx, b.rounds, contestant{"pool", func(ctx context.Context, w, _ int) error {
		e, err := pool.Election(ctx, fmt.Sprintf("/bench/kept/%d", w))
		if err == nil {
			err = e.Campaign(ctx, "x")
		}
		if err != nil {
			return err
		}
		return e.Resign(ctx)
	}}, contestant{"a new session", func(ctx context.Context, w, _ int) error {
		s, err := concurrency.NewSession(cli, concurrency.WithTTL(30))
		if err != nil {
			return err
		}
		e := concurrency.NewElection(s, fmt.Sprintf("/bench/new/%d", w))
		if err = e.Campaign(ctx, "x"); err == nil {
			err = e.Resign(ctx)
		}
		if closed := s.Close(); err == nil {
			err = closed
		}
		return err
	}})
	if err == nil {
		err = pool.Close()
	}
	if err != nil {
		return nil, err
	}
	return []result{faster("campaign and resign, pooled session", "a new session each time", rates[0], rates[1], 5)}, nil
}
