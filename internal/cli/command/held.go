package command

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
)

// held is a term of coord as a hold.Hold.
type held struct {
	el   *coord.Election
	term *coord.Term
	info hold.Info
}

func (h *held) Info() hold.Info { return h.info }

func (h *held) Deadlines() hold.Deadlines {
	term, kill := h.term.Deadlines()
	return hold.Deadlines{Term: term, Kill: kill}
}

func (h *held) Renewed() <-chan struct{} { return h.term.Renewed() }
func (h *held) Lost() <-chan struct{}    { return h.term.Lost() }

func (h *held) Cause() error {
	if cause := context.Cause(h.term.Context()); cause != nil {
		return fmt.Errorf("%w: %w", hold.ErrLost, cause)
	}
	return nil
}

// Release gives up the key and closes the record. The lease is revoked at the same time, not after that: etcd writes
// both down at once, so neither this process nor its successor waits for the revoke. office.close waits for its end.
func (h *held) Release(ctx context.Context, end hold.End) error {
	go func() { _ = h.el.Session().Close(ctx) }() // office.close gets the same answer
	return h.el.ResignAs(ctx, coord.End(end))
}

func (h *held) Testament() []byte {
	raw, _ := json.Marshal(h.term.Keys()) // of these types it cannot fail
	return raw
}
