package faults

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/test/run"
)

var (
	bursts = flag.Int("bursts", 8, "how many rounds TestABurstFillsASemaphoreExactly goes, of some three seconds each")
	churn  = flag.Duration("churn", 20*time.Second, "how long TestNoSlotHasTwoChildren hurts holders")
)

// keysOf are the keys that a semaphore has in etcd, but for how holds ended.
func keysOf(t *testing.T, cli *clientv3.Client, name string) (keys []string) {
	t.Helper()
	open, _ := hold.SemaRecords(name)
	for _, prefix := range []string{hold.SemaRange(name), hold.SlotPrefix(name) + "/", open + "/", hold.EvictRange(hold.KindSema, name)} {
		got, err := cli.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range got.Kvs {
			keys = append(keys, string(kv.Key))
		}
	}
	return keys
}

// TestABurstFillsASemaphoreExactly: of fifty that come at once, and do not wait, three hold, no fewer and no more, in each
// round: whoever was refused was refused for want of room. Nothing is left of any of them.
func TestABurstFillsASemaphoreExactly(t *testing.T) {
	const contenders, max = 50, 3
	o := newOffice(t, etcdtest.Shared(t).Endpoint())
	cli := etcdtest.Client(t, o.endpoints...)
	for round := range *bursts {
		stdin, release, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		exits := make(chan *run.Process, contenders)
		for range contenders {
			p := o.sema(max, "patient", stdin, "--nonblock", "--quiet")
			go func() {
				<-p.Exited()
				exits <- p
			}()
		}
		stdin.Close()

		// Nobody who holds leaves before all others have gone.
		for range contenders - max {
			if p := <-exits; p.Code() != hold.CodeNotAcquired {
				t.Errorf("round %d: code %d, want 75; %s", round, p.Code(), p.Stderr())
			}
		}
		o.await("start", max*(round+1))
		release.Close()
		for range max {
			if p := <-exits; p.Code() != 0 {
				t.Errorf("round %d: code %d, want 0; %s", round, p.Code(), p.Stderr())
			}
		}
		if keys := keysOf(t, cli, o.name); len(keys) > 0 {
			t.Errorf("round %d: left are %q", round, keys)
		}
	}
	for _, a := range o.acts() {
		if a.slot < 0 || a.slot >= max {
			t.Errorf("slot %d of %d", a.slot, max)
		}
	}
	o.done()
}

// TestAWaitForASlotEndsWhenItIsOver: twenty wait for five seconds each, behind others, while holders come and go. None of
// them ends early, since what is waited for is a time and not a number of changes.
func TestAWaitForASlotEndsWhenItIsOver(t *testing.T) {
	const max, elders, waiters, wait = 2, 12, 20, 5 * time.Second
	o := newOffice(t, etcdtest.Shared(t).Endpoint())
	var ahead []*run.Process
	for i := range max + elders {
		p := o.sema(max, "meek", nil, "--ttl", "60s")
		ahead = append(ahead, p)
		if i < max {
			o.await("start", i+1)
		} else {
			p.WaitLog("position=" + strconv.Itoa(i-max+1))
		}
	}

	var behind sync.WaitGroup
	for range waiters {
		began := time.Now()
		p := o.sema(max, "meek", nil, "--ttl", "60s", "--wait", wait.String())
		behind.Go(func() {
			<-p.Exited()
			code := p.Code()
			if took := time.Since(began); code != hold.CodeNotAcquired || took < wait || took > wait+slack {
				t.Errorf("code %d after %v; %s", code, took, p.Stderr())
			}
		})
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		behind.Wait()
	}()
	// Holders leave in turn, and the next of the elders takes over, for as long as anybody waits behind them.
	left := 0
	for every := time.NewTicker(wait / elders); ; {
		select {
		case <-every.C:
			if left < elders-max { // so that no slot gets as far as those who are behind
				ahead[left].Signal(syscall.SIGTERM)
				left++
				o.await("start", max+left)
			}
			continue
		case <-gone:
		}
		every.Stop()
		break
	}
	if left < elders/2 {
		t.Errorf("%d hand-overs while they waited", left)
	}
	for _, p := range ahead[left:] {
		p.Signal(syscall.SIGTERM)
	}
	for _, p := range ahead {
		p.Code()
	}
	o.done()
}

// holders are wrappers that come and go.
type holders struct {
	mu      sync.Mutex
	running []*run.Process
}

func (h *holders) add(p *run.Process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = append(h.running, p)
}

func (h *holders) remove(p *run.Process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = slices.DeleteFunc(h.running, func(other *run.Process) bool { return other == p })
}

func (h *holders) any() *run.Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.running) == 0 {
		return nil
	}
	return h.running[rand.N(len(h.running))]
}

// TestNoSlotHasTwoChildren: ten come and go at four slots while wrappers are killed and stopped, leases revoked and keys
// deleted. The children's locks say whether two were in one slot.
func TestNoSlotHasTwoChildren(t *testing.T) {
	const contenders, max = 10, 4
	o := newOffice(t, etcdtest.Shared(t).Endpoint())
	cli := etcdtest.Client(t, o.endpoints...)
	var all holders
	var wg sync.WaitGroup
	over := make(chan struct{})
	for range contenders {
		wg.Go(func() {
			for {
				p := o.sema(max, "brief", nil, "--ttl", "5s", "--kill-margin", "1s", "--kill-after", "200ms", "--quiet")
				all.add(p)
				<-p.Exited()
				all.remove(p)
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}

	// What is done to them, in no order.
	done := map[string]int{}
	hurt := time.NewTicker(120 * time.Millisecond)
	defer hurt.Stop()
	for end := time.After(*churn); ; {
		select {
		case <-hurt.C:
			done[injure(t, cli, o.name, all.any())]++
			continue
		case <-end:
		}
		break
	}
	close(over)
	for stopped := all.any(); stopped != nil; stopped = all.any() {
		stopped.Signal(syscall.SIGCONT)
		stopped.Signal(syscall.SIGTERM)
		<-stopped.Exited()
		all.remove(stopped)
	}
	wg.Wait()
	starts := 0
	for _, a := range o.acts() {
		if a.what == "start" {
			starts++
		}
		if a.slot < 0 || a.slot >= max {
			t.Errorf("slot %d of %d", a.slot, max)
		}
	}
	t.Logf("%d children; %v", starts, done)
	if starts < max*int(*churn/time.Second) || len(done) < 6 {
		t.Errorf("%d children, and %v was done to them: that is little", starts, done)
	}
	o.done()
}

// injure does one of the things that a holder or a waiter has to live with, or die of, and says which.
func injure(t *testing.T, cli *clientv3.Client, name string, p *run.Process) string {
	t.Helper()
	if p == nil {
		return "nobody there"
	}
	seats, err := coord.ListHolders(t.Context(), cli, hold.SemaPrefix(name), hold.SlotPrefix(name))
	if err != nil {
		t.Fatal(err)
	}
	what := rand.N(6)
	switch {
	case what == 0:
		p.Kill()
		return "killed"
	case what == 1:
		p.Signal(syscall.SIGSTOP)
		time.AfterFunc(rand.N(8*time.Second), func() { p.Signal(syscall.SIGCONT) })
		return "stopped for a while"
	case what == 2:
		p.Signal(syscall.SIGTERM)
		return "told to end"
	case len(seats) == 0:
		return "nobody there"
	}
	seat := seats[rand.N(len(seats))]
	done := ""
	switch what {
	case 3:
		done = "revoked"
		_, err = cli.Revoke(t.Context(), seat.Lease)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return "nobody there"
		}
	case 4:
		done = "candidate's key deleted"
		_, err = cli.Delete(t.Context(), seat.Key)
	case 5:
		done = "slot's key deleted"
		_, err = cli.Delete(t.Context(), hold.SlotKey(name, seat.Max, max(seat.Slot, 0)).String())
	}
	if err != nil {
		t.Fatal(err)
	}
	return done
}
