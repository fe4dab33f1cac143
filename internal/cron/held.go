package cron

import (
	"context"
	"sync"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// held is one start as a hold.Hold: it lasts while the node's session is proven and its marker stands.
type held struct {
	proof     *coord.Proof
	info      hold.Info
	testament []byte
	renewed   chan struct{}

	once  sync.Once
	lost  chan struct{}
	mu    sync.Mutex
	cause error
}

func (n *node) holdOf(e *entry, r *running) *held {
	keys := n.proof.Keys()
	never := n.never(e, r, record.ReasonDaemon)
	never.Status = record.Lost
	end := n.endOf(e, r, never)
	return &held{
		proof: n.proof, renewed: make(chan struct{}, 1), lost: make(chan struct{}),
		info: hold.Info{
			Kind: "cron", Name: e.name, Rev: uint64(r.rev), Lease: int64(keys.Lease), Slot: -1, TTL: n.proof.Bounds().TTL,
		},
		testament: store.Testament(end),
	}
}

func (h *held) Info() hold.Info { return h.info }

func (h *held) Deadlines() hold.Deadlines {
	term, kill := h.proof.Deadlines()
	return hold.Deadlines{Term: term, Kill: kill}
}

func (h *held) Renewed() <-chan struct{} { return h.renewed }
func (h *held) Lost() <-chan struct{}    { return h.lost }
func (h *held) Evicted() <-chan error    { return nil } // who kills a run ends its context
func (h *held) Testament() []byte        { return h.testament }

// Release gives nothing up yet: the marker goes with the result, once it is known how the run ended.
func (h *held) Release(context.Context, hold.End) error { return nil }

func (h *held) Cause() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cause
}

func (h *held) lose(why error) {
	h.once.Do(func() {
		h.mu.Lock()
		h.cause = why
		h.mu.Unlock()
		close(h.lost)
	})
}

func (h *held) renew() {
	select {
	case h.renewed <- struct{}{}:
	default:
	}
}
