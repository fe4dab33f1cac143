package live

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/view"
)

// LookJobs reads what runs of some jobs, or of all where none are named, and what is paused, linearizably and at one revision. It takes
// permission to read the [view.RosterRanges] of each.
func LookJobs(ctx context.Context, client *clientv3.Client, jobs ...string) (*view.Roster, error) {
	if len(jobs) == 0 {
		jobs = []string{""}
	}
	for try := 1; ; try++ {
		r, err := readRoster(ctx, client, jobs)
		if err == nil || try == lookTries || !errors.Is(err, rpctypes.ErrCompacted) {
			return r, err
		}
	}
}

func readRoster(ctx context.Context, client *clientv3.Client, jobs []string) (*view.Roster, error) {
	roster, rev := view.NewRoster(), int64(0)
	take := func(kv *mvccpb.KeyValue) { roster.Put(string(kv.Key), kv.Value, kv.CreateRevision) }
	for _, job := range jobs {
		for _, r := range view.RosterRanges(job) {
			end := clientv3.GetPrefixRangeEnd(r)
			if !strings.HasSuffix(r, "/") && !strings.HasSuffix(r, "@") {
				end = r + "\x00"
			}
			at, err := readPages(ctx, client, r, end, jobPage, rev, take)
			if err != nil {
				return nil, fmt.Errorf("read what is below %s: %w", r, err)
			}
			rev = at
		}
	}
	return roster, nil
}

// RosterTurn is called with what there is of a Roster. It is lent until the call returns. An error ends the following, and is returned.
type RosterTurn func(r *view.Roster) error

// FollowRuns tells what runs, and whether the cluster is paused, each time that this may have changed, until ctx ends, as FollowAll
// does. A start and its end are each told as a whole. It takes permission to read record.Root.
func FollowRuns(ctx context.Context, client *clientv3.Client, o FollowOptions, turn RosterTurn) error {
	return newRelay(o).run(ctx, client, runs(), &reporter{turn: turn, roster: view.NewRoster()})
}

// runs is where the markers and the open records of runs lie, beside each other, with what else is state: behind claims, jobs and
// results.
func runs() span { return span{record.Runs, clientv3.GetPrefixRangeEnd(record.Root)} }

// FollowPauses tells which jobs are paused, each time that a job was changed, until ctx ends, as FollowAll does. It takes permission
// to read record.Jobs.
func FollowPauses(ctx context.Context, client *clientv3.Client, o FollowOptions, turn RosterTurn) error {
	return newRelay(o).run(ctx, client, span{from: record.Jobs}, &reporter{turn: turn, roster: view.NewRoster()})
}

// reporter is the pupil of FollowRuns and FollowPauses.
type reporter struct {
	turn   RosterTurn
	roster *view.Roster
}

func (r *reporter) list(_ context.Context, all []*mvccpb.KeyValue, _ int64) error {
	r.roster = view.NewRoster()
	for _, kv := range all {
		r.roster.Put(string(kv.Key), kv.Value, kv.CreateRevision)
	}
	return r.turn(r.roster)
}

func (r *reporter) events(_ context.Context, events []*clientv3.Event, _ int64) error {
	changed := false
	for _, ev := range events {
		key := string(ev.Kv.Key)
		changed = changed || told(key)
		if ev.Type == clientv3.EventTypeDelete {
			r.roster.Delete(key)
		} else {
			r.roster.Put(key, ev.Kv.Value, ev.Kv.CreateRevision)
		}
	}
	if !changed {
		return nil
	}
	return r.turn(r.roster)
}

// told reports whether a key is one that a Roster is made of: the cards of nodes, written all the time, are not.
func told(key string) bool {
	for _, r := range view.RosterRanges("") {
		if strings.HasPrefix(key, r) {
			return true
		}
	}
	return false
}

func (r *reporter) prove(context.Context, int64) error { return nil }
func (r *reporter) hints() [2]clientv3.WatchChan       { return [2]clientv3.WatchChan{} }
func (r *reporter) unhint()                            {}
