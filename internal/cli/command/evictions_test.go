package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// ask puts the request to leave on the lease of the one that holds.
func ask(t *testing.T, kind, name string, lease clientv3.LeaseID, e hold.Eviction) {
	t.Helper()
	cli := etcdtest.Shared(t).Client(t)
	_, err := cli.Put(t.Context(), hold.EvictKey(kind, name, int64(lease)).String(), e.Encode(), clientv3.WithLease(lease))
	if err != nil {
		t.Fatal(err)
	}
}

// awaits polls for what other processes do, and nobody tells.
func awaits(t *testing.T, there func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !there(); time.Sleep(2 * time.Millisecond) { // a poll
		if time.Now().After(end) {
			t.Fatal("it does not come about")
		}
	}
}

// content is what is in a file; nothing where it is not there.
func content(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(raw)
}

func TestAHolderThatIsAskedToLeaveLeavesInFullOrder(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{hold.KindElect, hold.KindSema} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, name := at(t), etcdtest.Office(t)
			dir := t.TempDir()
			status, undone := filepath.Join(dir, "status"), filepath.Join(dir, "undone")
			args := []string{
				kind, name, "--status-file", status, "--on-lose", `echo "$CONCH_HELD" >` + undone, "--",
				"sh", "-c", `trap 'exit 5' TERM; echo up >"$1"; while :; do sleep 1; done`, "sh", filepath.Join(dir, "up"),
			}
			lastKey := settle(name).Last
			if kind == hold.KindSema {
				args = append(args[:2:2], append([]string{"--max", "2"}, args[2:]...)...)
				lastKey = hold.Key{Area: hold.AreaLast, Kind: kind, Name: name, Max: 2}.String()
			}
			code := s.start(args...)
			awaits(t, func() bool { return exists(filepath.Join(dir, "up")) })
			cli := etcdtest.Shared(t).Client(t)
			got, err := cli.Get(t.Context(), hold.AreaRange(hold.Area(kind))+name+"/", clientv3.WithPrefix())
			if err != nil || len(got.Kvs) != 1 {
				t.Fatal(got, err)
			}
			ask(t, kind, name, clientv3.LeaseID(got.Kvs[0].Lease), hold.Eviction{Host: "desk", PID: 7})
			if c := wait(t, code); c != hold.CodeLost {
				t.Errorf("code %d; %s", c, s.stderr.String())
			}
			contains(t, s.stderr.String(), `msg=evicted`, `reason="asked for by desk pid 7"`, "msg=released", "reason=evicted")
			contains(t, content(t, status), `"outcome":"evicted"`, `"code":70`, `"reason":"hold evicted: asked for by desk pid 7"`)
			if got := content(t, undone); got != "yes\n" {
				t.Errorf("on-lose saw held %q", got)
			}
			end, found, err := coord.LastEnd(t.Context(), cli, coord.SettleOptions{Last: lastKey})
			if err != nil || !found || end.How != coord.End(hold.EndEvicted) {
				t.Errorf("%+v %v %v", end, found, err)
			}
			left, err := cli.Get(t.Context(), hold.EvictRange(kind, name), clientv3.WithPrefix())
			if err != nil || len(left.Kvs) != 0 {
				t.Errorf("the request is left: %v %v", left, err)
			}
		})
	}
}

// A request is heard, whenever it came and whatever etcd did meanwhile. Red without the read, with a watch from a
// revision of its own choice, and when a watch that has ended is the end of it.
func TestARequestToLeaveIsHeardInTheEnd(t *testing.T) {
	t.Parallel()
	const lease = 31
	key := hold.EvictKey(hold.KindElect, "x", lease).String()
	put := func(t *testing.T, m *coordtest.Medium) {
		if _, err := m.Put(key, hold.Eviction{Host: "desk", PID: 7}.Encode(), 0); err != nil {
			t.Fatal(err)
		}
	}
	for name, play := range map[string]func(t *testing.T, m *coordtest.Medium){
		"there before anybody listened": put,
		"while it is watched":           func(t *testing.T, m *coordtest.Medium) { time.Sleep(time.Second); put(t, m) },
		"after a read that failed": func(t *testing.T, m *coordtest.Medium) {
			m.Inject(coordtest.Rule{Method: coordtest.Range, Times: 3, Action: coordtest.Refuse(rpctypes.ErrGRPCNoLeader)})
			put(t, m)
		},
		"between the read and the watch": func(t *testing.T, m *coordtest.Medium) {
			m.Inject(coordtest.Rule{Method: coordtest.Watch, Action: coordtest.Before(func() { put(t, m) })})
			time.Sleep(time.Second)
		},
		"after the watch was refused, again and again": func(t *testing.T, m *coordtest.Medium) {
			m.Inject(coordtest.Rule{Method: coordtest.Watch, Times: 7, Action: coordtest.Refuse(rpctypes.ErrGRPCNoLeader)})
			time.Sleep(time.Minute)
			put(t, m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := coordtest.Start(t, coordtest.Options{})
				e := listen(m.Client(t), hold.Info{Kind: hold.KindElect, Name: "x", Lease: lease})
				defer e.stop()
				play(t, m)
				select {
				case by := <-e.asked:
					if by.Error() != "hold evicted: asked for by desk pid 7" || !errors.Is(by, hold.ErrEvicted) {
						t.Error(by)
					}
				case <-time.After(10 * time.Second):
					t.Error("nobody heard of it")
				}
			})
		})
	}
}

func TestWhoIsGoneListensToNobody(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, listenAfter / 2, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m := coordtest.Start(t, coordtest.Options{})
			e := listen(m.Client(t), hold.Info{Kind: hold.KindElect, Name: "x", Lease: 31})
			time.Sleep(after)
			e.stop()
			if n := m.Calls(coordtest.Range); (n > 0) != (after > listenAfter) {
				t.Errorf("%d reads in %v", n, after)
			}
		})
	}
}

// A wrapper that is asked to stay away does, for as long as its pauses are not longer anyway.
func TestWhoWasEvictedStaysAwayForTheCooldown(t *testing.T) {
	t.Parallel()
	s, office := at(t), etcdtest.Office(t)
	cli := etcdtest.Shared(t).Client(t)
	code := s.start("elect", office, "--restart", "--", "sleep", "600")
	first := queue(t, cli, office, 1)[0]
	ask(t, hold.KindElect, office, first.Lease, hold.Eviction{Host: "desk", PID: 7, Cooldown: time.Hour})
	queue(t, cli, office, 0)
	said := func() string {
		for line := range strings.Lines(s.stderr.String()) {
			if strings.Contains(line, "msg=restarting") {
				return line
			}
		}
		return ""
	}
	awaits(t, func() bool { return said() != "" })
	contains(t, said(), "in=1h0m0s", `reason="hold evicted: asked for by desk pid 7"`)
	s.signals <- syscall.SIGTERM
	if c := wait(t, code); c != 128+15 {
		t.Errorf("code %d", c)
	}
}
