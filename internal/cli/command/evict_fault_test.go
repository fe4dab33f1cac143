package command

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/hold"
)

// Whatever becomes of the transaction that asks: who is asked is who was meant, and whether it was asked is found out.
func TestARequestThatGoesWrong(t *testing.T) {
	t.Parallel()
	next := actor{"b", 8, 0}
	for name, tt := range map[string]struct {
		action func(s *stage) coordtest.Action
		asked  bool // the request is there
		then   func(s *stage)
		is     error
		want   string
	}{
		"nothing": {
			func(*stage) coordtest.Action { return coordtest.Delay(time.Second) }, true,
			func(s *stage) { s.leaves(ann, hold.EndEvicted) }, nil, "has left (evicted)",
		},
		"it does not arrive": {
			func(*stage) coordtest.Action { return coordtest.LoseRequest() }, true,
			func(s *stage) { s.leaves(ann, hold.EndEvicted) }, nil, "has left (evicted)",
		},
		"its reply is lost": {
			func(*stage) coordtest.Action { return coordtest.LoseReply(nil) }, true,
			func(s *stage) { s.leaves(ann, hold.EndEvicted) }, nil, "has left (evicted)",
		},
		"its connection is": {
			func(*stage) coordtest.Action { return coordtest.LoseReply(coordtest.Unavailable("reset")) }, true,
			func(s *stage) { s.leaves(ann, hold.EndEvicted) }, nil, "has left (evicted)",
		},
		// The second attempt finds nobody: the first was heard.
		"its reply is lost, and the holder has left before it is repeated": {
			func(s *stage) coordtest.Action {
				return func(c *coordtest.Call) (proto.Message, error) {
					_, err := c.Commit(c.Context)
					s.leaves(ann, hold.EndEvicted)
					<-c.Context.Done()
					return nil, err
				}
			}, true, nil, nil, "has left (evicted)",
		},
		"the holder leaves before it arrives": {
			func(s *stage) coordtest.Action {
				return coordtest.Before(func() { s.leaves(ann, hold.EndReleased) })
			}, false, nil, hold.ErrNotEvicted, "left before it was asked; nobody holds",
		},
		"somebody else holds when it arrives": {
			func(s *stage) coordtest.Action {
				return coordtest.Before(func() { s.leaves(ann, hold.EndReleased); s.holds(next) })
			}, false, nil, hold.ErrNotEvicted, "a pid 1, token %d, left before it was asked; %s is held by",
		},
		"the same lease holds again when it arrives": {
			func(s *stage) coordtest.Action {
				return coordtest.Before(func() {
					s.leaves(ann, hold.EndReleased)
					s.queues(ann)
					s.opens(ann)
				})
			}, false, nil, hold.ErrNotEvicted, "a pid 1, token %d, left before it was asked; %s is held by",
		},
		"the place in the queue is lost when it arrives": {
			func(s *stage) coordtest.Action {
				return coordtest.Before(func() { s.commit(clientv3.OpDelete(s.key(ann))) })
			}, false, nil, hold.ErrNotEvicted, "left before it was asked",
		},
		"the keys are on another lease when it arrives": {
			func(s *stage) coordtest.Action {
				return coordtest.Before(func() {
					if _, err := s.m.Grant(70, 60); err != nil {
						s.Error(err)
					}
					for _, key := range s.m.Keys(hold.Root) {
						if s.m.Get(key).Lease != 0 {
							s.commit(clientv3.OpPut(key, ann.identity(), clientv3.WithLease(70)))
						}
					}
				})
			}, false, nil, hold.ErrNotEvicted, "left before it was asked",
		},
	} {
		for kind, max := range map[string]int{"office": 0, "slot": 1} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				onStage(t, max, func(s *stage) {
					s.holds(ann)
					token := s.token(ann)
					fault := s.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: coordtest.Puts(s.evictKey(ann)), Action: tt.action(s)})
					s.evict()
					time.Sleep(3 * time.Second) // until it has been repeated; in a bubble
					synctest.Wait()
					if fault.Hits() != 1 {
						s.Fatalf("the fault struck %d times", fault.Hits())
					}
					if got := len(s.m.Keys(hold.AreaRange(hold.AreaEvict))) > 0; got != tt.asked {
						s.Errorf("somebody was asked: %v", got)
					}
					if tt.then != nil {
						s.waits()
						tt.then(s)
					}
					want := tt.want
					if tt.is != nil && want[0] == 'a' {
						want = fmt.Sprintf(want, token, s.name.Name)
					}
					s.answers(tt.is, want)
				})
			})
		}
	}
}

// Red when a slot's key is not compared, or its lease is not: the candidate's alone says nothing about the slot.
func TestASlotThatIsAnothersWhenTheRequestArrives(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *stage){
		"put anew": func(s *stage) {
			s.commit(clientv3.OpDelete(s.slotKey(ann)))
			s.commit(clientv3.OpPut(s.slotKey(ann), "7", clientv3.WithLease(clientv3.LeaseID(ann.lease))))
		},
		"on another lease": func(s *stage) {
			s.commit(clientv3.OpPut(s.slotKey(ann), "8", clientv3.WithLease(clientv3.LeaseID(bob.lease))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStage(t, 1, func(s *stage) {
				s.holds(ann)
				s.joins(bob)
				s.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: coordtest.Puts(s.evictKey(ann)), Action: coordtest.Before(func() { change(s) })})
				s.evict()
				s.answers(hold.ErrNotEvicted, "left before it was asked")
				if s.m.Get(s.evictKey(ann)) != nil {
					s.Error("it was asked")
				}
			})
		})
	}
}

// Red when a key is deleted whatever its create revision.
func TestAHoldThatHasChangedIsNotDeleted(t *testing.T) {
	t.Parallel()
	for kind, max := range map[string]int{"office": 0, "slot": 1} {
		for name, change := range map[string]func(s *stage){
			"it has left":           func(s *stage) { s.leaves(ann, hold.EndReleased) },
			"somebody else holds":   func(s *stage) { s.leaves(ann, hold.EndReleased); s.holds(actor{"b", 8, 0}) },
			"it holds a later hold": func(s *stage) { s.leaves(ann, hold.EndReleased); s.queues(ann); s.opens(ann) },
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				onStage(t, max, func(s *stage) {
					s.holds(ann)
					var left []string
					s.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: coordtest.Deletes(s.key(ann)), Action: coordtest.Before(func() {
						change(s)
						left = s.m.Keys(hold.Root)
					})})
					s.evict("--force", "--rev", fmt.Sprint(s.token(ann)))
					s.answers(hold.ErrNotEvicted, "left before it was asked")
					if got := s.m.Keys(hold.Root); !slices.Equal(got, left) {
						s.Errorf("there is %q, was %q", got, left)
					}
				})
			})
		}
	}
}

func TestARequestThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	onStage(t, 0, func(s *stage) {
		s.holds(ann)
		s.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: coordtest.Puts(s.evictKey(ann)), Times: coordtest.Forever, Action: coordtest.LoseReply(nil)})
		s.evict()
		s.answers(hold.ErrUnreachable, "etcd unreachable", "whether the request has arrived is not known")
	})
	// What is refused has not been done.
	onStage(t, 0, func(s *stage) {
		s.holds(ann)
		s.m.NoSpace(true)
		s.evict()
		s.answers(hold.ErrUnreachable, "its alarm is cleared")
		if len(s.m.Keys(hold.AreaRange(hold.AreaEvict))) > 0 {
			s.Error("the request is there")
		}
	})
	onStage(t, 0, func(s *stage) {
		s.m.NoQuorum(true)
		s.evict()
		s.answers(hold.ErrUnreachable, "etcd unreachable")
	})
}

// While etcd is away nothing is known, and that is said; nothing is missed by it.
func TestAnEtcdThatIsAwayWhileItIsWaitedFor(t *testing.T) {
	t.Parallel()
	onStage(t, 0, func(s *stage) {
		s.holds(ann)
		s.joins(bob)
		s.joins(cat)
		s.evict()
		s.m.HoldWatches(true)
		s.leaves(ann, hold.EndEvicted)
		s.opens(bob)
		next := s.token(bob)
		s.leaves(bob, hold.EndReleased)
		s.opens(cat)
		away := s.m.Inject(coordtest.Rule{Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		time.Sleep(9 * time.Second) // in a bubble
		s.waits()
		away.Remove()
		s.m.HoldWatches(false)
		s.answers(nil, fmt.Sprintf("held by b pid 1, token %d", next))
		s.says("asked to leave", "etcd does not answer: what becomes of the hold is not known")
	})
	onStage(t, 0, func(s *stage) {
		s.holds(ann)
		s.evict("--wait", "9s")
		s.m.NoQuorum(true)
		s.answers(hold.ErrUnreachable, "it does not say what became of a pid 1, token 2, at o", "the request stays")
	})
}
