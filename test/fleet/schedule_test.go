package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// limit bounds every wait. It is reached only where what is waited for never comes.
const limit = time.Minute

// audience is who believes every event.
type audience struct {
	up    map[string]string // version
	wrong error
}

func (a *audience) hear(ev coord.HostEvent) {
	_, up := a.up[ev.HostUUID]
	switch ev.Kind {
	case coord.HostUp, coord.HostUpdate:
		if up != (ev.Kind == coord.HostUpdate) {
			a.wrong = fmt.Errorf("told %+v; up before: %v", ev, up)
		}
		a.up[ev.HostUUID] = ev.Metadata.Version
	case coord.HostDown:
		if !up || ev.Metadata.HostUUID != ev.HostUUID || ev.Reason == 0 {
			a.wrong = fmt.Errorf("told %+v; up before: %v", ev, up)
		}
		delete(a.up, ev.HostUUID)
	}
}

// stage is what a schedule plays on: an etcd of its own, reached by the watcher through a proxy.
type stage struct {
	t      *testing.T
	etcd   *etcdtest.Server
	proxy  *etcdtest.Proxy
	cli    *clientv3.Client // around the proxy
	prefix string
	leases []clientv3.LeaseID
	n      int
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, etcd: etcdtest.One(t), prefix: "/hosts/"}
	s.proxy = etcdtest.NewProxy(t, s.etcd.Endpoint())
	s.cli = s.etcd.Client(t)
	return s
}

func (s *stage) do(ops ...clientv3.Op) int64 {
	s.t.Helper()
	got, err := s.cli.Txn(s.t.Context()).Then(ops...).Commit()
	must(s.t, err)
	return got.Header.Revision
}

func (s *stage) key() string { return s.prefix + string(rune('a'+s.n%4)) }

// put registers a host, every second time on a lease.
func (s *stage) put(extra string) {
	value := fmt.Sprintf(`{"version":"%d","started_at_unix_ns":%d%s}`, s.n%5, s.n%3, extra)
	if s.n%2 == 0 {
		s.do(clientv3.OpPut(s.key(), value))
		return
	}
	lease, err := s.cli.Grant(s.t.Context(), 600)
	must(s.t, err)
	s.leases = append(s.leases, lease.ID)
	s.do(clientv3.OpPut(s.key(), value, clientv3.WithLease(lease.ID)))
}

func (s *stage) compact() {
	rev := s.do(clientv3.OpPut("/noise", ""))
	_, err := s.cli.Compact(s.t.Context(), rev)
	must(s.t, err)
}

// steps are what can happen.
var steps = map[string]func(s *stage){
	"put":         func(s *stage) { s.put("") },
	"put too":     func(s *stage) { s.put("") },
	"put thrice":  func(s *stage) { s.put(""); s.put(""); s.put("") },
	"say goodbye": func(s *stage) { s.put(`,"stopping":true`) },
	"garbage":     func(s *stage) { s.do(clientv3.OpPut(s.key(), "{")) },
	"delete":      func(s *stage) { s.do(clientv3.OpDelete(s.key())) },
	"revoke all": func(s *stage) {
		for _, l := range s.leases {
			_, err := s.cli.Revoke(s.t.Context(), l)
			must(s.t, err)
		}
		s.leases = nil
	},
	"compact":           (*stage).compact,
	"break connections": func(s *stage) { s.proxy.Reset() },
	"cut off":           func(s *stage) { s.proxy.Cut() },
	"fall silent":       func(s *stage) { s.proxy.Blackhole() },
	"drop what etcd says": func(s *stage) {
		s.proxy.DropReplies()
	},
	"heal": func(s *stage) { s.proxy.Revive() },
	"go on": func(s *stage) {
		// A round trip through the proxy, if it lets it pass: the watcher has its chance to act.
		ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Millisecond)
		defer cancel()
		_ = probe(ctx, s.proxy.Addr())
	},
}

func probe(ctx context.Context, address string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// TestAWatchersViewIsEtcdsTruth plays hundreds of schedules of changes, faults on the way to etcd, compactions and
// slow consumers. In the end the watcher's view, and what it told, are the keys that there are; and whatever it told on
// the way, for each host up and down alternated.
func TestAWatchersViewIsEtcdsTruth(t *testing.T) {
	t.Parallel()
	for run := range 4 {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			rapid.Check(t, func(rt *rapid.T) {
				plan := rapid.SliceOfN(rapid.SampledFrom(slices.Sorted(maps.Keys(steps))), 1, 20).Draw(rt, "plan")
				reads := rapid.SliceOfN(rapid.IntRange(0, 5), len(plan), len(plan)).Draw(rt, "reads")
				if err := s.play(plan, reads); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// play plays one schedule; after each step as many events are taken as reads says, if there are any.
func (s *stage) play(plan []string, reads []int) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{s.proxy.Addr()}, Context: ctx, DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second})
	if err != nil {
		return err
	}
	defer cli.Close()
	s.proxy.Revive()
	w, err := coord.NewHostWatcher(ctx, cli, coord.WatcherOptions{Prefix: s.prefix, Extended: true, StaleAfter: time.Second})
	if err != nil {
		return err
	}
	defer w.Close()
	a := audience{up: map[string]string{}}
	for i, step := range plan {
		s.n++
		steps[step](s)
		for range reads[i] {
			select {
			case ev := <-w.Events():
				a.hear(ev)
			default:
			}
		}
	}

	// All is well again, and what was told becomes what there is.
	s.proxy.Revive()
	truth, err := s.truth(ctx)
	if err != nil {
		return err
	}
	told := func() error {
		if seen := view(w); a.wrong == nil && (!maps.Equal(a.up, truth) || !maps.Equal(seen, truth)) {
			return fmt.Errorf("told %v, the view is %v, there is %v", a.up, seen, truth)
		}
		return a.wrong
	}
	for told() != nil && a.wrong == nil {
		select {
		case ev := <-w.Events():
			a.hear(ev)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), told())
		}
	}
	return told()
}

// view is the versions of the hosts that w sees.
func view(w *coord.HostWatcher) map[string]string {
	all := map[string]string{}
	for _, h := range w.Snapshot().Hosts {
		all[h.Metadata.HostUUID] = h.Metadata.Version
	}
	return all
}

func (s *stage) truth(ctx context.Context) (map[string]string, error) {
	got, err := s.cli.Get(ctx, s.prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, kv := range got.Kvs {
		var m struct{ Version string }
		_ = json.Unmarshal(kv.Value, &m) // garbage has none
		all[strings.TrimPrefix(string(kv.Key), s.prefix)] = m.Version
	}
	return all, nil
}

// TestAWatcherAcrossARestart has etcd away for a while, with changes while it starts.
func TestAWatcherAcrossARestart(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.put("")
	w, err := coord.NewHostWatcher(t.Context(), s.etcd.Client(t), coord.WatcherOptions{Prefix: s.prefix, Extended: true, StaleAfter: time.Second})
	must(t, err)
	defer w.Close()
	expect(t, w, "up", "snapshot-done")
	s.etcd.Stop()
	expect(t, w, "stale")
	s.etcd.Start()
	expect(t, w, "fresh")
	s.do(clientv3.OpDelete(s.key()))
	expect(t, w, "down")
}

// TestAWatcherOfAMemberWithoutQuorum stops two of three members: what is left keeps the connection and cannot
// vouch for anything.
func TestAWatcherOfAMemberWithoutQuorum(t *testing.T) {
	t.Parallel()
	c := etcdtest.Cluster(t, 3)
	cli := c.Client(t)
	_, err := cli.Put(t.Context(), coord.HostsPrefix+"a", "{}")
	must(t, err)
	w, err := coord.NewHostWatcher(t.Context(), c.Client(t, 0), coord.WatcherOptions{Extended: true, StaleAfter: 2 * time.Second})
	must(t, err)
	defer w.Close()
	expect(t, w, "up", "snapshot-done")
	c.Stop(1, 2)
	expect(t, w, "stale")
	c.Cont(1, 2)
	expect(t, w, "fresh")
	_, err = cli.Delete(t.Context(), coord.HostsPrefix+"a")
	must(t, err)
	expect(t, w, "down")
}

// expect takes the next events, which are of these kinds. What a busy machine takes for silence is passed over.
func expect(t *testing.T, w *coord.HostWatcher, kinds ...string) {
	t.Helper()
	for _, want := range kinds {
		for got := ""; got != want; {
			select {
			case ev := <-w.Events():
				if got = ev.Kind.String(); got != want && ev.Kind != coord.ViewStale && ev.Kind != coord.ViewFresh {
					t.Fatalf("told %+v, want %s", ev, want)
				}
			case <-time.After(limit):
				t.Fatalf("never told %s", want)
			}
		}
	}
}
