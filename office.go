package coord

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// office is the exclusion among the elections of one session for one prefix: they would share one key,
// since the key's name is the lease's. Whoever has the turn may have a key there. A session keeps an office
// only while somebody has its turn or waits for it.
type office struct {
	turn  chan struct{} // full while somebody has the turn
	users int           // who has it or waits for it (the session's mu)
}

// visit makes the caller a user of the office of prefix.
func (s *Session) visit(prefix string) *office {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.offices[prefix]
	if o == nil {
		o = &office{turn: make(chan struct{}, 1)}
		s.offices[prefix] = o
	}
	o.users++
	return o
}

// part ends what visit began, and returns the office.
func (s *Session) part(prefix string) *office {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.offices[prefix]
	if o.users--; o.users == 0 {
		delete(s.offices, prefix)
	}
	return o
}

// tryEnter takes the turn at prefix if it is free.
func (s *Session) tryEnter(prefix string) bool {
	select {
	case s.visit(prefix).turn <- struct{}{}:
		return true
	default:
		s.part(prefix)
		return false
	}
}

// enter waits for the turn at prefix.
func (s *Session) enter(ctx context.Context, prefix string) error {
	select {
	case s.visit(prefix).turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		s.part(prefix)
		return context.Cause(ctx)
	case <-s.ctx.Done():
		s.part(prefix)
		return context.Cause(s.ctx)
	}
}

// exit gives the turn back.
func (s *Session) exit(prefix string) { <-s.part(prefix).turn }

// handBack passes the turn on after an attempt that did not win, with its error and what it owned; left says that
// its own key existed and may still. A key whose fate is unknown keeps the turn until that is definite.
func (s *Session) handBack(left bool, owned TermKeys, err error, exit func()) {
	switch {
	case left:
		s.burn(owned, false, exit)
	case errors.Is(err, ErrUndecided):
		s.burn(owned, true, exit)
	default:
		exit()
	}
}

// burn takes over a key whose fate is unknown, with the office's turn: nobody campaigns for it until it
// is definite, which may be when the session ends; a record that the attempt left is closed then. put says
// that a put may still land; else a delete may not have. A session with nothing else on it renews no more, so
// that the TTL bounds it.
func (s *Session) burn(k TermKeys, put bool, settled func()) {
	s.muteIfIdle()
	s.spawn(func() { s.closeRecord(k); settled() }, func() {
		pause := backoff{low: s.bounds.TTL / 100, high: s.bounds.Renew}
		for s.ctx.Err() == nil {
			at, there, err := s.deleteOwn(k)
			switch {
			case err != nil:
				pause.pause(s.ctx)
			case there || !put:
				return
			default:
				// Until the key lands: then it is no longer absent.
				awaitEnd(s.ctx, s, k.Key, at+1, func(kv *mvccpb.KeyValue) bool { return kv == nil })
			}
		}
	})
}

// closeRecord closes the record that an attempt left without ever having led, as far as etcd lets it.
func (s *Session) closeRecord(k TermKeys) {
	ctx, cancel := s.cleanup()
	defer cancel()
	k.Last = "" // nobody led
	// What cannot be closed is settled by whoever comes.
	_ = k.release(ctx, s.cli, EndReleased, false, s.tryFor())
}

// deleteOwn deletes the key of k if it is on the session's lease, and reports whether it was; and so the slot's.
func (s *Session) deleteOwn(k TermKeys) (rev int64, there bool, err error) {
	try, cancel := s.try(context.Background())
	defer cancel()
	var slot []clientv3.Op
	if k.Slot != "" {
		slot = []clientv3.Op{clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.LeaseValue(k.Slot), "=", s.lease)}, []clientv3.Op{clientv3.OpDelete(k.Slot)}, nil)}
	}
	got, err := s.cli.Txn(try).
		If(clientv3.Compare(clientv3.LeaseValue(k.Key), "=", s.lease)).
		Then(append(slot, clientv3.OpDelete(k.Key))...).Else(append(slot, clientv3.OpGet(k.Key))...).Commit()
	if err != nil {
		return 0, false, err
	}
	return got.Header.Revision, got.Succeeded, nil
}
