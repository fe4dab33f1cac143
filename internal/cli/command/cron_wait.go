package command

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// takenWithin is how much later than its last moment a request may still be recorded as missed: by then a node that lives has done so.
const takenWithin = 10 * time.Second

// awaited is a start whose end is waited for, with the attempts that follow it.
type awaited struct {
	job   string
	id    record.ID
	until time.Time // when it is recorded as missed if nobody has taken it; zero: it was taken
	first bool      // the attempts that may follow do not matter
	log   *slog.Logger
}

// end waits until it has ended, and no other attempt follows.
func (w *awaited) end(ctx context.Context, client *clientv3.Client) (record.Result, error) {
	// All attempts have the same tick, and their results begin with it.
	f, stop := followBelow(ctx, client, record.Range(record.Results, w.job)+strconv.FormatInt(w.id.Tick, 10), w.log)
	defer stop()
	var vain <-chan time.Time
	if !w.until.IsZero() {
		vain = time.After(time.Until(w.until) + takenWithin)
	}
	ended := map[record.ID]record.Result{}
	for {
		select {
		case kvs := <-f.news:
			for _, kv := range kvs {
				if r, ok := store.ReadResult(kv); ok {
					id, _ := r.ID() // of its key
					ended[id] = r
				}
			}
			if r, over, err := w.last(ctx, client, ended); over || err != nil {
				return r, err
			}
		case <-vain:
			if err := w.untaken(ctx, client); err != nil {
				return record.Result{}, err
			}
		case err := <-f.ended:
			return record.Result{}, cmp.Or(context.Cause(ctx), cli.Classify(err))
		}
	}
}

// last goes from attempt to attempt, as far as they have ended.
func (w *awaited) last(ctx context.Context, client *clientv3.Client, ended map[record.ID]record.Result) (record.Result, bool, error) {
	for {
		r, ok := ended[w.id]
		if !ok {
			return record.Result{}, false, nil
		}
		again, err := w.again(ctx, client, r)
		if err != nil || !again {
			return r, !again, err
		}
		w.log.Info("another attempt follows", "job", w.job, "id", w.id.String(), "status", shown(string(r.Status)), "reason", shown(string(r.Reason)))
		w.id, w.until = store.Asked(w.id), time.Time{}
	}
}

// again reports whether another attempt follows one that has ended: it stands since the same transaction, and until its own end.
func (w *awaited) again(ctx context.Context, client *clientv3.Client, r record.Result) (bool, error) {
	if w.first || r.Status == record.Success {
		return false, nil
	}
	is, err := store.Look(ctx, client, w.job)
	if err != nil {
		return false, cli.Classify(err)
	}
	next := store.Asked(w.id)
	if s := is.Start(next); s != nil {
		return s.Kind == record.Retry, nil
	}
	for _, a := range is.Asked {
		if a.ID == next {
			return a.Kind == record.Retry, nil
		}
	}
	after, ok, err := store.ResultOf(ctx, client, w.job, next)
	return ok && after.Kind == record.Retry, cli.Classify(err)
}

// untaken ends waiting for what nobody has taken, and nobody has given up: no node is there to do so.
func (w *awaited) untaken(ctx context.Context, client *clientv3.Client) error {
	is, err := store.Look(ctx, client, w.job)
	if err != nil {
		return cli.Classify(err)
	}
	for _, a := range is.Asked {
		if a.ID == w.id {
			return refuse(hold.ErrNotAcquired, "nobody has taken %s/%s, and %d nodes are registered; the request stays until one records it as missed",
				w.job, w.id, len(is.Peers))
		}
	}
	return nil
}
