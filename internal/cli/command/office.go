package command

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// office is the contest of "conch elect".
type office struct {
	name      string
	settle    coord.SettleOptions
	vacantFor time.Duration // --campaign-after; 0: campaign at once
	waiting   func(coord.Waiting)
	log       *slog.Logger
}

func (o *office) needs() []cli.Need { return leadNeeds(o.name, o.settle.Open != "") }

func (o *office) refusal(err error) error { return err }

func (o *office) queue() (string, int) { return hold.ElectRange(o.name), 1 }

func (o *office) begin(s *coord.Session, placed func(coord.TermKeys)) (attempt, error) {
	el, err := s.Election(coord.ElectionOptions{Key: hold.ElectPrefix(o.name), Settle: o.settle, Waiting: o.waiting, Placed: placed})
	return &campaign{office: o, el: el}, err
}

func (o *office) holders(ctx context.Context, client *clientv3.Client) string {
	queue, err := coord.ListCandidates(ctx, client, hold.ElectPrefix(o.name))
	if err != nil || len(queue) == 0 {
		return ""
	}
	holder, _ := hold.DecodeHolder([]byte(queue[0].Identity))
	seat := view.Seat{State: view.Held, Holder: holder, Token: queue[0].Token}
	if holder.Fenced {
		seat.State = view.Fenced
	}
	return ": " + standingText(seat)
}

// campaign is one attempt at an office.
type campaign struct {
	*office
	el *coord.Election
}

func (c *campaign) wait(ctx context.Context, identity string) (*coord.Term, error) {
	if c.vacantFor > 0 {
		return c.standIn(ctx, identity)
	}
	return c.el.CampaignTerm(ctx, identity)
}

func (c *campaign) try(ctx context.Context, identity string) (*coord.Term, error) {
	won, err := c.el.TryCampaign(ctx, identity)
	switch {
	case err != nil:
		return nil, err
	case !won:
		return nil, hold.ErrNotAcquired
	}
	if term := c.el.Term(); term != nil {
		return term, nil
	}
	return nil, fmt.Errorf("%w: between winning and starting", coord.ErrSessionLost)
}

func (c *campaign) release(ctx context.Context, _ *coord.Term, how coord.End) error {
	return c.el.ResignAs(ctx, how)
}
