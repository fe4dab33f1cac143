package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
)

// Store asks etcd on behalf of one daemon.
type Store struct {
	client  *clientv3.Client
	buckets *buckets
	joint   *joint
}

// New makes a Store. mono is a clock that nobody sets. The client stays the caller's.
func New(client *clientv3.Client, mono func() time.Duration) *Store {
	return &Store{
		client: client, buckets: &buckets{client: client, now: mono, all: map[time.Duration]*bucket{}},
		joint: &joint{client: client, wait: jointWait, turn: make(chan struct{}, 1)},
	}
}

// Ground is what a decision rests on: where any of it has changed, nothing is written.
type Ground struct {
	Job      string
	SpecRev  int64
	PauseRev int64 // mod revision of the cluster's pause; 0: there is none
	// Cursor, if not nil, is moved; CursorRev is the mod revision of the one before, 0: there was none.
	Cursor    *record.Cursor
	CursorRev int64
	// Want, if its Rev is not 0, is a request that is met or given up, and deleted.
	Want    record.ID
	WantRev int64
	// Keep is how long the claim stays: longer than anybody may doubt it. Retain is how long a result does.
	Keep, Retain time.Duration
}

// Start is a claim that starts something.
type Start struct {
	Ground
	ID    record.ID
	Fire  record.Fire
	Open  record.Open
	Host  string
	Lease clientv3.LeaseID // of the session: the run marker goes with it
	Alone bool             // nothing of the job may be open
}

// Claim claims a start. It returns the revision, which is the token, and whether it was won. An error is either a refusal, with
// nothing written, or wraps ErrUndecided.
func (s *Store) Claim(ctx context.Context, c Start) (rev int64, won bool, err error) {
	cmps := c.compares(c.ID)
	cmps = append(cmps, absent(record.Drains+c.Host))
	if c.Alone {
		cmps = append(cmps, absent(record.OpenRange(c.Job, c.ID.Host)).WithPrefix())
	}
	open := record.Encode(c.Open)
	return s.commit(ctx, c.Job, []time.Duration{c.Keep}, func(bucket []clientv3.LeaseID) ([]clientv3.Cmp, []clientv3.Op) {
		return cmps, append(c.ops(c.ID),
			clientv3.OpPut(record.Key(record.Fires, c.Job, c.ID), record.Encode(c.Fire), clientv3.WithLease(bucket[0])),
			clientv3.OpPut(record.Key(record.Runs, c.Job, c.ID), open, clientv3.WithLease(c.Lease)),
			clientv3.OpPut(record.OpenKey(c.Job, c.ID), open),
		)
	})
}

// Verdict is a decision that nothing is started, or not yet.
type Verdict struct {
	Ground
	ID   record.ID
	Fire record.Fire
	// Result is its record; nil: it comes later.
	Result *record.Result
	// Behind, if its revision is not 0, is the open record because of which it is so.
	Behind    record.ID
	BehindRev int64
	// Ask is a request that is put in its place, with the first number that nothing has.
	Ask   *record.Want
	AskID record.ID // set by Decide
	// Superseded is the result of the request that Want names, whose place this one takes; nil: there is none.
	Superseded *record.Result
	// Kill asks for the end of what is in the way, which is Behind.
	Kill *record.Kill
}

// Asked is the number that a request has which takes the place of a start.
func Asked(id record.ID) record.ID { id.N++; return id }

// Decide records a verdict. Where the number of its request is taken, it takes the next one, and says so in v.AskID.
func (s *Store) Decide(ctx context.Context, v *Verdict) (rev int64, won bool, err error) {
	v.AskID = Asked(v.ID)
	for range askTries {
		rev, won, err = s.decide(ctx, v)
		if won || err != nil || v.Ask == nil {
			return rev, won, err
		}
		free, err := s.free(ctx, v.Job, v.AskID)
		if free || err != nil {
			return rev, false, err
		}
		v.AskID.N++
	}
	return rev, false, nil
}

// free reports whether nothing has an id yet.
func (s *Store) free(ctx context.Context, job string, id record.ID) (bool, error) {
	got, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(record.Key(record.Fires, job, id), clientv3.WithCountOnly()),
		clientv3.OpGet(record.Key(record.Wants, job, id), clientv3.WithCountOnly()),
	).Commit()
	if err != nil {
		return false, fmt.Errorf("read claims: %w", err)
	}
	return got.Responses[0].GetResponseRange().Count+got.Responses[1].GetResponseRange().Count == 0, nil
}

func (s *Store) decide(ctx context.Context, v *Verdict) (rev int64, won bool, err error) {
	cmps := v.compares(v.ID)
	if v.BehindRev != 0 {
		cmps = append(cmps, clientv3.Compare(clientv3.CreateRevision(record.OpenKey(v.Job, v.Behind)), "=", v.BehindRev))
	}
	if v.Ask != nil {
		cmps = append(cmps, unused(v.Job, v.AskID)...)
	}
	return s.commit(ctx, v.Job, []time.Duration{v.Keep, v.Retain}, func(bucket []clientv3.LeaseID) ([]clientv3.Cmp, []clientv3.Op) {
		claims, results := clientv3.WithLease(bucket[0]), clientv3.WithLease(bucket[1])
		ops := append(v.ops(v.ID), clientv3.OpPut(record.Key(record.Fires, v.Job, v.ID), record.Encode(v.Fire), claims))
		for _, r := range []*record.Result{v.Result, v.Superseded} {
			if r != nil {
				ops = append(ops, clientv3.OpPut(record.Results+r.RunID, record.Encode(r), results))
			}
		}
		if v.Ask != nil {
			ops = append(ops, clientv3.OpPut(record.Key(record.Wants, v.Job, v.AskID), record.Encode(v.Ask)))
		}
		if v.Kill != nil {
			ops = append(ops, clientv3.OpPut(record.Key(record.Kills, v.Job, v.Behind), record.Encode(v.Kill), claims))
		}
		return cmps, ops
	})
}

// unused are the conditions under which an id may be given to a request.
func unused(job string, id record.ID) []clientv3.Cmp {
	return []clientv3.Cmp{absent(record.Key(record.Fires, job, id)), absent(record.Key(record.Wants, job, id))}
}

func (g *Ground) compares(id record.ID) []clientv3.Cmp {
	cmps := []clientv3.Cmp{
		absent(record.Key(record.Fires, g.Job, id)),
		clientv3.Compare(clientv3.ModRevision(record.JobKey(g.Job)), "=", g.SpecRev),
		clientv3.Compare(clientv3.ModRevision(record.Pause), "=", g.PauseRev),
	}
	if g.Cursor != nil {
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(record.CursorKey(g.Job, id.Host)), "=", g.CursorRev))
	}
	if g.WantRev != 0 {
		cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(record.Key(record.Wants, g.Job, g.Want)), "=", g.WantRev))
	}
	return cmps
}

// ops move the cursor of the host that the id is about, and delete the request.
func (g *Ground) ops(id record.ID) []clientv3.Op {
	var ops []clientv3.Op
	if g.Cursor != nil {
		ops = append(ops, clientv3.OpPut(record.CursorKey(g.Job, id.Host), record.Encode(g.Cursor)))
	}
	if g.WantRev != 0 {
		ops = append(ops, clientv3.OpDelete(record.Key(record.Wants, g.Job, g.Want)))
	}
	return ops
}

func absent(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
}

// ErrUndecided is returned when nobody knows whether a transaction was committed, or will be.
var ErrUndecided = errors.New("cron: outcome unknown")

// commit makes a transaction about a job that puts keys on leases of these times.
func (s *Store) commit(
	ctx context.Context, job string, times []time.Duration, txn func([]clientv3.LeaseID) ([]clientv3.Cmp, []clientv3.Op),
) (rev int64, won bool, err error) {
	err = s.buckets.on(ctx, times, func(leases []clientv3.LeaseID) error {
		cmps, ops := txn(leases)
		rev, won, err = s.joint.commit(ctx, job, cmps, ops)
		return err
	})
	return rev, won, err
}

// decided tells a refusal from an outcome that is not known.
func decided(err error) error {
	var refused rpctypes.EtcdError
	if errors.As(err, &refused) && definite(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUndecided, err)
}

// definite reports whether a refusal says that nothing was committed. Of a request that timed out within etcd nobody knows.
func definite(err error) bool {
	for _, no := range []error{
		rpctypes.ErrNoSpace, rpctypes.ErrLeaseNotFound, rpctypes.ErrPermissionDenied, rpctypes.ErrTooManyOps, rpctypes.ErrRequestTooLarge,
		rpctypes.ErrInvalidAuthToken, rpctypes.ErrUserEmpty, rpctypes.ErrTooManyRequests, rpctypes.ErrCorrupt,
	} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// Fired reads whose a claim is, linearizably. rev is its create revision; 0: nobody's, as of now.
func (s *Store) Fired(ctx context.Context, job string, id record.ID) (fire record.Fire, rev int64, err error) {
	got, err := s.client.Get(ctx, record.Key(record.Fires, job, id))
	if err != nil {
		return record.Fire{}, 0, fmt.Errorf("read claim: %w", err)
	}
	if len(got.Kvs) == 0 {
		return record.Fire{}, 0, nil
	}
	fire, _ = record.Decode[record.Fire](got.Kvs[0].Value)
	return fire, got.Kvs[0].CreateRevision, nil
}
