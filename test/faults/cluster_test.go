package faults

import (
	"context"
	"flag"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

// bounds are those of the wrapper's defaults.
func bounds(t *testing.T, ttl time.Duration) coord.Bounds {
	t.Helper()
	b, err := coord.NewBounds(ttl, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestASilentEtcdIsALossByTheClock(t *testing.T) {
	c := etcdtest.Cluster(t, 3)
	o := newOffice(t, c.Endpoints()...)
	a := o.elect("stubborn")
	first, grand := o.await("start", 1), o.await("grandchild", 1)
	b := bounds(t, 10*time.Second)
	time.Sleep(3 * b.Renew) // the renewals are what is tested: let some go by
	before := coord.Now()
	c.Stop()
	stopped := coord.Now()

	// The last verified renewal was sent at most one interval and one attempt before the silence began, and
	// not after it.
	term := o.await("term", 1)
	if early := before + b.Term - b.Renew - slack; term.at < early {
		t.Errorf("SIGTERM %v after the silence began, want not before %v", term.at-stopped, b.Term-b.Renew)
	}
	if late := stopped + b.Term + 500*time.Millisecond; term.at > late {
		t.Errorf("SIGTERM %v after the silence began, want by %v", term.at-stopped, b.Term)
	}
	for _, pid := range []int{first.pid, grand.pid} {
		if at := dead(t, pid); at > stopped+b.Kill+500*time.Millisecond {
			t.Errorf("process %d was killed %v after the silence began, want by %v", pid, at-stopped, b.Kill)
		}
	}
	if code := a.Wait(); code != 70 {
		t.Errorf("code %d, want 70; %s", code, a.Stderr())
	}
	c.Cont()
	o.done()
}

// probe watches whether the cluster has a leader, and keeps the longest silence.
type probe struct {
	mu      sync.Mutex
	last    time.Duration
	longest time.Duration
	stop    func()
}

func startProbe(t *testing.T, c *etcdtest.Group) *probe {
	ctx, cancel := context.WithCancel(context.Background())
	p := &probe{last: coord.Now()}
	cli := c.Client(t)
	var wg sync.WaitGroup
	for range 3 { // several, so that one that asks a stopped member does not count as silence
		wg.Go(func() {
			for ctx.Err() == nil {
				try, done := context.WithTimeout(ctx, 300*time.Millisecond)
				_, err := cli.Get(try, "probe")
				done()
				if err == nil {
					p.heard()
				}
			}
		})
	}
	p.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(p.stop)
	return p
}

func (p *probe) heard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := coord.Now()
	p.longest = max(p.longest, now-p.last)
	p.last = now
}

// end stops the probe and returns the longest silence.
func (p *probe) end() time.Duration {
	p.stop()
	p.heard()
	return p.longest
}

func TestATroubledEtcdIsNoLoss(t *testing.T) {
	// What is tested is that nothing happens, for longer than the TTL.
	quiet := func() { time.Sleep(12 * time.Second) }
	for name, hurt := range map[string]func(c *etcdtest.Group){
		"a follower stopped": func(c *etcdtest.Group) { c.Stop(c.Follower()); quiet() },
		"a follower killed":  func(c *etcdtest.Group) { c.Kill(c.Follower()); quiet() },
		"the leader killed":  func(c *etcdtest.Group) { c.Kill(c.Leader()); quiet() },
		"the leader stopped": func(c *etcdtest.Group) { c.Stop(c.Leader()); quiet() },
		"twenty moves of the leader": func(c *etcdtest.Group) {
			for range 20 {
				c.MoveLeader((c.Leader() + 1) % c.Len())
				time.Sleep(300 * time.Millisecond) // moves that follow at once would be one
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := etcdtest.Cluster(t, 3)
			o := newOffice(t, c.Endpoints()...)
			a := o.elect("meek")
			o.await("start", 1)
			p := startProbe(t, c)
			hurt(c)
			silence := p.end()
			t.Logf("longest silence seen by the probe: %v", silence)
			lost := strings.Contains(a.Stderr(), "msg=lost")
			if lost && silence <= bounds(t, 10*time.Second).Silence {
				t.Errorf("lost, although etcd was silent for %v only; %s", silence, a.Stderr())
			}
			if !lost && !run.Alive(o.acts()[0].pid) {
				t.Error("the child is gone without a loss")
			}
			o.done()
		})
	}
}

var pauses = flag.Int("pauses", 10, "how many rounds TestALeaderThatWasPausedAndResumes lives through, of eleven seconds each")

// TestALeaderThatWasPausedAndResumes is the case in which verified leases are revoked: the key goes at any moment
// around the resume, and the successor has to settle.
func TestALeaderThatWasPausedAndResumes(t *testing.T) {
	c := etcdtest.Cluster(t, 3)
	o := newOffice(t, c.Endpoints()...)
	ttl := 5 * time.Second
	var wrappers []*run.Process
	for range 3 {
		wrappers = append(wrappers, o.elect("meek", "--ttl", ttl.String()))
	}
	o.await("start", 1)
	losses := 0
	for range *pauses {
		leader := c.Leader()
		c.Stop(leader)
		time.Sleep(2 * ttl) // the pause that is tested
		c.Cont(leader)
		c.Ready()
		time.Sleep(time.Second) // what was verified is revoked within 0.4 s
		for i, w := range wrappers {
			select {
			case <-w.Exited():
				losses++
				if code := w.Wait(); code != 70 {
					t.Errorf("code %d, want 70; %s", code, w.Stderr())
				}
				wrappers[i] = o.elect("meek", "--ttl", ttl.String())
			default:
			}
		}
	}
	t.Logf("%d losses in %d rounds", losses, *pauses)
	o.done()
}
