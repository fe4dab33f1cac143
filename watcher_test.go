package coord

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/go-coord/coord/coordtest"
)

// fleet is hosts in a world, and a watcher that tells of them.
type fleet struct {
	*world
	*HostWatcher
}

// inFleet runs f with a watcher of all kinds of events, unless o says otherwise.
func inFleet(t *testing.T, o WatcherOptions, hosts []string, f func(w *fleet)) {
	t.Helper()
	inBubble(t, coordtest.Options{}, func(w *world) {
		for _, uuid := range hosts {
			w.host(uuid, "")
		}
		f(&fleet{w, w.watch(o)})
	})
}

func (w *world) watch(o WatcherOptions, members ...int) *HostWatcher {
	w.Helper()
	hw, err := NewHostWatcher(w.Context(), w.m.Client(w, members...), o)
	w.must(err)
	w.Cleanup(func() { w.must(hw.Close()) })
	return hw
}

// host puts a host of that version, on a lease of its own.
func (w *world) host(uuid, version string) clientv3.LeaseID {
	w.Helper()
	lease, err := w.m.Grant(0, 3600)
	w.must(err)
	w.put(encodeHost(HostMetadata{HostUUID: uuid, Version: version}), uuid, lease)
	return lease
}

func (w *world) put(value, uuid string, lease clientv3.LeaseID) {
	w.Helper()
	_, err := w.m.Put(HostsPrefix+uuid, value, lease)
	w.must(err)
}

// hears checks what the watcher tells next.
func (w *fleet) hears(want ...string) {
	w.Helper()
	for _, one := range want {
		select {
		case ev, ok := <-w.Events():
			if got := said(ev); !ok || got != one {
				w.Fatalf("at %v: told %q (open: %v), want %q", w.now(), got, ok, one)
			}
		case <-time.After(10 * time.Minute):
			w.Fatalf("never told %q", one)
		}
	}
}

// silent checks that the watcher tells nothing for d.
func (w *fleet) silent(d time.Duration) {
	w.Helper()
	select {
	case ev, ok := <-w.Events():
		w.Fatalf("at %v: told %q (open: %v), want nothing", w.now(), said(ev), ok)
	case <-time.After(d):
	}
}

func said(ev HostEvent) string {
	parts := []string{ev.Kind.String()}
	for _, one := range []string{ev.HostUUID, ev.Metadata.Version, ev.Reason.String()} {
		if one != "" {
			parts = append(parts, one)
		}
	}
	return strings.Join(parts, " ")
}

var everything = WatcherOptions{Extended: true}

func TestAWatcherTellsWhoIsThereAndThenEachChangeInOrder(t *testing.T) {
	inFleet(t, everything, []string{"a", "b"}, func(w *fleet) {
		w.hears("up a", "up b", "snapshot-done")
		lease := w.host("c", "1")
		w.hears("up c 1")
		w.m.Expire(lease)
		w.hears("down c 1 expired")
		lease = w.host("a", "2")
		w.hears("update a 2")
		w.put(encodeStopping(HostMetadata{HostUUID: "a", Version: "3"}), "a", lease)
		w.hears("update a 3")
		w.must(w.m.Revoke(lease))
		w.hears("down a 3 stopped")
		w.host("a", "4")
		w.hears("up a 4")
		w.m.Delete(HostsPrefix + "b")
		w.hears("down b expired")
		w.silent(time.Minute)
	})
}

func TestEventsSayWhichLifeTheyAreAbout(t *testing.T) {
	inFleet(t, everything, nil, func(w *fleet) {
		w.hears("snapshot-done")
		lease := w.host("a", "1")
		born := w.m.Get(HostsPrefix + "a").CreateRevision
		if ev := <-w.Events(); ev.Revision != born || ev.Incarnation != born {
			w.Errorf("%+v, want %d", ev, born)
		}
		w.put(encodeHost(HostMetadata{HostUUID: "a"}), "a", lease)
		if ev := <-w.Events(); ev.Revision != w.m.Rev() || ev.Incarnation != born {
			w.Errorf("%+v, want %d", ev, born)
		}
		w.m.Expire(lease)
		if ev := <-w.Events(); ev.Revision != w.m.Rev() || ev.Incarnation != born {
			w.Errorf("%+v, want %d", ev, born)
		}
		w.host("a", "")
		if ev := <-w.Events(); ev.Incarnation <= born {
			w.Errorf("%+v, want more than %d", ev, born)
		}
	})
}

// TestCodeThatKnowsOfTwoKindsMeetsNoThird is the consumer of the published module: what is not up is down.
func TestCodeThatKnowsOfTwoKindsMeetsNoThird(t *testing.T) {
	inFleet(t, WatcherOptions{}, []string{"a"}, func(w *fleet) {
		w.hears("up a")
		lease := w.host("a", "2")
		w.m.Stop(0)
		w.silent(time.Minute)
		w.m.Cont(0)
		w.silent(time.Minute)
		w.m.Expire(lease)
		w.hears("down a 2 expired")
	})
}

func TestAHostThatIsPutAgainIsNotUpTwice(t *testing.T) {
	inFleet(t, everything, []string{"a"}, func(w *fleet) {
		w.hears("up a", "snapshot-done")
		for range 3 {
			w.host("a", "") // another lease, as a registration anew has it
		}
		w.silent(time.Minute)
	})
}

func TestWhatIsNoHostIsNotTold(t *testing.T) {
	o := WatcherOptions{Extended: true, IncludeSelf: "me", ExcludeSelf: "me-too", Prefix: "/coord/hosts"}
	inFleet(t, o, []string{"me", "me-too", "a", "a/nested", ""}, func(w *fleet) {
		w.hears("up a", "snapshot-done")
		_, err := w.m.Put("/coord/hosts-of-others/b", "", 0)
		w.must(err)
		for _, uuid := range []string{"me", "me-too", "b/nested", ""} {
			w.m.Delete(HostsPrefix + uuid)
			w.host(uuid, "2")
		}
		w.silent(time.Minute)
		if v := w.Snapshot(); len(v.Hosts) != 1 || v.Hosts[0].Metadata.HostUUID != "a" {
			w.Errorf("%+v", v)
		}
	})
}

func TestAHostWithAValueThatCannotBeReadIsUp(t *testing.T) {
	var log bytes.Buffer
	o := everything
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.put("\x1b[2J{", "evil\x1b[2J", 0)
		w.put(`{"version":"`+strings.Repeat("v", hostLimit)+`"}`, "large", 0)
		w.put(`{"host_uuid":"somebody-else","version":"1"}`, "liar", 0)
		f := &fleet{w, w.watch(o)}
		f.hears("up evil\x1b[2J", "up large", "up liar 1", "snapshot-done")
		w.put(`[]`, "liar", 0)
		f.hears("update liar")
		w.m.Delete(HostsPrefix + "large")
		f.hears("down large expired")
		w.must(f.Close())
		if got := log.String(); strings.Contains(got, "\x1b") || strings.Count(got, "cannot be read") != 3 {
			w.Error(got)
		}
	})
}

func TestTheConstructorNeverWaitsForItsConsumer(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		const n = defaultPage + 7
		for i := range n {
			w.put("", fmt.Sprintf("h%05d", i), 0)
		}
		hw := w.watch(WatcherOptions{})
		synctest.Wait()
		for i := range n {
			if ev := <-hw.Events(); ev.Kind != HostUp || ev.HostUUID != fmt.Sprintf("h%05d", i) {
				w.Fatalf("%d: %+v", i, ev)
			}
		}
	})
}

func TestASlowConsumerIsBroughtUpToDate(t *testing.T) {
	inFleet(t, everything, []string{"a", "b", "c", "d"}, func(w *fleet) {
		w.hears("up a")
		synctest.Wait() // "up b" is in the channel's hands
		w.m.Delete(HostsPrefix + "a")
		for _, v := range []string{"2", "3", "4"} {
			w.host("a", v)
			w.m.Delete(HostsPrefix + "a")
			w.host("b", v)
			w.host("c", v)
			w.m.Expire(w.host("new", v))
		}
		w.m.Delete(HostsPrefix + "c") // nobody was told that it came
		w.host("new", "5")
		synctest.Wait()
		w.hears("up b", "up d", "snapshot-done", "down a 4 expired", "update b 4", "up new 5")
		w.silent(time.Minute)
	})
}

func TestALifeThatEndedIsToldBeforeTheNext(t *testing.T) {
	inFleet(t, everything, []string{"z"}, func(w *fleet) {
		put := func(uuid string, started int64, version string) {
			w.put(encodeHost(HostMetadata{HostUUID: uuid, StartedAt: started, Version: version}), uuid, 0)
		}
		w.hears("up z", "snapshot-done")
		put("other", 1, "1")
		put("same", 1, "1")
		w.hears("up other 1", "up same 1")
		put("z", 1, "2")
		synctest.Wait() // the channel's hands are full
		for uuid, started := range map[string]int64{"other": 2, "same": 1} {
			w.m.Delete(HostsPrefix + uuid)
			put(uuid, started, "2")
		}
		synctest.Wait()
		w.hears("update z 2")
		got := []string{said(<-w.Events()), said(<-w.Events()), said(<-w.Events())}
		if s := strings.Join(got, ", "); s != "down other 1 expired, up other 2, update same 2" && s != "update same 2, down other 1 expired, up other 2" {
			w.Error(s)
		}
		// And one that ends between its two events.
		w.m.Delete(HostsPrefix + "other")
		put("other", 3, "3")
		synctest.Wait()
		w.m.Delete(HostsPrefix + "other")
		synctest.Wait()
		w.hears("down other 2 expired")
		w.silent(time.Minute)
	})
}

func TestDownGrace(t *testing.T) {
	o := WatcherOptions{Extended: true, DownGrace: 2 * time.Second}
	inFleet(t, o, []string{"a", "b", "c", "d"}, func(w *fleet) {
		w.hears("up a", "up b", "up c", "up d", "snapshot-done")
		for _, uuid := range []string{"a", "b", "c", "d"} {
			w.m.Delete(HostsPrefix + uuid)
		}
		w.silent(time.Second)
		if v := w.Snapshot(); len(v.Hosts) != 4 || !v.Hosts[0].Missing || v.Flaps != 0 {
			w.Errorf("%+v", v)
		}
		w.host("a", "")
		w.host("b", "2")
		w.hears("update b 2")
		if v := w.Snapshot(); len(v.Hosts) != 4 || v.Hosts[0].Missing || !v.Hosts[3].Missing || v.Flaps != 2 {
			w.Errorf("%+v", v)
		}
		w.hears("down c expired", "down d expired")
		if w.now() != 2*time.Second {
			w.Errorf("told at %v", w.now())
		}
		if v := w.Snapshot(); len(v.Hosts) != 2 {
			w.Errorf("%+v", v)
		}
		w.host("c", "")
		w.hears("up c")
		w.silent(time.Minute)
	})
}

func TestAHostInItsGraceLosesItsPlaceInLine(t *testing.T) {
	inFleet(t, WatcherOptions{Extended: true, DownGrace: 2 * time.Second}, []string{"a", "b"}, func(w *fleet) {
		w.hears("up a", "up b", "snapshot-done")
		w.host("b", "2")
		synctest.Wait() // the channel's hands are full
		w.host("a", "2")
		synctest.Wait()
		w.m.Delete(HostsPrefix + "a")
		synctest.Wait()
		w.hears("update b 2")
		w.silent(time.Second)
		w.host("a", "")
		w.silent(time.Minute)
	})
}

func TestAGraceThatIsOverIsOverForASlowConsumerToo(t *testing.T) {
	o := WatcherOptions{Extended: true, DownGrace: 2 * time.Second}
	inFleet(t, o, []string{"a", "b"}, func(w *fleet) {
		w.hears("up a", "up b", "snapshot-done")
		w.host("b", "2")
		synctest.Wait() // the channel's hands are full
		w.m.Delete(HostsPrefix + "a")
		time.Sleep(3 * time.Second) // fake time: the grace is over
		w.host("a", "2")
		synctest.Wait()
		w.hears("update b 2", "down a expired", "up a 2")
	})
}

func TestAHundredHostsThatLoseTheirLeasesAreNotTold(t *testing.T) {
	var hosts []string
	for i := range 100 {
		hosts = append(hosts, fmt.Sprintf("h%02d", i))
	}
	inFleet(t, WatcherOptions{Extended: true, DownGrace: 2 * time.Second}, hosts, func(w *fleet) {
		for range len(hosts) + 1 {
			<-w.Events()
		}
		for _, l := range w.m.Leases() {
			w.must(w.m.Revoke(l.ID))
		}
		time.Sleep(time.Second) // fake time, within the grace
		for _, uuid := range hosts {
			w.host(uuid, "")
		}
		w.silent(time.Minute)
	})
}

func TestAWatcherSurvives(t *testing.T) {
	noise := func(w *world) {
		for range 10 {
			_, err := w.m.Put("/noise", "", 0)
			w.must(err)
		}
		w.must(w.m.Compact(w.m.Rev()))
	}
	for name, hurt := range map[string]func(w *world) (heal func()){
		"compaction behind a broken connection": func(w *world) func() {
			w.m.Kill(0)
			return func() { noise(w); w.m.Revive(0) }
		},
		"a silent member":        func(w *world) func() { w.m.Stop(0); return func() { w.m.Cont(0) } },
		"silence and compaction": func(w *world) func() { w.m.Stop(0); return func() { noise(w); w.m.Cont(0) } },
		"a watch that says nothing": func(w *world) func() {
			w.m.HoldWatches(true)
			return func() { w.m.HoldWatches(false) }
		},
		"a token that is not accepted": func(w *world) func() {
			f := w.m.Inject(coordtest.Rule{Times: coordtest.Forever, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
			w.m.EndWatches(rpctypes.ErrGRPCInvalidAuthToken)
			return f.Remove
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, everything, []string{"a", "b", "c"}, func(w *fleet) {
				w.hears("up a", "up b", "up c", "snapshot-done")
				w.silent(6 * time.Second) // the watch has proven itself once
				heal := hurt(w.world)
				w.m.Delete(HostsPrefix + "a")
				w.host("b", "2")
				w.host("d", "1")
				w.hears("stale")
				if at := w.now(); at > 16*time.Second {
					w.Errorf("stale at %v, want within 10s", at)
				}
				if v := w.Snapshot(); !v.Stale || len(v.Hosts) != 3 || time.Since(v.AsOf) < 10*time.Second {
					w.Errorf("%+v", v)
				}
				w.silent(time.Minute)
				heal()
				got := map[string]bool{}
				for range 4 {
					ev := <-w.Events()
					got[said(ev)] = true
					if ev.Kind == ViewFresh && len(got) != 4 {
						w.Error("fresh before all was told")
					}
				}
				if !got["down a expired"] || !got["update b 2"] || !got["up d 1"] || !got["fresh"] {
					w.Errorf("%v", got)
				}
				w.silent(time.Minute)
				if v := w.Snapshot(); v.Stale || len(v.Hosts) != 3 || time.Since(v.AsOf) > 10*time.Second {
					w.Errorf("%+v", v)
				}
				w.host("e", "")
				w.hears("up e")
			})
		})
	}
}

// TestAWatcherOfMembersWithoutQuorumSaysSo: they keep the connection, and answer what needs no quorum.
func TestAWatcherOfMembersWithoutQuorumSaysSo(t *testing.T) {
	inFleet(t, everything, []string{"a"}, func(w *fleet) {
		w.hears("up a", "snapshot-done")
		w.m.NoQuorum(true)
		w.hears("stale")
		if w.now() > 10*time.Second {
			w.Errorf("stale at %v", w.now())
		}
		w.silent(time.Minute)
		w.m.NoQuorum(false)
		w.hears("fresh")
		w.host("b", "")
		w.hears("up b")
		w.silent(time.Minute)
	})
}

// TestTroubleThatIsOverSoonIsNotTold breaks what the watch stands on, once.
func TestTroubleThatIsOverSoonIsNotTold(t *testing.T) {
	for name, hurt := range map[string]func(w *world){
		"the watch is cancelled":   func(w *world) { w.m.CancelWatches("for a test") },
		"the stream ends":          func(w *world) { w.m.EndWatches(nil) },
		"there is no leader":       func(w *world) { w.m.EndWatches(rpctypes.ErrGRPCNoLeader) },
		"etcd restarts":            func(w *world) { w.m.Restart() },
		"the connection breaks":    func(w *world) { w.m.Disconnect(0) },
		"one watch is not created": func(w *world) { loseWatch(w); w.m.CancelWatches("for a test") },
		"the reads fail for 2 s": func(w *world) {
			f := w.m.Inject(coordtest.Rule{Method: coordtest.Range, Times: coordtest.Forever, Action: coordtest.LoseRequest()})
			time.AfterFunc(2*time.Second, f.Remove)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, everything, []string{"a", "b"}, func(w *fleet) {
				w.hears("up a", "up b", "snapshot-done")
				for range 3 {
					hurt(w.world)
					w.host("c", "")
					w.hears("up c")
					w.m.Delete(HostsPrefix + "c")
					w.hears("down c expired")
					w.silent(15 * time.Second)
				}
			})
		})
	}
}

func loseWatch(w *world) {
	w.m.Inject(coordtest.Rule{Method: coordtest.Watch, Action: coordtest.LoseRequest()})
}

func TestAStoreThatWasRestoredIsReadAnew(t *testing.T) {
	for name, back := range map[string]func(w *world){
		"its revision is lower":                    func(w *world) {},
		"its revision has caught up, its id not":   func(w *world) { catchUp(w); w.m.SetClusterID(7) },
		"its revision has caught up, its term not": func(w *world) { catchUp(w); w.m.SetTerm(1) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				w.host("before", "")
				f := &fleet{w, w.watch(everything)}
				f.hears("up before", "snapshot-done")
				snap := w.m.Snapshot()
				w.host("lost", "")
				f.hears("up lost")
				w.m.Delete(HostsPrefix + "before")
				f.hears("down before expired")
				time.Sleep(6 * time.Second) // fake time: a question was answered
				w.m.Restore(snap)
				back(w)
				f.hears("up before", "down lost expired")
				w.host("after", "")
				f.hears("up after")
				f.silent(time.Minute)
			})
		})
	}
}

// catchUp writes elsewhere until the revision is past any that was seen.
func catchUp(w *world) {
	for range 10 {
		_, err := w.m.Put("/elsewhere", "", 0)
		w.must(err)
	}
}

// TestAWatchOfAnotherStoreIsNotBelieved: what it tells is how one finds out, at once, and not believed.
func TestAWatchOfAnotherStoreIsNotBelieved(t *testing.T) {
	inFleet(t, everything, nil, func(w *fleet) {
		w.hears("snapshot-done")
		snap := w.m.Snapshot()
		w.host("a", "")
		w.hears("up a")
		w.m.Restore(snap)
		w.m.SetClusterID(7)
		catchUp(w.world)
		w.host("b", "")
		w.hears("up b", "down a expired")
		if w.now() >= 5*time.Second {
			w.Errorf("found out at %v, by a question", w.now())
		}
		w.silent(time.Minute)
	})
}

// TestProgressIsNoEvent: older servers may notify of progress before they have sent the events up to there.
func TestProgressIsNoEvent(t *testing.T) {
	t.Parallel()
	o, err := WatcherOptions{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	hw := &HostWatcher{opts: o, roll: newRoll(o), news: make(chan struct{}, 1)}
	tl := newTail(nil, o.follow(), hostHandler{hw})
	tl.rev = 5
	put := func(uuid string, rev int64) *clientv3.Event {
		return &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte(HostsPrefix + uuid), CreateRevision: rev, ModRevision: rev}}
	}
	for _, got := range []clientv3.WatchResponse{
		{Header: &pb.ResponseHeader{Revision: 9}},
		{Header: &pb.ResponseHeader{Revision: 9}, Events: []*clientv3.Event{put("old", 5), put("a", 7), put("b", 7)}},
		{Header: &pb.ResponseHeader{Revision: 9}, Events: []*clientv3.Event{put("again", 7), put("c", 8)}},
	} {
		if err := tl.take(got, true); err != nil {
			t.Error(err)
		}
	}
	if hosts := slices.Sorted(maps.Keys(hw.roll.hosts)); tl.rev != 8 || fmt.Sprint(hosts) != "[a b c]" {
		t.Errorf("at %d: %v", tl.rev, hosts)
	}
}

// TestALifeThatNobodySawEndIsReplaced has hosts start anew while the watcher cannot look.
func TestALifeThatNobodySawEndIsReplaced(t *testing.T) {
	put := func(w *world, uuid string, started int64) {
		w.m.Delete(HostsPrefix + uuid)
		w.put(encodeHost(HostMetadata{HostUUID: uuid, StartedAt: started, Version: fmt.Sprint(started)}), uuid, 0)
	}
	inBubble(t, coordtest.Options{}, func(w *world) {
		put(w, "other-life", 1)
		put(w, "same-life", 1)
		put(w, "unknown", 0)
		f := &fleet{w, w.watch(everything)}
		f.hears("up other-life 1", "up same-life 1", "up unknown 0", "snapshot-done")
		w.m.Kill(0)
		synctest.Wait()
		put(w, "other-life", 2)
		put(w, "same-life", 1)
		put(w, "unknown", 0)
		w.must(w.m.Compact(w.m.Rev()))
		w.m.Revive(0)
		f.hears("down other-life 1 replaced", "up other-life 2", "down unknown 0 replaced", "up unknown 0")
		f.silent(time.Minute)
	})
}

func TestAHostThatWasNotToldIsReplacedWithoutAWord(t *testing.T) {
	inFleet(t, WatcherOptions{}, []string{"a", "b"}, func(w *fleet) {
		synctest.Wait() // "up a" is in the channel's hands
		w.m.Kill(0)
		synctest.Wait()
		w.m.Delete(HostsPrefix + "b")
		w.host("b", "2")
		w.must(w.m.Compact(w.m.Rev()))
		w.m.Revive(0)
		time.Sleep(time.Minute) // fake time: all has been found out
		w.hears("up a", "up b 2")
		w.silent(time.Minute)
	})
}

func TestAListIsOfOneRevision(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		for i := range 5 {
			w.host(fmt.Sprint(i), "")
		}
		read := func() (*roll, error) {
			o, err := WatcherOptions{}.withDefaults()
			w.must(err)
			hw := &HostWatcher{opts: o, roll: newRoll(o), news: make(chan struct{}, 1)}
			tl := newTail(w.m.Client(w), o.follow(), hostHandler{hw})
			tl.page = 2
			return hw.roll, tl.begin(w.Context())
		}
		meddle := func(times int, what func()) {
			w.m.Inject(coordtest.Rule{Method: coordtest.Range, Skip: 1, Times: times, Action: coordtest.Before(what)})
		}
		// A host that comes and one that goes while the pages are read belong to the watch.
		rev := w.m.Rev()
		meddle(1, func() { w.m.Delete(HostsPrefix + "4"); w.host("3a", "") })
		if r, err := read(); err != nil || len(r.hosts) != 5 || r.hosts["4"] == nil || r.rev != rev {
			w.Errorf("%v %+v", err, r)
		}
		// A revision that is compacted meanwhile is given up for a later one, but not for ever.
		compact := func() { catchUp(w); w.must(w.m.Compact(w.m.Rev())) }
		meddle(1, compact)
		if r, err := read(); err != nil || len(r.hosts) != 5 || r.hosts["3a"] == nil {
			w.Errorf("%v %+v", err, r)
		}
		meddle(coordtest.Forever, compact)
		if _, err := read(); !errors.Is(err, rpctypes.ErrCompacted) {
			w.Error(err)
		}
	})
}

func TestThereIsNoWatcherWithoutAList(t *testing.T) {
	for name, c := range map[string]struct {
		rule coordtest.Rule
		want error
		at   time.Duration
	}{
		"refused":  {coordtest.Rule{Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)}, rpctypes.ErrPermissionDenied, 0},
		"silent":   {coordtest.Rule{Times: coordtest.Forever, Action: coordtest.LoseRequest()}, context.DeadlineExceeded, 17 * time.Second},
		"at first": {coordtest.Rule{Times: 2, Action: coordtest.LoseRequest()}, nil, 12 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				w.m.Inject(c.rule)
				hw, err := NewHostWatcher(w.Context(), w.m.Client(w), WatcherOptions{})
				if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || w.now() > c.at {
					w.Errorf("%v after %v", err, w.now())
				}
				if hw != nil {
					w.must(hw.Close())
				}
			})
		})
	}
	t.Run("given up", func(t *testing.T) {
		inBubble(t, coordtest.Options{}, func(w *world) {
			w.m.Stop(0)
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			defer cancel()
			if _, err := NewHostWatcher(ctx, w.m.Client(w), WatcherOptions{}); !errors.Is(err, context.DeadlineExceeded) || w.now() != time.Second {
				w.Errorf("%v after %v", err, w.now())
			}
		})
	})
	t.Run("options", func(t *testing.T) {
		t.Parallel()
		for _, o := range []WatcherOptions{{DownGrace: -1}, {StaleAfter: time.Millisecond}, {StaleAfter: -time.Second}} {
			if _, err := NewHostWatcher(t.Context(), nil, o); !errors.Is(err, ErrInvalidOption) {
				t.Errorf("%+v: %v", o, err)
			}
		}
	})
}

func TestAStreamEndsOnlyWithItsWatcherAndSaysWhy(t *testing.T) {
	enough := errors.New("enough")
	for name, c := range map[string]struct {
		end  func(hw *HostWatcher, cancel context.CancelCauseFunc, cli *clientv3.Client)
		want error
	}{
		"the context": {func(_ *HostWatcher, cancel context.CancelCauseFunc, _ *clientv3.Client) { cancel(enough) }, enough},
		"Close":       {func(hw *HostWatcher, _ context.CancelCauseFunc, _ *clientv3.Client) { _ = hw.Close() }, ErrClosed},
		"the client":  {func(_ *HostWatcher, _ context.CancelCauseFunc, cli *clientv3.Client) { _ = cli.Close() }, ErrClientClosed},
	} {
		for _, reading := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, reading %v", name, reading), func(t *testing.T) {
				inBubble(t, coordtest.Options{}, func(w *world) {
					w.host("a", "")
					ctx, cancel := context.WithCancelCause(w.Context())
					defer cancel(nil)
					cli := w.m.Client(w)
					hw, err := NewHostWatcher(ctx, cli, WatcherOptions{})
					w.must(err)
					if reading {
						<-hw.Events()
					}
					synctest.Wait()
					if err := hw.Err(); err != nil {
						w.Error(err)
					}
					c.end(hw, cancel, cli)
					hw.Wait()
					if ev, open := <-hw.Events(); open {
						w.Errorf("%+v", ev)
					}
					w.must(hw.Close())
					if err := hw.Err(); !errors.Is(err, c.want) {
						w.Errorf("%v, want %v", err, c.want)
					}
				})
			})
		}
	}
}

func TestStaleAndFreshAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	o := WatcherOptions{Logger: slog.New(slog.NewTextHandler(&log, nil)), StaleAfter: time.Second}
	inFleet(t, o, nil, func(w *fleet) {
		w.m.Stop(0)
		w.silent(time.Minute)
		w.m.Cont(0)
		w.silent(time.Minute)
		w.must(w.Close())
		if got := log.String(); strings.Count(got, "level=WARN") != 1 || strings.Count(got, "level=INFO") != 1 {
			w.Error(got)
		}
	})
}

// TestWhatAQuietWatcherCosts counts the requests of one that has nothing to tell.
func TestWhatAQuietWatcherCosts(t *testing.T) {
	inFleet(t, everything, []string{"a"}, func(w *fleet) {
		w.hears("up a", "snapshot-done")
		synctest.Wait()
		w.m.ResetCalls()
		w.silent(time.Minute + time.Second)
		if r, n := w.m.Calls(coordtest.Range), w.m.Calls(coordtest.Watch); r != 12 || n != 0 {
			w.Errorf("%d reads and %d watches in a minute, want 12 and 0", r, n)
		}
	})
}

// A watch that is given up before it was created would leave its stream open in the client, and the watch in etcd, for as long
// as the client lives.
func TestAWatcherClosedWhileItsWatchIsMadeLeavesNoWatch(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.m.HoldWatches(true)
		hw, err := NewHostWatcher(w.Context(), w.m.Client(w), WatcherOptions{})
		w.must(err)
		w.must(w.m.Await(w.Context(), func() bool { return w.m.Watches() == 1 }))
		time.AfterFunc(50*time.Millisecond, func() { w.m.HoldWatches(false) })
		w.must(hw.Close())
		time.Sleep(time.Second) // fake time
		synctest.Wait()
		if n := w.m.Watches(); n != 0 {
			w.Errorf("%d watches are left", n)
		}
	})
}

// Where etcd does not answer, Close does not wait for it.
func TestAWatcherIsClosedAlthoughItsWatchIsNotMade(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		w.m.HoldWatches(true)
		hw, err := NewHostWatcher(w.Context(), w.m.Client(w), WatcherOptions{})
		w.must(err)
		w.must(w.m.Await(w.Context(), func() bool { return w.m.Watches() == 1 }))
		began := w.now()
		w.must(hw.Close())
		if took := w.now() - began; took != createWithin {
			w.Errorf("it took %v", took)
		}
	})
}

// TestAWatchHasAStreamOfItsOwn: watches that share a stream can starve each other.
func TestAWatchHasAStreamOfItsOwn(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		cli := w.m.Client(w)
		streams := map[string]bool{}
		w.m.Inject(coordtest.Rule{Method: coordtest.Watch, Times: coordtest.Forever, When: func(c *coordtest.Call) bool {
			sent, _ := metadata.FromIncomingContext(c.Context)
			streams[sent["coord-watch"][0]] = true
			if len(sent[rpctypes.MetadataRequireLeaderKey]) == 0 {
				w.Error("a watch that a member without a leader keeps open")
			}
			return false
		}})
		var all []*HostWatcher
		for range 2 {
			hw, err := NewHostWatcher(w.Context(), cli, WatcherOptions{})
			w.must(err)
			all = append(all, hw)
		}
		synctest.Wait()
		w.m.EndWatches(rpctypes.ErrGRPCNoLeader)
		synctest.Wait()
		w.host("a", "")
		for _, hw := range all {
			<-hw.Events()
			w.must(hw.Close())
		}
		synctest.Wait()
		if len(streams) != 4 || w.m.Watches() != 0 {
			w.Errorf("%v streams were opened, %d watches are left", streams, w.m.Watches())
		}
	})
}
