package coord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Term is one time of leading, from the moment it was proven to the moment it is resigned or lost.
//
// A Term says what its holder may believe, not what others do: a process that is stopped, or a machine
// that is frozen, can act after its term without having noticed. Whatever must not be written twice is
// protected by comparing Token where it is stored.
type Term struct {
	s     *Session
	claim *claim
	keys  TermKeys
	once  sync.Once // of letting the session off
	goOn  sync.Once // of releasing in the background
}

// Context ends when the term does. Its cause wraps ErrTermLost, ErrSessionLost, ErrClosed or ErrResigned.
func (t *Term) Context() context.Context { return t.claim.ctx }

// Lost is closed when the term is over, for whatever reason.
func (t *Term) Lost() <-chan struct{} { return t.claim.ctx.Done() }

// Token is the fencing token: the create revision of the winning key. It rises with every term, over all
// elections of one etcd cluster.
func (t *Term) Token() uint64 { return uint64(t.keys.Rev) }

// Deadlines are the moments, on the session's clock, at which the term counts as lost and at which the
// work done under it must be over, if no verified renewal moves them first.
func (t *Term) Deadlines() (term, kill time.Duration) { return t.s.Deadlines() }

// Deadline is the second of Deadlines as wall-clock time, for people.
func (t *Term) Deadline() time.Time { return t.s.Deadline() }

// Renewed yields after the deadlines rose; see [Session.Renewed].
func (t *Term) Renewed() <-chan struct{} { return t.s.Renewed() }

// Check judges the term by the clock, without asking etcd: nil, or why it is over. Call it before each
// step that assumes leadership; what it says is true for the moment it is said.
func (t *Term) Check() error {
	_ = t.s.Check() // judges the clock, and ends the claim with the session
	return context.Cause(t.claim.ctx)
}

// Verify asks etcd, linearizably, whether the term still stands, and loses it if not. An error that does
// not wrap ErrTermLost or ErrSessionLost says that etcd could not be asked.
func (t *Term) Verify(ctx context.Context) error {
	if err := t.Check(); err != nil {
		return err
	}
	try, cancel := t.s.try(ctx)
	defer cancel()
	got, err := t.s.cli.Get(try, t.keys.Key)
	if err != nil {
		return fmt.Errorf("verify term: %w", err)
	}
	if why := t.claim.mine(only(got)); why != nil {
		t.claim.lose(why)
	}
	return t.Check()
}

// Cmp is a compare for the caller's own Txn: it holds while this term does.
func (t *Term) Cmp() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(t.keys.Key), "=", t.keys.Rev)
}

// Keys names what the term owns in etcd: enough for another process to end it.
func (t *Term) Keys() TermKeys { return t.keys }

// begin makes a won candidate a term. From here on only proofs count for the session; where the last one
// is too old to begin with, the next is waited for.
func (c *candidate) begin(ctx context.Context) (*Term, error) {
	s := c.s
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, c.leave(err) // won too late: the caller has gone
		}
		s.mu.Lock()
		fresh := s.check() == nil && s.clock() < s.proven+s.bounds.Term
		lost := context.Cause(c.claim.ctx)
		if fresh && lost == nil {
			s.holds++
		}
		s.mu.Unlock()
		switch {
		case lost != nil:
			return nil, c.leave(lost)
		case fresh:
			// From here on plain renewals count for nothing: the watchdog may have slept by one.
			s.judge()
			return &Term{s: s, claim: c.claim, keys: c.keys()}, nil
		}
		s.renewNow()
		select {
		case <-s.renewed:
		case <-c.claim.ctx.Done():
		case <-ctx.Done():
		}
	}
}

// end gives the term up and says so in etcd. The first to call it lets the session off.
func (t *Term) end(ctx context.Context, how End) error {
	lost := context.Cause(t.claim.ctx)
	t.claim.drop(ErrResigned)
	t.once.Do(func() {
		t.s.mu.Lock()
		t.s.holds--
		t.s.mu.Unlock()
	})
	if how == EndReleased && (errors.Is(lost, ErrTermLost) || errors.Is(lost, ErrSessionLost)) {
		how = EndLost
	}
	return t.s.release(ctx, t.keys, how)
}

// End is how a hold ended, as the last record tells it.
type End string

const (
	EndReleased End = "released" // given up by its holder, its work over
	EndLost     End = "lost"     // lost first; then its work ended
	EndExpired  End = "expired"  // nobody said: a successor waited until it had to be over
)

// TermKeys names what one term owns in etcd. It survives JSON, so that a second process can end the term
// of one that died; it holds no secrets.
type TermKeys struct {
	Key     string           `json:"key"`
	Rev     int64            `json:"rev"` // create revision of Key: the token
	Lease   clientv3.LeaseID `json:"lease"`
	N       int64            `json:"n"`                  // which attempt of its session: names the record, with Lease
	Open    string           `json:"open,omitempty"`     // open record; "" without settling
	OpenRev int64            `json:"open_rev,omitempty"` // its mod revision; 0: not known to be open
	Last    string           `json:"last,omitempty"`
	Holder  json.RawMessage  `json:"holder,omitempty"`
}

// Release deletes the key, if it is still this term's, and closes the record, if it is still this
// term's, in one Txn; then it revokes the lease. It is called when the work done under the term is over,
// by whoever knows that. It may be repeated; it retries until the answer is definite or ctx ends.
func (k TermKeys) Release(ctx context.Context, cli *clientv3.Client, how End) error {
	if err := k.release(ctx, cli, how, true, releaseTry); err != nil {
		return err
	}
	try, cancel := context.WithTimeout(ctx, releaseTry)
	defer cancel()
	if _, err := cli.Revoke(try, k.Lease); err != nil && !definite(err) {
		return fmt.Errorf("revoke lease %x: %w", int64(k.Lease), err)
	}
	return nil
}

// CloseRecord closes the record alone, if it is still this term's, and leaves the key to its owner.
func (k TermKeys) CloseRecord(ctx context.Context, cli *clientv3.Client, how End) error {
	return k.release(ctx, cli, how, false, releaseTry)
}

// releaseTry bounds one request of a release that has no session to take a bound from.
const releaseTry = 2500 * time.Millisecond

// releaseOn goes on releasing for as long as the session lives.
func (s *Session) releaseOn(k TermKeys, how End) {
	s.spawn(func() {}, func() { _ = k.release(s.ctx, s.cli, how, true, s.tryFor()) })
}

// release of a session's own keys: the context bounds it, but it is tried once even where that has ended.
func (s *Session) release(ctx context.Context, k TermKeys, how End) error {
	return k.release(ctx, s.cli, how, true, s.tryFor())
}

// release is the one Txn that ends a hold, repeated until nothing of the term is left, or ctx ends after
// the first try. A Txn whose reply was lost is found out by the next one.
func (k TermKeys) release(ctx context.Context, cli *clientv3.Client, how End, withKey bool, bound time.Duration) error {
	pause := backoff{low: 20 * time.Millisecond, high: time.Second}
	for {
		try, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
		left, err := k.releaseOnce(try, cli, how, withKey)
		cancel()
		switch {
		case err == nil && left == (leftover{}):
			return nil
		case err == nil:
			withKey, k.OpenRev = left.key, left.record
		case errors.Is(err, rpctypes.ErrNoSpace) && k.Last != "":
			k.Last = "" // an etcd that is full deletes, but takes no word of how it ended
		case definite(err) || !pause.pause(ctx):
			return fmt.Errorf("release %q: %w: %w", k.Key, ErrUndecided, err)
		}
	}
}

// leftover is what a look after a release found of the term.
type leftover struct {
	key    bool  // the key stands, and was to go
	record int64 // mod revision of the record; 0: closed, or another hold's
}

// releaseOnce deletes what the term owns, guarded by what is known of it: the key by its create revision
// and lease, the record by its mod revision. The record does not wait for the key: where the lease was
// revoked a moment before, one Txn still closes it. What is not known to be gone then is looked at.
func (k TermKeys) releaseOnce(ctx context.Context, cli *clientv3.Client, how End, withKey bool) (leftover, error) {
	var cmps []clientv3.Cmp
	var then []clientv3.Op
	if withKey {
		cmps = []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(k.Key), "=", k.Rev),
			clientv3.Compare(clientv3.LeaseValue(k.Key), "=", k.Lease)}
		then = []clientv3.Op{clientv3.OpDelete(k.Key)}
	}
	if k.OpenRev != 0 {
		if withKey {
			then = []clientv3.Op{clientv3.OpTxn(cmps, then, nil)}
		}
		cmps = []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(k.Open), "=", k.OpenRev)}
		then = append(then, clientv3.OpDelete(k.Open))
		if k.Last != "" {
			then = append(then, clientv3.OpPut(k.Last, encodeEnd(k.Rev, k.Holder, how)))
		}
	}
	look := []clientv3.Op{clientv3.OpGet(k.Key)}
	unknown := k.Open != "" && k.OpenRev == 0 // a record that may be there all the same
	if k.Open != "" {
		look = append(look, clientv3.OpGet(k.Open))
	}
	if unknown || len(then) == 0 {
		then = append(then, look...)
	}
	got, err := cli.Txn(ctx).If(cmps...).Then(then...).Else(look...).Commit()
	switch {
	case err != nil:
		return leftover{}, err
	case got.Succeeded && !unknown && len(cmps) > 0:
		return leftover{}, nil // all that is known to be the term's is gone
	}

	// The look is the last of the replies.
	replies := got.Responses[len(got.Responses)-len(look):]
	var left leftover
	if kv := first(replies[0]); withKey && kv != nil && kv.CreateRevision == k.Rev && kv.Lease == int64(k.Lease) {
		left.key = true
	}
	if k.Open != "" {
		if rec := DecodeRecord(first(replies[1]), time.Second); rec.of(k.Lease, k.N) {
			left.record = rec.mod
		}
	}
	return left, nil
}

// Ended says how the last hold of a name ended. After a hold of a foreign client, which writes none of
// this, it is about the hold before: compare Token with the keys seen.
type Ended struct {
	Token  uint64
	Holder string // hostile until escaped
	How    End
	At     time.Time
}

// wireEnd is the JSON of a last record.
type wireEnd struct {
	Rev    int64           `json:"rev"`
	Holder json.RawMessage `json:"holder,omitempty"`
	How    End             `json:"how"`
	At     time.Time       `json:"at"`
}

func encodeEnd(rev int64, holder json.RawMessage, how End) string {
	raw, _ := json.Marshal(wireEnd{Rev: rev, Holder: holder, How: how, At: time.Now().UTC().Truncate(time.Second)})
	return string(raw)
}

// LastEnd reads how the last hold ended. found is false where nothing, or nothing readable, is stored.
func LastEnd(ctx context.Context, cli *clientv3.Client, o SettleOptions) (end Ended, found bool, err error) {
	got, err := cli.Get(ctx, o.Last)
	if err != nil {
		return Ended{}, false, fmt.Errorf("read last end: %w", err)
	}
	var w wireEnd
	if len(got.Kvs) == 0 || json.Unmarshal(got.Kvs[0].Value, &w) != nil {
		return Ended{}, false, nil
	}
	return Ended{Token: uint64(w.Rev), Holder: unembed(w.Holder), How: w.How, At: w.At}, true, nil
}
