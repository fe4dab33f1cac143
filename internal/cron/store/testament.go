package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
)

// will is what another process needs to end a start whose daemon is dead.
type will struct {
	Cron *End `json:"cron"`
}

// Testament is a start's for the guard: once nothing of it is left, the release program writes that it was lost.
func Testament(e End) []byte {
	raw, _ := json.Marshal(will{&e}) // of these types it cannot fail
	return raw
}

// ReadTestament reads one. ok is false for the testament of another kind of hold.
func ReadTestament(raw []byte) (e End, ok bool) {
	var w will
	if err := json.Unmarshal(raw, &w); err != nil || w.Cron == nil || w.Cron.Result == nil {
		return End{}, false
	}
	return *w.Cron, true
}

// Execute does what a testament asks for, at the time now. Where etcd has no space left for the result, the start stays, and a peer
// settles it.
func Execute(ctx context.Context, client *clientv3.Client, e End, now time.Time) error {
	e.Result.EndedAt = record.StampOf(now)
	origin := time.Now()
	if _, err := New(client, func() time.Duration { return time.Since(origin) }).Finish(ctx, e); err != nil {
		return fmt.Errorf("report lost run: %w", err)
	}
	return nil
}
