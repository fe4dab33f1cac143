package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// stage is an etcd in which the test writes what holders would, by hand, and a "conch evict" that looks at it. All of it is
// in one bubble, so no time passes but the one that is waited for.
type stage struct {
	*testing.T
	m      *coordtest.Medium
	client *clientv3.Client
	name   view.Name
	max    int // of a semaphore; 0: an office

	cancel         context.CancelCauseFunc
	stdout, stderr text
	ended          chan error
	began          time.Time
}

// onStage runs a test of an office, or, with a max, of a semaphore.
func onStage(t *testing.T, max int, test func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := coordtest.Start(t, coordtest.Options{})
		s := &stage{T: t, m: m, client: m.Client(t), name: view.Name{Kind: hold.KindElect, Name: "o"}, max: max, ended: make(chan error, 1)}
		if max > 0 {
			s.name = view.Name{Kind: hold.KindSema, Name: "s"}
		}
		test(s)
	})
}

// actor is somebody who contends.
type actor struct {
	host  string
	lease int64
	slot  int
}

var (
	ann = actor{"a", 7, 0}
	bob = actor{"b", 8, 1}
	cat = actor{"c", 9, 0}
)

func (a actor) identity() string { return hold.NewHolder(a.host, 1, time.Time{}, nil).Encode() }

func (s *stage) key(a actor) string {
	if s.max > 0 {
		return hold.SemaKey(s.name.Name, s.max, a.lease).String()
	}
	return hold.ElectKey(s.name.Name, a.lease).String()
}

func (s *stage) slotKey(a actor) string { return hold.SlotKey(s.name.Name, s.max, a.slot).String() }

func (s *stage) evictKey(a actor) string {
	return hold.EvictKey(s.name.Kind, s.name.Name, a.lease).String()
}

func (s *stage) records(a actor) (open, last string) {
	o, l := hold.OfficeKeys(s.name.Name)
	if s.max > 0 {
		o, l = hold.SlotKeys(s.name.Name, s.max, a.slot)
	}
	return o.String(), l.String()
}

// commit makes one transaction.
func (s *stage) commit(ops ...clientv3.Op) {
	s.Helper()
	if _, err := s.client.Txn(s.Context()).Then(ops...).Commit(); err != nil {
		s.Fatal(err)
	}
}

// joins has an actor queue, on a lease of 60 s.
func (s *stage) joins(a actor) {
	s.Helper()
	if _, err := s.m.Grant(clientv3.LeaseID(a.lease), 60); err != nil {
		s.Fatal(err)
	}
	s.queues(a)
}

// queues is joins on a lease that it has.
func (s *stage) queues(a actor) {
	s.Helper()
	s.commit(clientv3.OpPut(s.key(a), a.identity(), clientv3.WithLease(clientv3.LeaseID(a.lease))))
}

// opens has it begin to hold: the record, and a slot.
func (s *stage) opens(a actor) {
	s.Helper()
	open, _ := s.records(a)
	ops := []clientv3.Op{clientv3.OpPut(open, fmt.Sprintf(`{"lease":"%x","n":1,"ttl":10,"at":"2026-01-01T00:00:00Z","holder":%s}`, a.lease, a.identity()))}
	if s.max > 0 {
		on := clientv3.WithLease(clientv3.LeaseID(a.lease))
		ops = append(ops, clientv3.OpPut(s.key(a), a.identity(), on), clientv3.OpPut(s.slotKey(a), hold.FormatLease(a.lease), on))
	}
	s.commit(ops...)
}

func (s *stage) holds(a actor) { s.Helper(); s.joins(a); s.opens(a) }

// token is that of who holds.
func (s *stage) token(a actor) int64 {
	if s.max > 0 {
		return s.m.Get(s.slotKey(a)).CreateRevision
	}
	return s.m.Get(s.key(a)).CreateRevision
}

// leaves has who holds give it up, in one transaction.
func (s *stage) leaves(a actor, how hold.End) {
	s.Helper()
	open, last := s.records(a)
	raw, _ := json.Marshal(map[string]any{"rev": s.token(a), "how": how, "at": time.Time{}, "holder": json.RawMessage(a.identity())})
	ops := []clientv3.Op{clientv3.OpDelete(s.key(a)), clientv3.OpDelete(open), clientv3.OpPut(last, string(raw))}
	if s.max > 0 {
		ops = append(ops, clientv3.OpDelete(s.slotKey(a)))
	}
	s.commit(ops...)
}

// evict starts a "conch evict" with flags, and returns when it waits for something.
func (s *stage) evict(args ...string) {
	s.Helper()
	f, flags := &evictFlags{}, pflag.NewFlagSet("evict", pflag.ContinueOnError)
	f.declare(flags)
	if err := flags.Parse(args); err != nil {
		s.Fatal(err)
	}
	f.waits, f.bySlot = flags.Changed("wait"), flags.Changed("slot")
	e := &eviction{evictFlags: f, env: cli.Env{Stdout: &s.stdout}, client: s.client, name: s.name, log: cli.NewLogger(&s.stderr, false, "text")}
	ctx, cancel := context.WithCancelCause(s.Context())
	s.cancel, s.began = cancel, time.Now()
	go func() { s.ended <- e.run(ctx) }()
	synctest.Wait()
}

// answers waits for the end, and wants the answer to be this, or an error that wraps is with a text in it.
func (s *stage) answers(is error, want ...string) {
	s.Helper()
	err := <-s.ended
	s.cancel(nil)
	if !errors.Is(err, is) || (err == nil) != (is == nil) {
		s.Fatalf("%v, want %v; %s", err, is, s.stderr.String())
	}
	got := s.stdout.String()
	if err != nil {
		got = err.Error()
	}
	for _, w := range want {
		if !strings.Contains(got, w) {
			s.Errorf("%q does not say %q", got, w)
		}
	}
}

// waits wants that there is no answer yet.
func (s *stage) waits() {
	s.Helper()
	synctest.Wait()
	select {
	case err := <-s.ended:
		s.Fatalf("it has ended: %v, %s", err, s.stdout.String())
	default:
	}
}

// says wants lines of the log that hold these texts, in this order, and no others.
func (s *stage) says(want ...string) {
	s.Helper()
	lines := strings.Split(strings.TrimSuffix(s.stderr.String(), "\n"), "\n")
	if len(lines) != len(want) {
		s.Fatalf("%d lines, want %d: %s", len(lines), len(want), s.stderr.String())
	}
	for i := range lines {
		if !strings.Contains(lines[i], want[i]) {
			s.Errorf("%q does not say %q", lines[i], want[i])
		}
	}
}

func TestAHolderIsAskedOnItsLeaseAndTheNextIsNamed(t *testing.T) {
	t.Parallel()
	for name, max := range map[string]int{"an office": 0, "a slot": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStage(t, max, func(s *stage) {
				next := actor{"b", 8, 0}
				s.holds(ann)
				s.joins(next)
				token := s.token(ann)
				s.evict("--cooldown", "1m")
				asked := s.m.Get(s.evictKey(ann))
				if asked == nil || asked.Lease != ann.lease {
					s.Fatalf("the request is %v, want it on the lease of the hold", asked)
				}
				if by := hold.DecodeEviction(asked.Value); by.Host != hostname() || by.PID <= 0 || by.Cooldown != time.Minute || by.At.IsZero() {
					s.Errorf("it says %+v", by)
				}
				time.Sleep(time.Second) // the holder takes its time; in a bubble
				s.leaves(ann, hold.EndEvicted)
				if max == 0 {
					s.waits() // who is first has not begun
				}
				s.opens(next)
				holder := "b pid 1"
				if max > 0 {
					holder = "slot 0 by b pid 1"
				}
				s.answers(nil, fmt.Sprintf("a pid 1, token %d, has left (evicted) after 1s; held by %s, token %d\n", token, holder, s.token(next)))
				s.says(`msg="asked to leave" name=` + s.name.Name + ` holder="a pid 1" rev=`)
			})
		})
	}
}

func TestAnEvictionInJSON(t *testing.T) {
	t.Parallel()
	// answer is the one object that is printed.
	answer := func(s *stage) map[string]any {
		s.Helper()
		s.answers(nil)
		var got map[string]any
		if err := json.Unmarshal([]byte(s.stdout.String()), &got); err != nil || strings.Count(s.stdout.String(), "\n") != 1 {
			s.Fatalf("%v: %s", err, s.stdout.String())
		}
		return got
	}
	type fields = map[string]any
	compare := func(s *stage, got any, want fields) {
		s.Helper()
		for name, value := range want {
			if got := got.(map[string]any)[name]; got != value {
				s.Errorf("%s is %v, want %v: %s", name, got, value, s.stdout.String())
			}
		}
	}
	onStage(t, 2, func(s *stage) {
		s.holds(ann)
		s.joins(cat)
		token := s.token(ann)
		s.evict("-o", "json")
		s.leaves(ann, hold.EndEvicted)
		s.opens(cat)
		got := answer(s)
		compare(s, got, fields{"kind": "sema", "name": "s", "state": "held", "how": "evicted", "forced": false, "waited_ms": 0.0})
		compare(s, got["evicted"], fields{"state": "held", "host": "a", "pid": 1.0, "lease": "7", "max": 2.0, "slot": 0.0, "rev": float64(token)})
		compare(s, got["successor"], fields{"state": "held", "host": "c", "lease": "9", "slot": 0.0, "rev": float64(s.token(cat))})
	})
	onStage(t, 0, func(s *stage) {
		s.holds(ann)
		s.evict("--json", "--force", "--rev", fmt.Sprint(s.token(ann)))
		time.Sleep(10 * time.Second) // its record says that much; in a bubble
		got := answer(s)
		compare(s, got, fields{"kind": "elect", "name": "o", "state": "vacant", "how": "", "forced": true, "waited_ms": 10000.0, "successor": nil})
		compare(s, got["evicted"], fields{"host": "a", "slot": nil})
	})
}
