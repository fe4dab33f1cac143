package fleet

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// size is the number of hosts of a large fleet.
const size = 10_000

// TestAFleetOfTenThousand registers ten thousand hosts, each on a lease of its own, and ends all leases at once.
func TestAFleetOfTenThousand(t *testing.T) {
	s := etcdtest.One(t)
	cli := s.Client(t)
	fleet := map[string]coord.HostMetadata{}
	for i := range size {
		m := coord.HostMetadata{
			HostUUID: fmt.Sprintf("5f3c0c8e-6f0b-4c55-9d0e-%012d", i), Hostname: fmt.Sprintf("dc1-rack%02d-h%05d", i%40, i), Hypervisor: "qemu",
			Version: "10.0.2", StartedAt: time.Now().UnixNano(), Labels: map[string]string{"zone": fmt.Sprint("z", i%3), "role": "compute"},
		}
		fleet[m.HostUUID] = m
	}
	leases := register(t, cli, fleet)

	// The snapshot is there in little more than the time of reading and decoding the keys. The best of a few
	// rounds counts: by the clock, or where others keep the machine busy by the time of the processor.
	raw, ours := never, never
	for range 12 {
		raw = raw.best(spent(func() { readAndDecode(t, cli) }))
		ours = ours.best(spent(func() { must(t, snapshot(t, cli).Close()) }))
	}
	t.Logf("%d hosts: read and decoded in %+v, told in %+v", size, raw, ours)
	if ours.clock > raw.clock*3/2 && ours.cpu > raw.cpu*3/2 {
		t.Errorf("the snapshot took %+v, want at most 1.5 times the %+v of a read", ours, raw)
	}

	// What is kept of a host, by the watcher and in a view, is small.
	before := heap()
	w := snapshot(t, cli)
	defer w.Close()
	kept := heap() - before
	view := w.Snapshot()
	seen := heap() - before - kept
	t.Logf("a watcher keeps %d bytes a host, a view %d", kept/size, seen/size)
	if kept/size >= 1024 || seen/size >= 1024 || len(view.Hosts) != size {
		t.Errorf("%d and %d bytes a host of %d, want less than 1024", kept/size, seen/size, len(view.Hosts))
	}

	// All leases end at once: one Down each, with what the host had said.
	each(leases, func(l clientv3.LeaseID) {
		if _, err := cli.Revoke(t.Context(), l); err != nil {
			t.Error(err)
		}
	})
	for n := range size {
		ev := next(t, w)
		m, known := fleet[ev.HostUUID]
		if ev.Kind != coord.HostDown || ev.Reason != coord.HostExpired || !known || ev.Metadata.Hostname != m.Hostname || ev.Metadata.Labels["zone"] != m.Labels["zone"] {
			t.Fatalf("event %d: %+v", n, ev)
		}
		delete(fleet, ev.HostUUID)
	}
	select {
	case ev := <-w.Events():
		t.Errorf("one more: %+v", ev)
	default:
	}
	if n := len(w.Snapshot().Hosts); n != 0 {
		t.Errorf("%d hosts are left in the view", n)
	}
}

func next(t *testing.T, w *coord.HostWatcher) coord.HostEvent {
	t.Helper()
	select {
	case ev := <-w.Events():
		return ev
	case <-time.After(limit):
		t.Fatal("no event")
		return coord.HostEvent{}
	}
}

// each calls f for all, a few dozen at a time.
func each[T any](all []T, f func(T)) {
	todo := make(chan T)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for one := range todo {
				f(one)
			}
		})
	}
	for _, one := range all {
		todo <- one
	}
	close(todo)
	wg.Wait()
}

func register(t *testing.T, cli *clientv3.Client, fleet map[string]coord.HostMetadata) (leases []clientv3.LeaseID) {
	t.Helper()
	var hosts []coord.HostMetadata
	for _, m := range fleet {
		hosts = append(hosts, m)
	}
	var mu sync.Mutex
	each(hosts, func(m coord.HostMetadata) {
		value, _ := json.Marshal(m)
		lease, err := cli.Grant(t.Context(), 3600)
		if err == nil {
			_, err = cli.Put(t.Context(), coord.HostsPrefix+m.HostUUID, string(value), clientv3.WithLease(lease.ID))
		}
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		leases = append(leases, lease.ID)
		mu.Unlock()
	})
	return leases
}

// effort is what something took.
type effort struct{ clock, cpu time.Duration }

var never = effort{time.Hour, time.Hour}

func (e effort) best(o effort) effort { return effort{min(e.clock, o.clock), min(e.cpu, o.cpu)} }

func spent(f func()) effort {
	began, cpu := time.Now(), cpuTime()
	f()
	return effort{time.Since(began), cpuTime() - cpu}
}

// cpuTime is what this process has used, the member of etcd in it included.
func cpuTime() time.Duration {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r) // there is nothing to get wrong
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func readAndDecode(t *testing.T, cli *clientv3.Client) {
	t.Helper()
	got, err := cli.Get(t.Context(), coord.HostsPrefix, clientv3.WithPrefix())
	must(t, err)
	all := make([]coord.HostMetadata, len(got.Kvs))
	for i, kv := range got.Kvs {
		must(t, json.Unmarshal(kv.Value, &all[i]))
	}
	if len(all) != size {
		t.Fatalf("%d hosts, want %d", len(all), size)
	}
}

// snapshot is a watcher whose consumer was told all hosts.
func snapshot(t *testing.T, cli *clientv3.Client) *coord.HostWatcher {
	t.Helper()
	w, err := coord.NewHostWatcher(t.Context(), cli, coord.WatcherOptions{Extended: true, StaleAfter: time.Minute})
	must(t, err)
	for n := range size {
		if ev := <-w.Events(); ev.Kind != coord.HostUp {
			t.Fatalf("event %d: %+v", n, ev)
		}
	}
	if ev := <-w.Events(); ev.Kind != coord.SnapshotDone {
		t.Fatalf("at the end: %+v", ev)
	}
	return w
}

// heap is what is in use once the garbage is gone.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
