package command

import (
	"context"
	"errors"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
)

// Times of a follower.
const (
	// probeEvery is how often a follower reads the leader although its watch says nothing: a watch on a member
	// that was stopped stays silent.
	probeEvery = 2 * time.Second
	// probeFor is how long a read may take before what is known counts as out of date.
	probeFor = 3 * time.Second
	// doubtsMost is how many probes in a row may contradict the watch before the queue is read anew.
	doubtsMost = 3
)

// follower tells every change of an office's leader, in order. It has no session and writes nothing: a question
// leaves no lease behind, and a user who may only read can ask it.
//
// It reads the queue once and then applies the events since, so that no change is skipped, however short the
// leader's time was. Only where the events are gone (compaction, a store whose history went back) it reads
// the queue again and tells the difference.
//
// A first in the queue that settles does not lead yet: see unsettled.go for how that is told.
type follower struct {
	client *clientv3.Client
	office string
	prefix string        // of its candidates, with the final slash
	every  time.Duration // probeEvery
	within time.Duration // probeFor

	patience int // doubts until the events that are missed are given up; see doubtsMost

	// say tells of a leader, the zero value where there is none; and of the earlier hold whose end it waits for before
	// it leads, nil where there is none.
	say    func(leader coord.Candidate, unsettled *openHold) error
	away   func(why error) // etcd does not answer: what was said may be out of date
	back   func()          // it answers again
	listen func() error    // with each probe: why nobody listens any more, if so

	queue  map[string]coord.Candidate
	rev    int64 // the queue is known up to this revision; 0: not known
	doubts int   // probes in a row that contradicted the watch
	gone   bool  // away was the last that was said of etcd
	told   bool  // last was said
	last   coord.Candidate

	unsettled *openHold // what was said last that it waits for
}

// run tells changes until ctx ends, or nobody wants to hear of them. What etcd does is no reason to end.
func (f *follower) run(ctx context.Context) error {
	for ctx.Err() == nil {
		// Where the events from here on are gone, or do not come, the difference has to do.
		if f.rev == 0 || f.doubts >= f.patience {
			f.again(ctx)
		}
		if f.rev != 0 {
			told, err := f.tell(ctx)
			if err == nil && told {
				err = f.watch(ctx)
			}
			if err != nil {
				return err
			}
		}
		// The watch has ended: is etcd away? Then, and also where watches end as soon as they are made, slowly.
		if err := f.check(ctx); err != nil {
			return err
		}
		select {
		case <-time.After(f.every / 8):
		case <-ctx.Done():
		}
	}
	return nil
}

// again reads the whole queue, as far as etcd answers.
func (f *follower) again(ctx context.Context) {
	try, cancel := context.WithTimeout(ctx, f.within)
	defer cancel()
	f.hear(ctx, f.list(try))
}

// list reads the whole queue, linearizably.
func (f *follower) list(ctx context.Context) error {
	got, err := f.client.Get(ctx, f.prefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	f.queue, f.rev, f.doubts = map[string]coord.Candidate{}, got.Header.Revision, 0
	for _, kv := range got.Kvs {
		f.put(coord.CandidateOf(kv))
	}
	return nil
}

// watch applies events until the watch ends, or a probe says that it cannot be believed.
func (f *follower) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := f.events(ctx, cancel, f.prefix, clientv3.WithPrefix())
	var record clientv3.WatchChan // nil while nothing has to be settled
	probe := time.NewTicker(f.every)
	defer probe.Stop()
	for {
		if f.unsettled != nil && record == nil {
			open, _ := hold.OfficeKeys(f.office)
			record = f.events(ctx, cancel, open.String())
		}
		select {
		case got, open := <-events:
			if got.CompactRevision != 0 {
				f.rev = 0
			}
			if !open || got.Err() != nil {
				return nil
			}
			if told, err := f.apply(ctx, got.Events); err != nil || !told {
				return err
			}
			continue
		case _, open := <-record:
			if !open {
				return nil
			}
		case <-probe.C:
		}
		// Two watches have no common order. So what the record's says is only a reason to look at both.
		if err := f.check(ctx); err != nil {
			return err
		}
		if f.rev == 0 || f.doubts > 0 {
			return nil
		}
	}
}

// events watches from behind what is known. The client waits without bound for a watch to be created: cancel ends that.
func (f *follower) events(ctx context.Context, cancel func(), key string, o ...clientv3.OpOption) clientv3.WatchChan {
	late := time.AfterFunc(f.within, cancel)
	defer late.Stop()
	return f.client.Watch(clientv3.WithRequireLeader(ctx), key, append(o, clientv3.WithRev(f.rev+1))...)
}

// apply takes events in. What happened in one step is one change. It stops at a change that could not be told: the
// next watch begins behind that one.
func (f *follower) apply(ctx context.Context, events []*clientv3.Event) (told bool, err error) {
	for i, ev := range events {
		if ev.Type == clientv3.EventTypeDelete {
			delete(f.queue, string(ev.Kv.Key))
		} else {
			f.put(coord.CandidateOf(ev.Kv))
		}
		f.rev, f.doubts = ev.Kv.ModRevision, 0
		if i+1 < len(events) && events[i+1].Kv.ModRevision == f.rev {
			continue
		}
		f.reached()
		if told, err := f.tell(ctx); err != nil || !told {
			return false, err
		}
	}
	return true, nil
}

// put takes a candidate in. A key of another election, nested in this one, is none.
func (f *follower) put(c coord.Candidate) {
	if !strings.Contains(c.Key[len(f.prefix):], "/") {
		f.queue[c.Key] = c
	}
}

// check asks etcd whether the watch can be believed. It is an error only where nobody listens any more.
func (f *follower) check(ctx context.Context) error {
	if err := f.listen(); err != nil {
		return err
	}
	try, cancel := context.WithTimeout(ctx, f.within)
	defer cancel()
	settled, err := f.probe(try)
	f.hear(ctx, err)
	if settled {
		return f.settled()
	}
	return nil
}

// hear takes in whether etcd answered.
func (f *follower) hear(ctx context.Context, err error) {
	switch {
	case err == nil:
		f.reached()
	case ctx.Err() == nil && !f.gone:
		f.gone = true
		f.away(err)
	}
}

func (f *follower) reached() {
	if f.gone {
		f.gone = false
		f.back()
	}
}

// probe compares the leader with what is known. A difference may be an event that is on its way, so it is
// only a doubt: the watch begins anew behind what it last told, and nothing is skipped. settled says that the
// leader that was told of waits for nothing any more.
func (f *follower) probe(ctx context.Context) (settled bool, err error) {
	open, _ := hold.OfficeKeys(f.office)
	got, err := f.client.Txn(ctx).Then(
		clientv3.OpGet(f.prefix, clientv3.WithFirstCreate()...), clientv3.OpGet(open.String()),
	).Commit()
	if err != nil {
		return false, err
	}
	leader := coord.Candidate{}
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		if leader = coord.CandidateOf(kv); strings.Contains(leader.Key[len(f.prefix):], "/") {
			return false, nil // nested, and older than any of ours: it says nothing
		}
	}
	switch {
	case got.Header.Revision < f.rev:
		f.rev = 0 // history went back: no event will come
	case leader != f.leader():
		f.doubts++
	default:
		f.doubts = 0
		settled = f.unsettled != nil && leader == f.last && unsettledBy(f.office, leader, got.Responses[1].GetResponseRange().Kvs) == nil
	}
	return settled, nil
}

// leader is the oldest candidate that is known, the zero value where there is none.
func (f *follower) leader() (oldest coord.Candidate) {
	for _, c := range f.queue {
		if oldest.Token == 0 || c.Token < oldest.Token {
			oldest = c
		}
	}
	return oldest
}

// errNobodyReads is why a follower ends whose output nobody reads any more.
var errNobodyReads = errors.New("nobody reads the output any more")
