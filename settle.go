package coord

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Settling: a hand-over is proved, not inferred.
//
// A key can vanish before its lease would have expired: an operator revokes or deletes it, or a leader
// that was paused resumes and revokes leases that were renewed elsewhere. The holder's work then still
// runs, at most to its own deadline. So a hold keeps an open record beside its key, without a lease, and
// the rules are:
//
//	(R1) The Txn that starts a hold opens the record, in one step with proving its key the oldest, and
//	     only where no other hold's record is open. A record of another hold is left as it is: the winner
//	     settles, and writes its own only then, guarded by its key and by that record's mod revision.
//	(R2) Settling waits the recorded hold's TTL, counted from the reply that first showed that hold's key
//	     gone. Whatever ends the settler, it touches no record that is not its own.
//	(R3) The holder's work is over by its deadline also after a known loss (whoever runs it sees to that).
//	(R4) A hold whose work is gone closes its record, also after a loss. The settler watches the record
//	     and goes on at once.
//	(R5) Natural expiry needs no further wait where it was seen coming: the first in the queue asks for
//	     the recorded lease's remaining time; an answer counts only if the holder had passed its point
//	     of no return by then, and when it has run out, the hold is over.

// SettleOptions turn settling on for an election. Both keys lie outside the election's prefix and carry
// no lease. The zero value turns it off: then a successor may start while a holder that lost its key
// early is still stopping.
type SettleOptions struct {
	Open string // the open record: present while a hold lasts
	Last string // how the last hold ended; it decides nothing
}

func (o SettleOptions) on() bool { return o.Open != "" }

// Record is an open record: about one hold, named by the lease that held and the number of the attempt
// among those of its session.
type Record struct {
	Lease clientv3.LeaseID
	N     int64
	TTL   time.Duration // granted to the holder
	Term  time.Duration // from here on the holder has no way back: its Bounds.Term, Bounds.Kill on a plain session
	// Holder is the identity of the holder, as it gave it. It comes from etcd: hostile until escaped.
	Holder string
	At     time.Time // the holder's wall clock; for people

	mod int64 // mod revision; 0: no record
}

// wireRecord is the JSON of a record.
type wireRecord struct {
	Lease  string          `json:"lease"`
	N      int64           `json:"n"`
	TTL    int64           `json:"ttl"`     // seconds
	TermMS int64           `json:"term_ms"` // milliseconds
	Holder json.RawMessage `json:"holder,omitempty"`
	At     time.Time       `json:"at"`
}

// encodeRecord is the record of attempt n of session s, by identity. Its term is where the holder has no way back: on a session
// that is renewed plainly while nothing is held, the first proof of a term may come as late as Kill (Session.left).
func encodeRecord(s *Session, n int64, identity string) string {
	term := s.bounds.Term
	if s.refresh > 0 {
		term = s.bounds.Kill
	}
	raw, _ := json.Marshal(wireRecord{ // of these types it cannot fail
		Lease: strconv.FormatInt(int64(s.lease), 16), N: n, TTL: int64(s.bounds.TTL / time.Second),
		TermMS: term.Milliseconds(), Holder: embed(identity), At: time.Now().UTC().Truncate(time.Second),
	})
	return string(raw)
}

// embed makes an identity part of a JSON value: as it is where it is JSON, else as a string.
func embed(identity string) json.RawMessage {
	if json.Valid([]byte(identity)) {
		return json.RawMessage(identity)
	}
	raw, _ := json.Marshal(identity)
	return raw
}

// unembed is the inverse of embed, as far as text goes.
func unembed(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// DecodeRecord reads an open record. What cannot be read is some hold all the same: it is settled for fallback,
// and no answer about a lease can shorten that; its Lease is 0.
func DecodeRecord(kv *mvccpb.KeyValue, fallback time.Duration) Record {
	if kv == nil {
		return Record{}
	}
	rec := Record{TTL: fallback, mod: kv.ModRevision}
	var w wireRecord
	if json.Unmarshal(kv.Value, &w) != nil {
		return rec
	}
	lease, err := strconv.ParseInt(w.Lease, 16, 64)
	if err != nil || w.TTL <= 0 || w.TTL > int64(maxTTL/time.Second) {
		return rec
	}
	rec.Lease, rec.N, rec.TTL = clientv3.LeaseID(lease), w.N, time.Duration(w.TTL)*time.Second
	rec.Term = time.Duration(w.TermMS) * time.Millisecond
	if w.TermMS <= 0 || rec.Term > rec.TTL {
		rec.Term = rec.TTL // no answer is low enough
	}
	// A holder that is longer than any of ours is not repeated: it would make the next record too big for etcd.
	if rec.At = w.At; len(w.Holder) <= maxHolder {
		rec.Holder = unembed(w.Holder)
	}
	return rec
}

// maxHolder bounds what is taken over of a recorded holder, in bytes.
const maxHolder = 4096

// of reports whether the record is about attempt n of the session with that lease, and no other.
func (r Record) of(lease clientv3.LeaseID, n int64) bool {
	return r.mod != 0 && r.Lease == lease && r.N == n
}

// settler is what one candidate knows of the record that stands in its way.
type settler struct {
	SettleOptions
	rec    Record
	gone   time.Duration // when a reply first showed the recorded hold's key gone; 0: not seen
	runOut time.Duration // when a counted answer runs out (R5); 0: no such answer
}

// see takes in a look at the record, and whether the key of its hold was still there.
func (t *settler) see(rec Record, there bool, at time.Duration) {
	if rec.mod != t.rec.mod {
		t.rec, t.gone, t.runOut = rec, 0, 0
	}
	switch {
	case rec.mod == 0 || there:
		t.gone = 0
	case t.gone == 0:
		t.gone = at
	}
}

// holds reports whether oldest is the key of the recorded hold. If that key is there at all it is the
// oldest, since it was when the record was opened; a key made after the record is a later hold's.
func holds(rec Record, oldest *mvccpb.KeyValue, prefix string) bool {
	return oldest != nil && string(oldest.Key) == candidateKey(prefix, rec.Lease) && oldest.CreateRevision <= rec.mod
}

// until is the moment from which on the recorded hold is over whatever it does (R2, R5).
func (t *settler) until() time.Duration {
	if over := t.gone + t.rec.TTL; t.runOut == 0 || over < t.runOut {
		return over
	}
	return t.runOut
}

// answer takes in what the recorded lease had left to live at some moment, rounded down to seconds; the
// zero answer is none.
func (t *settler) answer(a ttlAnswer) {
	t.runOut = 0
	if a.mod != 0 && a.mod == t.rec.mod && a.left <= t.rec.past() {
		t.runOut = a.at + a.left + time.Second
	}
}

// past is the most that an answer may say where it shows the holder past its point of no return. Up to a second more
// is left than an answer says, and the holder's clock may run slower than etcd's. Below 0, with a grace that is
// short for the TTL, no answer can show it.
func (r Record) past() time.Duration {
	return r.TTL - time.Duration(float64(r.Term)/(1-rateError)) - time.Second
}

// again is when to ask next after the answer a: every fifth of the TTL, and sooner where the next answer may count.
func (r Record) again(a ttlAnswer) time.Duration {
	pause := r.TTL / 5
	if early := a.left - r.past(); a.mod != 0 && early > 0 {
		pause = min(pause, max(early, r.TTL/20))
	}
	return pause
}

// ttlAnswer is what etcd said of a lease's remaining time.
type ttlAnswer struct {
	mod  int64         // of the record that was asked for
	left time.Duration // whole seconds, rounded down
	at   time.Duration // clock when the reply had arrived
}

// askTTL asks for the remaining time of the recorded lease. The answer counts only between two
// linearizable reads that show the hold's key, all three from one member in one raft term: a deposed
// leader would answer from what it last knew. Calls are spread over the members, so each is repeated
// until the member of the first answers again.
func (s *Session) askTTL(ctx context.Context, rec Record, key string) (ttlAnswer, error) {
	before, err := s.holderRead(ctx, key, rec, nil)
	if err != nil {
		return ttlAnswer{}, err
	}
	var left time.Duration
	var at time.Duration
	err = sameMember(before, func() (header, error) {
		try, cancel := s.try(ctx)
		defer cancel()
		got, err := s.cli.TimeToLive(try, rec.Lease)
		if err != nil {
			return nil, err
		}
		if got.TTL < 0 {
			return nil, ErrLeaseGone
		}
		left, at = time.Duration(got.TTL)*time.Second, s.clock()
		return got.ResponseHeader, nil
	})
	if err != nil {
		return ttlAnswer{}, err
	}
	if _, err := s.holderRead(ctx, key, rec, before); err != nil {
		return ttlAnswer{}, err
	}
	return ttlAnswer{mod: rec.mod, left: left, at: at}, nil
}

// holderRead reads the recorded hold's key linearizably, from the member of like where one is given.
func (s *Session) holderRead(ctx context.Context, key string, rec Record, like header) (header, error) {
	read := func() (header, error) {
		try, cancel := s.try(ctx)
		defer cancel()
		got, err := s.cli.Get(try, key)
		if err != nil {
			return nil, err
		}
		if len(got.Kvs) == 0 || got.Kvs[0].CreateRevision > rec.mod {
			return nil, ErrKeyGone
		}
		return got.Header, nil
	}
	if like == nil {
		return read()
	}
	return like, sameMember(like, read)
}

// sameMember calls until the reply comes from the member of like, in its term.
func sameMember(like header, call func() (header, error)) error {
	for range 16 {
		got, err := call()
		if err != nil {
			return err
		}
		if got.GetRaftTerm() != like.GetRaftTerm() {
			return fmt.Errorf("raft term went from %d to %d", like.GetRaftTerm(), got.GetRaftTerm())
		}
		if got.GetMemberId() == like.GetMemberId() {
			return nil
		}
	}
	return fmt.Errorf("member %x did not answer again", like.GetMemberId())
}
