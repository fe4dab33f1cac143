package compat

import (
	"context"
	"log/slog"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
)

// The published surface of elections, down to the types.
var (
	_ func(context.Context, *clientv3.Client, coord.ElectionOptions) (*coord.Election, error) = coord.NewElection

	_ func(*coord.Election, context.Context, string) error         = (*coord.Election).Campaign
	_ func(*coord.Election, context.Context, string) (bool, error) = (*coord.Election).TryCampaign
	_ func(*coord.Election, context.Context) error                 = (*coord.Election).Resign
	_ func(*coord.Election, context.Context) <-chan string         = (*coord.Election).Observe
	_ func(*coord.Election) error                                  = (*coord.Election).Close

	_ = coord.ElectionOptions{Key: string(""), TTL: int(0), Identity: string(""), Logger: (*slog.Logger)(nil)}
)

func TestAPublishedProgramElects(t *testing.T) {
	t.Parallel()
	ctx, cli := t.Context(), client(t)
	el, err := coord.NewElection(ctx, cli, coord.ElectionOptions{Key: "/coord/elect/reconcile"})
	if err != nil {
		t.Fatal(err)
	}
	defer el.Close()
	if err := el.Campaign(ctx, "host-uuid-1"); err != nil {
		t.Fatal(err)
	}
	if leader := <-el.Observe(ctx); leader != "host-uuid-1" {
		t.Errorf("leader %q", leader)
	}
	other, err := coord.NewElection(ctx, cli, coord.ElectionOptions{Key: "/coord/elect/reconcile", TTL: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if won, err := other.TryCampaign(ctx, "host-uuid-2"); won || err != nil {
		t.Error(won, err)
	}
	if err := el.Resign(ctx); err != nil {
		t.Error(err)
	}
	if won, err := other.TryCampaign(ctx, "host-uuid-2"); !won || err != nil {
		t.Error(won, err)
	}
}
