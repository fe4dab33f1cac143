//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/bench/plot"
)

// pool measures elections on sessions that are kept, against a session of the client's own for each.
func (b *bench) pool(ctx context.Context) (outcome, error) {
	held, err := b.manyKeys(ctx)
	if err != nil {
		return outcome{}, err
	}
	again, err := b.againAndAgain(ctx)
	return outcome{results: append(held, again)}, err
}

// manyKeys leads many elections, and keeps leading them: on one shared session, on a session each, and as bare
// transactions that create a key.
func (b *bench) manyKeys(ctx context.Context) ([]result, error) {
	rate := func(way func(context.Context, int) (float64, error)) func(context.Context, int) ([]float64, error) {
		return func(ctx context.Context, round int) ([]float64, error) {
			rate, err := way(ctx, round)
			return []float64{rate}, err
		}
	}
	s, err := alternate(ctx, b.few(), contestant{"pool", rate(b.onAPool)}, contestant{"a session for each", rate(b.onASessionEach)},
		contestant{"bare create-if-absent", rate(b.bareCreate)})
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("borrow and try, shared session, %s keys", plot.Number(float64(b.keys)))
	return []result{compare(name, "/s", s[0], s[1]).atLeast(2.5), compare(name, "/s", s[0], s[2]).atLeast(0.85)}, nil
}

func (b *bench) onAPool(ctx context.Context, round int) (float64, error) {
	pool := coord.NewElectionPool(b.common.client, coord.PoolOptions{SharedSession: true})
	rate, err := spread(ctx, b.keys, func(i int) error {
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
	sessions := make([]*concurrency.Session, b.keys)
	rate, err := spread(ctx, b.keys, func(i int) (err error) {
		if sessions[i], err = concurrency.NewSession(b.common.client, concurrency.WithTTL(30)); err != nil {
			return err
		}
		return concurrency.NewElection(sessions[i], fmt.Sprintf("/bench/each/%d/%d", round, i)).Campaign(ctx, "x")
	})
	if err == nil {
		_, err = spread(ctx, b.keys, func(i int) error { return sessions[i].Close() })
	}
	if err != nil {
		return 0, fmt.Errorf("a session for each key: %w", err)
	}
	return rate, nil
}

func (b *bench) bareCreate(ctx context.Context, round int) (float64, error) {
	cli := b.common.client
	lease, err := cli.Grant(ctx, 600)
	if err != nil {
		return 0, err
	}
	rate, err := spread(ctx, b.keys, func(i int) error {
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
func (b *bench) againAndAgain(ctx context.Context) (result, error) {
	cli := b.common.client
	pool := coord.NewElectionPool(cli, coord.PoolOptions{})
	s, err := alternate(ctx, b.rounds, b.rate("pool", together, func(ctx context.Context, w int) error {
		e, err := pool.Election(ctx, fmt.Sprintf("/bench/kept/%d", w))
		if err == nil {
			err = e.Campaign(ctx, "x")
		}
		if err != nil {
			return err
		}
		return e.Resign(ctx)
	}), b.rate("a new session each time", together, func(ctx context.Context, w int) error {
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
	}))
	if err = errors.Join(err, pool.Close()); err != nil {
		return result{}, err
	}
	return compare("Campaign and Resign, pooled session", "/s", s[0], s[1]).atLeast(5), nil
}
