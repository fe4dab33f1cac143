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
func (o *office) standIn(ctx context.Context, el *coord.Election) (*coord.Term, error) {
	for {
		if err := o.awaitVacancy(ctx, el); err != nil {
			return nil, err
		}
		term, err := o.try(ctx, el)
		if !errors.Is(err, hold.ErrNotAcquired) {
			return term, err
		}
	}
}

// awaitVacancy returns when nobody has led for vacantFor without a break, as far as etcd has told: a time in which it
// tells nothing does not count. It is no promise that nobody leads: the campaign that follows finds that out.
func (o *office) awaitVacancy(ctx context.Context, el *coord.Election) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := el.Watch(ctx)
	vacant := time.NewTimer(o.vacantFor)
	defer vacant.Stop()
	vacant.Stop()
	var said time.Time
	for {
		select {
		case c, ok := <-changes:
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case !ok:
				return context.Cause(el.Session().Context())
			case c.Vacant && !c.Stale:
				vacant.Reset(o.vacantFor)
			default:
				vacant.Stop()
			}
			if said.IsZero() || time.Since(said) >= progressEvery {
				said = time.Now()
				o.sayVacancy(c)
			}
		case <-vacant.C:
			switch err := o.stillVacant(ctx, el); {
			case err == nil:
				return nil
			case errors.Is(cli.Classify(err), hold.ErrPermission):
				return err
			case errors.Is(err, coord.ErrNestedKey):
				return err
			}
			vacant.Reset(o.vacantFor) // unless a change comes first
		}
	}
}

// errHeld is returned when the office is not vacant after all.
var errHeld = errors.New("the office is held")

// stillVacant asks etcd once more.
func (o *office) stillVacant(ctx context.Context, el *coord.Election) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	_, err := el.Leader(ctx)
	switch {
	case errors.Is(err, coord.ErrNoLeader):
		return nil
	case err == nil:
		return errHeld
	}
	return err
}

func (o *office) sayVacancy(c coord.LeaderChange) {
	if c.Vacant || c.Stale {
		o.log.Info("waiting until the office was vacant for long enough", "name", o.name, "campaign_after", o.vacantFor)
		return
	}
	holder, _ := hold.DecodeHolder([]byte(c.Leader.Identity))
	o.log.Info("waiting until the office is vacant", "name", o.name, "holder", holder.String(), "rev", c.Leader.Token)
}
