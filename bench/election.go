//go:build linux

package main

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/go-coord/coord"
)

// election measures leading and resigning on a shared session: of this module, of etcd's own concurrency package,
// and the two writes that it takes at least.
func (b *bench) election(ctx context.Context) ([]result, error) {
	cli := b.queue.client
	session, err := coord.NewSession(ctx, cli, coord.SessionOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
	theirs, err := concurrency.NewSession(cli, concurrency.WithTTL(10))
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()

	var ours [inFlight]*coord.Election
	var peers [inFlight]*concurrency.Election
	for w := range inFlight {
		if ours[w], err = session.Election(coord.ElectionOptions{Key: fmt.Sprintf("/bench/ours/%d", w)}); err != nil {
			return nil, err
		}
		peers[w] = concurrency.NewElection(theirs, fmt.Sprintf("/bench/theirs/%d", w))
	}
	rates, err := throughput(ctx, b.rounds, contestant{"coord.Election", func(ctx context.Context, w, _ int) error {
		if err := ours[w].Campaign(ctx, "x"); err != nil {
			return err
		}
		return ours[w].Resign(ctx)
	}}, contestant{"concurrency.Election", func(ctx context.Context, w, _ int) error {
		if err := peers[w].Campaign(ctx, "x"); err != nil {
			return err
		}
		return peers[w].Resign(ctx)
	}}, contestant{"put and delete", func(ctx context.Context, w, _ int) error {
		key := fmt.Sprintf("/bench/raw/%d", w)
		if _, err := cli.Put(ctx, key, "x", clientv3.WithLease(theirs.Lease())); err != nil {
			return err
		}
		_, err := cli.Delete(ctx, key)
		return err
	}})
	if err != nil {
		return nil, err
	}
	return []result{
		faster("campaign and resign, shared session", "concurrency.Election", rates[0], rates[1], 1.25),
		faster("campaign and resign, shared session", "a put and a delete", rates[0], rates[2], 0.8),
	}, nil
}
