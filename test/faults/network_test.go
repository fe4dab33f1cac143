package faults

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/test/netns"
	"github.com/go-coord/coord/test/run"
)

// TestAHolderThatIsCutOff: no packet filter tells a holder that it is cut off. Its child is dead, by the holder's own clock,
// before the successor's starts, whichever packets are missing. Several offices are cut off at once.
func TestAHolderThatIsCutOff(t *testing.T) {
	const offices, ttl = 6, 4 * time.Second
	for name, cut := range map[string]func(n *network){
		"all packets dropped": func(n *network) { n.filter(netns.Drop, netns.Drop) },
		// etcd goes on hearing the renewals, and the holder does not hear that it does.
		"answers dropped": func(n *network) { n.filter(netns.Drop, netns.Accept) },
		"link down":       func(n *network) { n.must(n.link.Down()) },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t)
			endpoints := n.etcd()
			var all []*handover
			for i := range offices {
				all = append(all, newHandover(t, n, endpoints, i, ttl))
			}
			cut(n)
			cutAt := coord.Now()
			least := ttl
			for _, h := range all {
				least = min(least, h.over(cutAt, ttl))
			}
			t.Logf("the smallest distance from the old child's end to the new one's start, of %d: %v", offices, least)
		})
	}
}

// handover is an office whose holder is away and whose successor waits at home.
type handover struct {
	*office
	holder    *run.Process
	successor *run.Process
	ended     <-chan time.Duration // the holder's child, with all that it started
}

func newHandover(t *testing.T, n *network, endpoints []string, i int, ttl time.Duration) *handover {
	t.Helper()
	h := &handover{office: newOffice(t, endpoints[0])}
	mode := []string{"stubborn", "meek"}[i%2]
	h.holder = h.electIn(n.away, mode, "--ttl", ttl.String())
	family := []int{h.await("start", 1).pid}
	if mode == "stubborn" {
		family = append(family, h.await("grandchild", 1).pid)
	}
	h.ended = ended(t, family)
	h.successor = h.electIn(n.home, "meek", "--ttl", ttl.String())
	h.successor.WaitLog("msg=waiting")
	return h
}

// over waits until the office has changed hands and returns the time between the old child's end and the new one's start.
func (h *handover) over(cutAt, ttl time.Duration) time.Duration {
	h.t.Helper()
	start := h.await("start", 2)
	end := <-h.ended
	if end == 0 || end >= start.at {
		h.t.Errorf("the old child's end was seen at %v, the new one started at %v", end, start.at)
	}
	// From the last renewal that etcd heard, a TTL, and another one if the end of it was not seen.
	if took := start.at - cutAt; took > 2*ttl+slack {
		h.t.Errorf("the successor started %v after the cut", took)
	}
	// Not its output: the guard of a holder that cannot release tries for a while after it.
	if code := h.holder.Code(); code != 70 {
		h.t.Errorf("code %d, want 70; %s", code, h.holder.Stderr())
	}
	h.successor.Signal(syscall.SIGTERM)
	if code := h.successor.Wait(); code != 0 {
		h.t.Errorf("code %d of the successor, want 0; %s", code, h.successor.Stderr())
	}
	h.done()
	return start.at - end
}

// ended tells when the last one of some processes was seen dead; 0 where one lives on.
func ended(t *testing.T, pids []int) <-chan time.Duration {
	t.Helper()
	var watched []int
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatalf("process %d: %v", pid, err)
		}
		watched = append(watched, fd)
	}
	seen := make(chan time.Duration, 1)
	go func() {
		alive := 0
		for _, fd := range watched {
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(p, 60_000)
			for err == unix.EINTR {
				n, err = unix.Poll(p, 60_000)
			}
			if n != 1 {
				alive++
			}
		}
		at := coord.Now()
		for _, fd := range watched {
			_ = unix.Close(fd)
		}
		if alive > 0 {
			at = 0
		}
		seen <- at
	}()
	return seen
}

// TestATroubledNetworkIsNoLoss has a bad network for longer than the TTL, with the defaults, and nothing happens.
func TestATroubledNetworkIsNoLoss(t *testing.T) {
	const quiet = 12 * time.Second
	for name, tt := range map[string]struct {
		before, after func(n *network) // the holder's start
		least         int              // packets that were hit
	}{
		"one endpoint of two away from the start": {
			before: func(n *network) { n.filter(netns.Accept, "tcp dport 2379 counter drop") }, least: 1,
		},
		"one endpoint of two goes away": {
			after: func(n *network) { n.filter("tcp sport 2379 counter drop", "tcp dport 2379 counter drop") }, least: 5,
		},
		"a fifth of the packets lost": {after: func(n *network) { n.filter(netns.Lossy, netns.Lossy) }, least: 10},
		"a reset every few seconds":   {after: func(n *network) { n.filter(netns.Reset, netns.Reset) }, least: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNetwork(t)
			o := newOffice(t, n.etcd()...)
			if tt.before != nil {
				tt.before(n)
			}
			run.Build(t) // not in the time that is measured
			began := coord.Now()
			a := o.electIn(n.away, "meek")
			start := o.await("start", 1)
			took := start.at - began
			if took > 5*time.Second+slack {
				t.Errorf("it started after %v, later than the dial timeout", took)
			}
			if tt.after != nil {
				tt.after(n)
			}
			time.Sleep(quiet) // what is tested is that nothing happens
			if hits := n.hits(); hits < tt.least {
				t.Errorf("%d packets were hit, want %d: nothing was tested", hits, tt.least)
			} else {
				t.Logf("%d packets were hit; it had started after %v", hits, took)
			}
			if strings.Contains(a.Stderr(), "msg=lost") || !run.Alive(start.pid) {
				t.Fatalf("the hold is lost: %s", a.Stderr())
			}
			if files := descriptors(t, a.Pid()); files > 40 {
				t.Errorf("the wrapper has %d files and connections open", files)
			}
			a.Signal(syscall.SIGTERM)
			if code := a.Wait(); code != 0 || !strings.Contains(a.Stderr(), "msg=released") {
				t.Errorf("code %d, want 0 and a release; %s", code, a.Stderr())
			}
			o.done()
		})
	}
}

// descriptors counts the open files of a process, connections among them.
func descriptors(t *testing.T, pid int) int {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
