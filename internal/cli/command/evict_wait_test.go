package command

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/hold"
)

// The next is who really holds next: not who is only first in the queue, and not who came later.
func TestTheTrueSuccessorIsNamed(t *testing.T) {
	t.Parallel()
	t.Run("who never begins is passed over", func(t *testing.T) {
		t.Parallel()
		onStage(t, 0, func(s *stage) {
			s.holds(ann)
			s.joins(bob)
			s.joins(cat)
			s.evict()
			s.leaves(ann, hold.EndEvicted)
			s.waits()
			s.commit(clientv3.OpDelete(s.key(bob))) // it was dead
			s.waits()
			s.opens(cat)
			s.answers(nil, "(evicted)", "held by c pid 1")
		})
	})
	t.Run("whose time was short is not", func(t *testing.T) {
		t.Parallel()
		onStage(t, 0, func(s *stage) {
			s.holds(ann)
			s.joins(bob)
			s.joins(cat)
			s.evict()
			s.m.HoldWatches(true) // all of it happens before anything is heard
			s.leaves(ann, hold.EndEvicted)
			s.opens(bob)
			s.leaves(bob, hold.EndReleased)
			s.opens(cat)
			s.m.HoldWatches(false)
			s.answers(nil, "(evicted)", "held by b pid 1")
		})
	})
	t.Run("who settled and held for a moment is not", func(t *testing.T) {
		t.Parallel()
		onStage(t, 0, func(s *stage) {
			s.holds(ann)
			s.joins(bob)
			s.joins(cat)
			s.evict()
			s.m.HoldWatches(true)
			s.commit(clientv3.OpDelete(s.key(ann)))
			s.opens(bob)
			s.leaves(bob, hold.EndReleased)
			s.opens(cat)
			s.m.HoldWatches(false)
			s.answers(nil, "held by b pid 1")
		})
	})
	t.Run("who got another slot first", func(t *testing.T) {
		t.Parallel()
		onStage(t, 2, func(s *stage) {
			s.holds(ann)
			s.holds(bob)
			next, later := actor{"c", 9, 1}, actor{"d", 10, 0}
			s.joins(next)
			s.joins(later)
			s.evict("--slot", "0")
			s.m.HoldWatches(true)
			s.leaves(ann, hold.EndEvicted)
			s.leaves(bob, hold.EndReleased)
			s.opens(next)
			s.opens(later)
			s.m.HoldWatches(false)
			s.answers(nil, "slot 0 by a pid 1", "held by slot 1 by c pid 1")
		})
	})
	t.Run("nobody, when who waits for the slot has gone", func(t *testing.T) {
		t.Parallel()
		onStage(t, 1, func(s *stage) {
			s.holds(ann)
			s.joins(bob)
			s.evict()
			s.leaves(ann, hold.EndEvicted)
			s.waits()
			s.commit(clientv3.OpDelete(s.key(bob)))
			s.answers(nil, "(evicted)", "nobody waits for the slot")
		})
	})
	t.Run("who has no record, when it outlives its lease", func(t *testing.T) {
		t.Parallel()
		onStage(t, 0, func(s *stage) {
			s.holds(ann)
			s.joins(bob)
			s.evict()
			s.leaves(ann, hold.EndEvicted)
			for range 3 { // it renews
				time.Sleep(20 * time.Second)
				if _, err := s.client.KeepAliveOnce(s.Context(), clientv3.LeaseID(bob.lease)); err != nil {
					s.Error(err)
				}
			}
			s.waits()
			s.answers(nil, "after 1m1s; held by b pid 1")
		})
	})
	t.Run("who has none, where nobody has one", func(t *testing.T) {
		t.Parallel()
		onStage(t, 0, func(s *stage) {
			s.joins(ann)
			s.joins(bob)
			s.evict()
			s.commit(clientv3.OpDelete(s.key(ann)))
			s.answers(nil, "(nobody has said how)", "held by b pid 1")
		})
	})
}

// Red when the keys are deleted unguarded, or not both, or the record with them.
func TestAHoldIsDeletedAndItsRecordStays(t *testing.T) {
	t.Parallel()
	for name, max := range map[string]int{"an office": 0, "a slot": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := actor{"b", 8, 0}
			onStage(t, max, func(s *stage) {
				s.holds(ann)
				s.joins(next)
				open, _ := s.records(ann)
				s.evict("--force", "--rev", fmt.Sprint(s.token(ann)))
				s.waits()
				if s.m.Get(s.key(ann)) != nil || max > 0 && s.m.Get(s.slotKey(ann)) != nil || s.m.Get(open) == nil || s.m.Get(s.key(next)) == nil {
					s.Errorf("there is %q", s.m.Keys(hold.Root))
				}
				time.Sleep(4 * time.Second) // the old child ends
				s.commit(clientv3.OpDelete(open))
				if max == 0 {
					s.waits()
				}
				s.opens(next)
				s.answers(nil, "after 4s; held by", "b pid 1")
				s.says("hold deleted", "msg=settling name="+s.name.Name+` holder="b pid 1" at_most=10s`)
			})
		})
	}
	t.Run("nobody comes", func(t *testing.T) {
		t.Parallel()
		onStage(t, 0, func(s *stage) {
			s.holds(ann)
			s.evict("--force", "--rev", fmt.Sprint(s.token(ann)))
			time.Sleep(3 * time.Second)
			s.waits()
			open, last := s.records(ann)
			s.commit(clientv3.OpDelete(open), clientv3.OpPut(last, `{"rev":2,"how":"lost","holder":`+ann.identity()+`}`))
			s.answers(nil, "(lost) after 3s; nobody holds it")
			s.says("hold deleted", "msg=settling name=o at_most=10s")
		})
	})
	// The slot's next holder comes at once to another slot; the old child is waited for all the same.
	t.Run("another slot is taken", func(t *testing.T) {
		t.Parallel()
		onStage(t, 2, func(s *stage) {
			s.holds(ann)
			s.joins(bob)
			s.evict("--force", "--rev", fmt.Sprint(s.token(ann)))
			s.opens(bob)
			time.Sleep(9 * time.Second)
			s.waits()
			s.answers(nil, "after 10s; held by slot 1 by b pid 1")
		})
	})
	t.Run("a record that cannot be read", func(t *testing.T) {
		t.Parallel()
		onStage(t, 0, func(s *stage) {
			s.joins(ann)
			open, _ := s.records(ann)
			s.commit(clientv3.OpPut(open, "?"))
			s.evict("--force", "--rev", fmt.Sprint(s.token(ann)))
			s.answers(nil, "after 10s; nobody holds it")
		})
	})
}

func TestAHolderThatDoesNotReactIsToldOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		happens func(s *stage)
		want    string
	}{
		"it renews": {func(s *stage) {
			if _, err := s.client.KeepAliveOnce(s.Context(), clientv3.LeaseID(ann.lease)); err != nil {
				s.Error(err)
			}
		}, "its command or its on-lose takes long, or it is a version that does not listen"},
		"it does not": {func(*stage) {}, "it does not renew its lease: it is stopped, or cut off from etcd, and loses the hold in "},
		"its on-lose has failed": {func(s *stage) {
			h := hold.NewHolder("a", 1, time.Time{}, nil)
			h.Fenced = true
			s.commit(clientv3.OpPut(s.key(ann), h.Encode(), clientv3.WithLease(clientv3.LeaseID(ann.lease))))
		}, "its on-lose failed: nobody is at work, and its lease runs out in "},
		"its lease is gone": {func(s *stage) {
			s.commit(clientv3.OpPut(s.key(ann), ann.identity())) // the key stays
			if err := s.m.Revoke(clientv3.LeaseID(ann.lease)); err != nil {
				s.Error(err)
			}
		}, "its lease cannot be looked at: the lease has run out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStage(t, 0, func(s *stage) {
				s.holds(ann)
				s.evict()
				time.Sleep(9 * time.Second)
				tt.happens(s)
				s.says("asked to leave")
				time.Sleep(time.Second)
				s.waits()
				time.Sleep(time.Second)
				s.leaves(ann, hold.EndEvicted)
				s.answers(nil, "(evicted) after 11s")
				s.says("asked to leave", tt.want)
				contains(t, s.stderr.String(), `level=WARN msg="still held" name=o holder="a pid 1" rev=2 dur=10s`, `force="conch evict elect o --force --rev 2"`)
			})
		})
	}
	t.Run("who has lost it is not", func(t *testing.T) {
		t.Parallel()
		onStage(t, 0, func(s *stage) {
			s.holds(ann)
			s.joins(bob)
			s.evict("--force", "--rev", fmt.Sprint(s.token(ann)))
			time.Sleep(11 * time.Second)
			s.opens(bob)
			s.answers(nil, "held by b")
			s.says("hold deleted", "settling")
		})
	})
}

func TestAWaitForAnEvictionThatRunsOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		happens func(s *stage)
		want    string
	}{
		"held":      {func(*stage) {}, "o is still held by a pid 1, token 2"},
		"settling":  {func(s *stage) { s.commit(clientv3.OpDelete(s.key(ann))) }, "a pid 1, token 2, has lost o, and b pid 1, token 4, waits for the end of an earlier hold"},
		"not begun": {func(s *stage) { s.leaves(ann, hold.EndEvicted) }, "a pid 1, token 2, has left o, and b pid 1, token 4, has not begun"},
		"vacant": {func(s *stage) {
			s.commit(clientv3.OpDelete(s.key(ann)), clientv3.OpDelete(s.key(bob)))
		}, "a pid 1, token 2, has lost o, and has not said that its child is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStage(t, 0, func(s *stage) {
				s.holds(ann)
				s.joins(bob)
				s.evict("--wait", "5s")
				tt.happens(s)
				s.answers(hold.ErrNotGone, "not handed over yet: after 5s "+tt.want+"; the request stays")
				if took := time.Since(s.began); took != 5*time.Second {
					s.Errorf("it took %v", took)
				}
				if s.m.Get(s.evictKey(ann)) == nil {
					s.Error("the request is gone")
				}
			})
		})
	}
	onStage(t, 0, func(s *stage) {
		s.holds(ann)
		s.evict("--wait", "0", "--force", "--rev", fmt.Sprint(s.token(ann)))
		s.answers(hold.ErrNotGone, "after 0s", "the hold stays deleted")
	})
}

func TestWhoWaitsNoMoreIsToldThatTheRequestStays(t *testing.T) {
	t.Parallel()
	why := errors.New("SIGINT")
	onStage(t, 0, func(s *stage) {
		s.holds(ann)
		s.evict()
		s.cancel(why)
		s.answers(why)
		s.says("asked to leave", "nobody waits any more: the request stays")
		if s.m.Get(s.evictKey(ann)) == nil {
			s.Error("the request is gone")
		}
	})
	onStage(t, 0, func(s *stage) {
		s.holds(ann)
		s.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: coordtest.Puts(s.evictKey(ann)), Action: coordtest.LoseReply(nil)})
		s.evict()
		s.cancel(why)
		s.answers(why)
		s.says("nobody waits any more: whether the request has arrived is not known")
	})
	onStage(t, 0, func(s *stage) {
		s.m.NoQuorum(true)
		s.evict()
		s.cancel(context.Canceled)
		s.answers(context.Canceled)
		s.says("")
	})
}
