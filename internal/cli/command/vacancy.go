package command

import (
	"context"
	"errors"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// standIn takes the office once it has been vacant for long enough. Who finds it taken in that moment waits for the
// next vacancy, and does not queue: in a queue it would come before whoever comes for the office itself.
func (c *campaign) standIn(ctx context.Context, identity string) (*coord.Term, error) {
	for {
		if err := c.awaitVacancy(ctx); err != nil {
			return nil, err
		}
		term, err := c.try(ctx, identity)
		if !errors.Is(err, hold.ErrNotAcquired) {
			return term, err
		}
	}
}

// awaitVacancy returns when nobody has led for vacantFor without a break, as far as etcd has told: a time in which it
// tells nothing does not count. It is no promise that nobody leads: the campaign that follows finds that out.
func (c *campaign) awaitVacancy(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := c.el.Watch(ctx)
	vacant := time.NewTimer(c.vacantFor)
	defer vacant.Stop()
	vacant.Stop()
	var said time.Time
	for {
		select {
		case change, ok := <-changes:
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case !ok:
				return context.Cause(c.el.Session().Context())
			case change.Vacant && !change.Stale:
				vacant.Reset(c.vacantFor)
			default:
				vacant.Stop()
			}
			if said.IsZero() || time.Since(said) >= progressEvery {
				said = time.Now()
				c.sayVacancy(change)
			}
		case <-vacant.C:
			switch err := c.stillVacant(ctx); {
			case err == nil:
				return nil
			case errors.Is(cli.Classify(err), hold.ErrPermission):
				return err
			case errors.Is(err, coord.ErrNestedKey):
				return err
			}
			vacant.Reset(c.vacantFor) // unless a change comes first
		}
	}
}

// errHeld is returned when the office is not vacant after all.
var errHeld = errors.New("the office is held")

// stillVacant asks etcd once more.
func (c *campaign) stillVacant(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	_, err := c.el.Leader(ctx)
	switch {
	case errors.Is(err, coord.ErrNoLeader):
		return nil
	case err == nil:
		return errHeld
	}
	return err
}

func (c *campaign) sayVacancy(change coord.LeaderChange) {
	if change.Vacant || change.Stale {
		c.log.Info("waiting until the office was vacant for long enough", "name", c.name, "campaign_after", c.vacantFor)
		return
	}
	holder, _ := hold.DecodeHolder([]byte(change.Leader.Identity))
	c.log.Info("waiting until the office is vacant", "name", c.name, "holder", holder.String(), "rev", change.Leader.Token)
}
