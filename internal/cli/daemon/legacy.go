package daemon

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
	"github.com/go-coord/coord/internal/hold/shared"
)

// guardAgain is how soon a guard that could not be had is asked for again.
const guardAgain = time.Second

// legacy is what the guard does for the registration of a daemon that is killed: it takes the key away, so that the next daemon
// of this name, which the service manager starts at once, need not wait for a lease time. What runs has testaments of its own.
type legacy struct {
	pool *shared.Pool
	keys chan coord.TermKeys // the latest
}

func newLegacy(pool *shared.Pool) *legacy {
	return &legacy{pool: pool, keys: make(chan coord.TermKeys, 1)}
}

// leave has the latest registration taken care of. It does not block.
func (l *legacy) leave(keys coord.TermKeys) {
	select {
	case <-l.keys: // superseded
	default:
	}
	l.keys <- keys
}

// start begins to take care. The returned function ends that: then there is nothing to take away any more.
func (l *legacy) start() (forget func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { l.run(ctx) })
	return func() { cancel(); running.Wait() }
}

// run keeps a share of whatever guard there is, until ctx ends.
func (l *legacy) run(ctx context.Context) {
	var keys coord.TermKeys
	select {
	case keys = <-l.keys:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		share, err := l.pool.Guard(ctx)
		if err == nil {
			keys = l.attend(ctx, share, keys)
			_ = share.Close() // which drops the testament
			continue
		}
		select {
		case <-time.After(guardAgain):
		case <-ctx.Done():
		}
	}
}

// attend leaves testaments with a guard until that is gone, and returns the latest keys.
func (l *legacy) attend(ctx context.Context, share *shared.Share, keys coord.TermKeys) coord.TermKeys {
	for {
		raw, _ := json.Marshal(keys) // of these types it cannot fail
		run := "node-" + hold.FormatLease(int64(keys.Lease)) + "-" + strconv.FormatInt(keys.Rev, 10)
		if share.Send(guard.Request{Op: guard.OpBequeath, Run: run, Testament: raw}) != nil {
			return keys
		}
		for lease, rev := keys.Lease, keys.Rev; keys.Lease == lease && keys.Rev == rev; {
			select {
			case e, ok := <-share.Events():
				if !ok || e.Kind == guard.KindLost {
					return keys
				}
			case keys = <-l.keys:
			case <-ctx.Done():
				return keys
			}
		}
		_ = share.Send(guard.Request{Op: guard.OpForget, Run: run}) // one that is gone has forgotten
	}
}
