package coord

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/go-coord/coord/coordtest"
)

// audience is what somebody knows who believes every event.
type audience struct {
	up    map[string]HostMetadata
	stale bool
	done  bool // SnapshotDone was told
	wrong error
}

func newAudience() *audience { return &audience{up: map[string]HostMetadata{}} }

// hear takes an event in and notes what a watcher must never tell.
func (a *audience) hear(ev HostEvent) {
	_, up := a.up[ev.HostUUID]
	wrong := ev.Metadata.HostUUID != ev.HostUUID || (ev.Reason != 0) != (ev.Kind == HostDown)
	switch ev.Kind {
	case HostUp:
		wrong = wrong || up || ev.Revision == 0 || ev.Incarnation == 0
		a.up[ev.HostUUID] = ev.Metadata
	case HostUpdate:
		wrong = wrong || !up || ev.Metadata.same(a.up[ev.HostUUID])
		a.up[ev.HostUUID] = ev.Metadata
	case HostDown:
		wrong = wrong || !up
		delete(a.up, ev.HostUUID)
	case SnapshotDone:
		wrong = wrong || a.done
		a.done = true
	default:
		wrong = wrong || a.stale == (ev.Kind == ViewStale)
		a.stale = ev.Kind == ViewStale
	}
	if wrong && a.wrong == nil {
		a.wrong = fmt.Errorf("told %+v to whom %v are up (stale: %v)", ev, slices.Sorted(maps.Keys(a.up)), a.stale)
	}
}

// knows says what is wrong with what the audience knows, by the keys that there are.
func (a *audience) knows(truth []*mvccpb.KeyValue) error {
	if a.wrong != nil {
		return a.wrong
	}
	is := map[string]HostMetadata{}
	for _, kv := range truth {
		m, _ := DecodeHost(kv)
		is[m.HostUUID] = m
	}
	if !maps.EqualFunc(a.up, is, HostMetadata.same) {
		return fmt.Errorf("told %v, there is %v", a.up, is)
	}
	return nil
}

// TestWhateverHappensToARoll takes keys and the consumer through any order of events.
func TestWhateverHappensToARoll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1e9, 0)
		o, err := WatcherOptions{Extended: true, DownGrace: rapid.SampledFrom([]time.Duration{0, 2 * time.Second}).Draw(t, "grace")}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		r, a := newRoll(o), newAudience()
		rev, keys := int64(1), map[string]*mvccpb.KeyValue{}
		host := rapid.StringMatching(`[abc]`)
		change := func(t *rapid.T) *clientv3.Event {
			uuid := host.Draw(t, "host")
			key, was := []byte(HostsPrefix+uuid), keys[uuid]
			rev++
			if was != nil && rapid.Bool().Draw(t, "delete") {
				delete(keys, uuid)
				return &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: key, ModRevision: rev}}
			}
			m := HostMetadata{HostUUID: uuid, StartedAt: rapid.Int64Range(0, 2).Draw(t, "started"), Version: rapid.StringMatching(`[12]`).Draw(t, "version")}
			value := rapid.SampledFrom([]string{encodeHost(m), encodeStopping(m), "?"}).Draw(t, "value")
			kv := &mvccpb.KeyValue{Key: key, Value: []byte(value), CreateRevision: rev, ModRevision: rev}
			if was != nil {
				kv.CreateRevision = was.CreateRevision
			}
			keys[uuid] = kv
			return &clientv3.Event{Type: clientv3.EventTypePut, Kv: kv}
		}
		list := func() { r.list(readAll(slices.Collect(maps.Values(keys))), rev, now); r.fresh(now) }
		take := func() bool {
			ev, ok, _ := r.next(now)
			if ok {
				a.hear(ev)
			}
			return ok
		}
		list()
		t.Repeat(map[string]func(*rapid.T){
			"event": func(t *rapid.T) { r.event(change(t), now) },
			"events that are missed": func(t *rapid.T) {
				for range rapid.IntRange(0, 6).Draw(t, "n") {
					change(t)
				}
				list()
			},
			"take": func(*rapid.T) { take() },
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
			},
			"": func(t *rapid.T) {
				// What is kept is bounded by the hosts that are there and those that the consumer believes in.
				if n := len(r.hosts); n > len(keys)+len(a.up) {
					t.Fatalf("%d hosts are kept: %d are there, %d are known as up", n, len(keys), len(a.up))
				}
				if n := r.line.Len() + r.lapsing.Len(); n > len(r.hosts)+2 {
					t.Fatalf("%d wait in line, of %d hosts", n, len(r.hosts))
				}
				if a.wrong != nil {
					t.Fatal(a.wrong)
				}
			},
		})
		now = now.Add(o.DownGrace)
		r.fresh(now)
		for take() {
		}
		if err := a.knows(slices.Collect(maps.Values(keys))); err != nil || a.stale {
			t.Fatalf("%v, stale: %v", err, a.stale)
		}
		if n := len(r.hosts); n != len(keys) {
			t.Fatalf("%d hosts are kept, %d are there", n, len(keys))
		}
	})
}

// TestAWatchersViewIsTheStoresTruth takes a watcher through any schedule of changes and faults, with a consumer
// that takes events or does not. In the end the watcher's view, and what the consumer was told, are the keys that
// there are; and whatever it was told on the way, for each host up and down alternated.
func TestAWatchersViewIsTheStoresTruth(t *testing.T) {
	for run := range 20 {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				o := WatcherOptions{Extended: true, DownGrace: rapid.SampledFrom([]time.Duration{0, 2 * time.Second}).Draw(rt, "grace")}
				members := rapid.IntRange(1, 2).Draw(rt, "members")
				steps := rapid.SliceOfN(rapid.SampledFrom(slices.Sorted(maps.Keys(schedule))), 1, 40).Draw(rt, "steps")
				var err error
				synctest.Test(t, func(t *testing.T) { err = play(t, members, o, steps) })
				if err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// show is one schedule under way.
type show struct {
	*world
	*HostWatcher
	heard    *audience
	members  int
	n        int // steps so far
	snapshot *coordtest.Snapshot
}

// uuid and version go round, so that steps meet on the same hosts.
func (s *show) uuid() string    { return string(rune('a' + s.n%3)) }
func (s *show) version() string { return fmt.Sprint(s.n % 4) }

// schedule is what can happen.
var schedule = map[string]func(s *show){
	"put":     func(s *show) { s.host(s.uuid(), s.version()) },
	"put too": func(s *show) { s.host(s.uuid(), s.version()) },
	"goodbye": func(s *show) { s.world.put(encodeStopping(HostMetadata{HostUUID: s.uuid()}), s.uuid(), 0) },
	"garbage": func(s *show) { s.world.put("{", s.uuid(), 0) },
	"delete":  func(s *show) { s.m.Delete(HostsPrefix + s.uuid()) },
	"expire": func(s *show) {
		for i, l := range s.m.Leases() {
			if i%2 == 0 {
				s.m.Expire(l.ID)
			}
		}
	},
	"noise":          func(s *show) { catchUp(s.world) },
	"compact":        func(s *show) { _ = s.m.Compact(s.m.Rev()) },
	"compact some":   func(s *show) { _ = s.m.Compact(s.m.Rev() - 2) },
	"cancel watches": func(s *show) { s.m.CancelWatches("for a test") },
	"end watches":    func(s *show) { s.m.EndWatches(nil) },
	"lose a watch":   func(s *show) { loseWatch(s.world) },
	"lose a read": func(s *show) {
		s.m.Inject(coordtest.Rule{Method: coordtest.Range, Action: coordtest.LoseReply(nil)})
	},
	"hold watches":      func(s *show) { s.m.HoldWatches(true) },
	"let watches go":    func(s *show) { s.m.HoldWatches(false) },
	"partition":         func(s *show) { s.each(s.m.Kill) },
	"stop a member":     func(s *show) { s.m.Stop(s.n % s.members) },
	"kill a member":     func(s *show) { s.settle(); s.m.Kill(s.n % s.members) },
	"break connections": func(s *show) { s.each(s.m.Disconnect) },
	"heal members":      heal,
	"no quorum":         func(s *show) { s.m.NoQuorum(true) },
	"quorum":            func(s *show) { s.m.NoQuorum(false) },
	"restart":           func(s *show) { s.alone(s.m.Restart) },
	"take a snapshot":   func(s *show) { s.snapshot = s.m.Snapshot() },
	"restore it": func(s *show) {
		s.alone(func() { s.m.Restore(s.snapshot); s.m.SetClusterID(uint64(1000 + s.n)) })
	},
	"a moment":         func(*show) { synctest.Wait() },
	"a second":         func(*show) { time.Sleep(time.Second) },      // fake time
	"half a minute":    func(*show) { time.Sleep(30 * time.Second) }, // fake time
	"take an event":    func(s *show) { s.take(1) },
	"take all events":  func(s *show) { s.take(1000) },
	"take all again":   func(s *show) { s.take(1000) },
	"look at the view": func(s *show) { s.Snapshot() },
}

// settle lets every stream that is being opened be open. Where a connection breaks before the first message is
// sent, gRPC waits for the next one with a lock held, and no fake clock runs while somebody waits for a lock.
func (s *show) settle() { synctest.Wait() }

// each breaks the connections of one member after the other.
func (s *show) each(hurt func(member int)) {
	for i := range s.members {
		s.settle()
		hurt(i)
	}
}

// alone breaks the connections of all members in one step, where there is one member only.
func (s *show) alone(hurt func()) {
	if s.settle(); s.members == 1 {
		hurt()
	}
}

func heal(s *show) {
	for i := range s.members {
		s.m.Cont(i)
		s.m.Revive(i)
	}
}

// take takes up to n events, as far as there are any.
func (s *show) take(n int) {
	for range n {
		synctest.Wait()
		select {
		case ev := <-s.Events():
			s.heard.hear(ev)
		default:
			return
		}
	}
}

func play(t *testing.T, members int, o WatcherOptions, steps []string) error {
	w := &world{T: t, m: coordtest.Start(t, coordtest.Options{Members: members}), start: time.Now()}
	w.host("a", "0")
	hw, err := NewHostWatcher(context.Background(), w.m.Client(w), o)
	if err != nil {
		return err
	}
	s := &show{world: w, HostWatcher: hw, heard: newAudience(), members: members, snapshot: w.m.Snapshot()}
	for _, step := range steps {
		s.n++
		schedule[step](s)
	}

	// All is well again, and time passes: after a long partition gRPC waits for up to 144 s before it dials again.
	w.m.Heal()
	w.m.HoldWatches(false)
	w.m.NoQuorum(false)
	heal(s)
	s.take(1000)
	time.Sleep(3 * time.Minute) // fake time
	s.take(1000)
	truth := w.m.List(HostsPrefix)
	err = s.heard.knows(truth)
	if v := s.Snapshot(); err == nil && (v.Stale || len(v.Hosts) != len(truth) || s.heard.stale || !s.heard.done) {
		err = fmt.Errorf("the view is %+v (told stale: %v), there is %v", v, s.heard.stale, truth)
	}
	_ = hw.Close()
	return err
}
