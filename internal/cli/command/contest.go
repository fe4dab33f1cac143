package command

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// contest is what there is to hold: an office, or a slot of a semaphore.
type contest interface {
	// begin makes an attempt on a session. placed is told of each key of it, the latest call counts.
	begin(s *coord.Session, placed func(coord.TermKeys)) (attempt, error)
	// needs are what may not be refused us.
	needs() []cli.Need
	// refusal is what is wrong with an attempt, in this contest's own words; err itself, where it has none.
	refusal(err error) error
	// holders says who holds, for people, behind a colon; empty where that is not known.
	holders(ctx context.Context, client *clientv3.Client) string
	// queue is where those who wait are, and how many hold there at most.
	queue() (prefix string, holders int)
}

// attempt is one attempt to hold, on a session of its own. On an error nothing of it is left but what goes with that
// session.
type attempt interface {
	// wait returns when it holds.
	wait(ctx context.Context, identity string) (*coord.Term, error)
	// try takes what is free now, and never queues. It is hold.ErrNotAcquired where nothing is.
	try(ctx context.Context, identity string) (*coord.Term, error)
	// release gives up what was won.
	release(ctx context.Context, t *coord.Term, how coord.End) error
}

// settling are the keys of the records, or none where holds are not settled.
func settling(off bool, open, last hold.Key) coord.SettleOptions {
	if off {
		return coord.SettleOptions{}
	}
	return coord.SettleOptions{Open: open.String(), Last: last.String()}
}
