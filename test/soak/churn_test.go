package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

// samples is how many there are of a run.
const samples = 60

// churn is one process in which everything comes and goes.
type churn struct {
	*testing.T
	cli  *clientv3.Client
	ctx  context.Context // ends with the run
	work sync.WaitGroup

	hosts, seen, terms, lost, slots, sessions atomic.Int64
	trouble                                   atomic.Int64 // requests that a busy etcd did not answer in time
}

// TestChurn lets everything come and go: nothing stays behind.
func TestChurn(t *testing.T) {
	etcd := etcdtest.Cluster(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &churn{T: t, cli: etcd.Client(t), ctx: ctx}
	daemon := c.daemon(etcd.Endpoint(0))

	c.work.Go(c.watch)
	for i := range 4 {
		c.work.Go(func() { c.host(i) })
		c.work.Go(func() { c.lead(i) })
		c.work.Go(func() { c.seat(i) })
	}
	c.work.Go(c.watchers)
	c.work.Go(c.revoke)
	all := c.measure(etcd.Pid(0), daemon.Pid())
	c.all()
	cancel()
	c.work.Wait()

	c.Logf("%v: %d hosts came and went (%d events), %d terms, %d slots, %d holds lost, %d sessions opened, %d times no answer in time",
		*churnFor, c.hosts.Load(), c.seen.Load(), c.terms.Load(), c.slots.Load(), c.lost.Load(), c.sessions.Load(), c.trouble.Load())
	c.Log("\n" + table(t, all, *churnFor >= time.Minute))
	c.left()
}

// all waits until there was some of everything: in a short run on a busy machine there may not have been.
func (c *churn) all() {
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		some := true
		for _, n := range []*atomic.Int64{&c.hosts, &c.seen, &c.terms, &c.slots, &c.lost, &c.sessions} {
			some = some && n.Load() > 0
		}
		if some {
			return
		}
		select {
		case <-look.C:
		case <-late.C:
			c.Error("not everything came and went")
			return
		}
	}
}

// daemon starts conchd with jobs of a moment.
func (c *churn) daemon(endpoint string) *run.Process {
	for _, name := range []string{"a", "b", "c"} {
		if _, err := c.cli.Put(c.ctx, record.JobKey(name), `{"schedule":"@every 1s","cmd":["true"]}`); err != nil {
			c.Fatal(err)
		}
	}
	d := run.StartWith(c.T, run.Options{
		Path: run.BuildDaemon(c.T).Daemon, Env: []string{"CONCH_ENDPOINTS=" + endpoint}, Args: []string{"--host", "soak"},
	})
	d.WaitLog("msg=registered")
	return d
}

// pause waits for up to so long, and reports whether the run goes on.
func (c *churn) pause(most time.Duration) bool {
	select {
	case <-time.After(rand.N(most)):
		return true
	case <-c.ctx.Done():
		return false
	}
}

// tell reports an error that neither the end of the run explains, nor a machine on which etcd does not answer in time: that is
// counted.
func (c *churn) tell(err error) {
	switch {
	case err == nil || c.ctx.Err() != nil:
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, rpctypes.ErrTimeout):
		c.trouble.Add(1)
	default:
		c.Error(err)
	}
}

// whole is the context of what has to come to its end.
func (c *churn) whole() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.ctx), 10*time.Second)
}

// host registers and leaves, again and again.
func (c *churn) host(i int) {
	for n := 0; c.pause(200 * time.Millisecond); n++ {
		name := coord.HostMetadata{HostUUID: fmt.Sprintf("h%d-%d", i, n)}
		h, err := coord.RegisterHostLiveness(c.ctx, c.cli, name, coord.LivenessOptions{LeaseTTLSec: 5})
		if c.tell(err); err != nil {
			continue
		}
		c.pause(300 * time.Millisecond)
		ctx, cancel := c.whole()
		c.tell(h.Stop(ctx))
		cancel()
		c.hosts.Add(1)
	}
}

// watch hears of hosts all the while.
func (c *churn) watch() {
	w, err := coord.NewHostWatcher(c.ctx, c.cli, coord.WatcherOptions{})
	if c.tell(err); err != nil {
		return
	}
	for range w.Events() { // which end with the run
		c.seen.Add(1)
	}
	c.tell(w.Close())
}

// watchers come and go, of hosts and of an office.
func (c *churn) watchers() {
	for c.pause(time.Second) {
		w, err := coord.NewHostWatcher(c.ctx, c.cli, coord.WatcherOptions{})
		if c.tell(err); err != nil {
			continue
		}
		<-w.Events()
		c.tell(w.Close())
	}
}

// lead takes turns at an office with the others, on a session that is replaced when it is lost.
func (c *churn) lead(i int) {
	for c.pause(50 * time.Millisecond) {
		e, err := coord.NewElection(c.ctx, c.cli, coord.ElectionOptions{
			Key: "/soak/office", Settle: coord.SettleOptions{Open: "/soak/open", Last: "/soak/last"}, TTL: 5,
		})
		if c.tell(err); err != nil {
			continue
		}
		c.sessions.Add(1)
		for range 10 {
			err = e.Do(c.ctx, fmt.Sprint(i), func(ctx context.Context, _ *coord.Term) error {
				select {
				case <-time.After(rand.N(20 * time.Millisecond)):
				case <-ctx.Done():
				}
				return nil
			})
			if c.count(&c.terms, err); err != nil {
				break
			}
		}
		_ = e.Close() // of one that was lost it says so
	}
}

// seat takes slots of a semaphore.
func (c *churn) seat(i int) {
	m, err := coord.NewSemaphore(c.cli, coord.SemaphoreOptions{
		Key: "/soak/seats", Max: 2, TTL: 5 * time.Second, Settle: coord.SettleOptions{Open: "/soak/seat-open", Last: "/soak/seat-last"},
	})
	if c.tell(err); err != nil {
		return
	}
	for c.pause(20 * time.Millisecond) {
		c.count(&c.slots, m.Do(c.ctx, fmt.Sprint(i), func(ctx context.Context, _ *coord.Term) error {
			select {
			case <-time.After(rand.N(20 * time.Millisecond)):
			case <-ctx.Done():
			}
			return nil
		}))
	}
}

// count counts a hold that came to its end, or was lost, which is no error here.
func (c *churn) count(held *atomic.Int64, err error) {
	switch {
	case err == nil:
		held.Add(1)
	case errors.Is(err, coord.ErrSessionLost), errors.Is(err, coord.ErrTermLost), errors.Is(err, coord.ErrUndecided):
		c.lost.Add(1)
	default:
		c.tell(err)
	}
}

// revoke revokes the lease of somebody who holds, or waits to.
func (c *churn) revoke() {
	for c.pause(2 * time.Second) {
		for _, prefix := range []string{"/soak/office/", "/soak/seats/"} {
			got, err := c.cli.Get(c.ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1))
			if c.tell(err); err != nil || len(got.Kvs) == 0 {
				continue
			}
			full, err := c.cli.Get(c.ctx, string(got.Kvs[0].Key))
			if c.tell(err); err == nil && len(full.Kvs) == 1 {
				_, _ = c.cli.Revoke(c.ctx, clientv3.LeaseID(full.Kvs[0].Lease)) // it may have gone meanwhile
			}
		}
	}
}

// measure takes the samples; before each third etcd's history is compacted, so that its data can be flat.
func (c *churn) measure(etcd, daemon int) []*series {
	const mb = 1 << 20
	var (
		goroutines = &series{name: "goroutines", scale: 1, slack: 30}
		files      = &series{name: "descriptors", scale: 1, slack: 5}
		heap       = &series{name: "heap, MB", scale: mb, slack: 3 * mb}
		data       = &series{name: "etcd data, MB", scale: mb, slack: 8 * mb} // it fills for as long as claims are kept, an hour
		used       = &series{name: "etcd memory, MB", scale: mb, slack: 60 * mb}
		memory     = &series{name: "conchd memory, MB", scale: mb, slack: 8 * mb}
		open       = &series{name: "conchd descriptors", scale: 1, slack: 5}
		threads    = &series{name: "conchd threads", scale: 1, slack: 5}
	)
	each := time.NewTicker(*churnFor / samples)
	defer each.Stop()
	for n := range samples {
		<-each.C
		if status, err := c.cli.Status(c.ctx, c.cli.Endpoints()[0]); err == nil {
			data.at = append(data.at, float64(status.DbSize))
			if n%3 == 0 {
				_, err := c.cli.Compact(c.ctx, status.Header.Revision)
				c.tell(err)
			}
		} else {
			c.tell(err)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap.at = append(heap.at, float64(m.HeapAlloc))
		goroutines.at = append(goroutines.at, float64(runtime.NumGoroutine()))
		files.at = append(files.at, c.descriptors(os.Getpid()))
		open.at = append(open.at, c.descriptors(daemon))
		used.at = append(used.at, c.status(etcd, "VmRSS:")*1024)
		memory.at = append(memory.at, c.status(daemon, "VmRSS:")*1024)
		threads.at = append(threads.at, c.status(daemon, "Threads:"))
	}
	return []*series{goroutines, files, heap, data, used, memory, open, threads}
}

// descriptors is how many files a process has open.
func (c *churn) descriptors(pid int) float64 {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	c.tell(err)
	return float64(len(all))
}

// status is a number of a process, as the kernel has it.
func (c *churn) status(pid int, field string) float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	c.tell(err)
	_, rest, _ := strings.Cut(string(raw), field)
	var n float64
	_, err = fmt.Sscan(rest, &n)
	c.tell(err)
	return n
}

// left waits until nothing is left in etcd: all who came have left, and who could not say so runs out.
func (c *churn) left() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), time.Minute)
	defer cancel()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for _, prefix := range []string{"/soak/office/", "/soak/seats/", "/soak/seats.slots/", coord.HostsPrefix} {
		for {
			got, err := c.cli.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err == nil && got.Count == 0 {
				break
			}
			if ctx.Err() != nil {
				c.Errorf("%s: something is left: %v", prefix, err)
				break
			}
			<-look.C
		}
	}
}
