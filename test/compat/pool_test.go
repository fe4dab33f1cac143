package compat

import (
	"context"
	"log/slog"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
)

// The published surface of the pool, down to the types.
var (
	_ func(*clientv3.Client, coord.PoolOptions) *coord.ElectionPool               = coord.NewElectionPool
	_ func(*coord.ElectionPool, context.Context, string) (*coord.Election, error) = (*coord.ElectionPool).Election
	_ func(*coord.ElectionPool) coord.PoolStats                                   = (*coord.ElectionPool).Stats
	_ func(*coord.ElectionPool) error                                             = (*coord.ElectionPool).Close

	_ = coord.PoolOptions{TTLSec: int(0), Logger: (*slog.Logger)(nil)}
	_ = coord.PoolStats{SessionCount: int(0), Closed: false, TTLSec: int(0)}
)

func TestAPublishedProgramBorrows(t *testing.T) {
	t.Parallel()
	ctx, cli := t.Context(), client(t)
	pool := coord.NewElectionPool(cli, coord.PoolOptions{TTLSec: 30})
	defer pool.Close()

	el, _ := pool.Election(ctx, "/coord/elect/rule-42")
	won, _ := el.TryCampaign(ctx, "host-uuid-1")
	if !won {
		t.Error("not won")
	}
	if err := el.Close(); err != nil {
		t.Error(err)
	}
	// The pool owns the session: it is there for the next borrow, and the leader still leads.
	again, err := pool.Election(ctx, "/coord/elect/rule-42")
	if err != nil {
		t.Fatal(err)
	}
	if leader := <-again.Observe(ctx); leader != "host-uuid-1" {
		t.Errorf("leader %q", leader)
	}
	if st := pool.Stats(); st.SessionCount != 1 || st.Closed || st.TTLSec != 30 {
		t.Errorf("%+v", st)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	if !pool.Stats().Closed {
		t.Error("not closed")
	}
}
