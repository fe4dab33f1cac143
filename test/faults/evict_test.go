package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
	"github.com/go-coord/coord/internal/view/live"
	"github.com/go-coord/coord/test/run"
)

// answer is what "conch evict --json" prints.
type answer struct {
	State   string `json:"state"`
	How     string `json:"how"`
	Forced  bool   `json:"forced"`
	Evicted struct {
		Rev  int64  `json:"rev"`
		Host string `json:"host"`
		PID  int    `json:"pid"`
	} `json:"evicted"`
	Successor *struct {
		Rev int64 `json:"rev"`
	} `json:"successor"`
}

// happened is one thing that happened to a name, in the order of etcd.
type happened struct {
	rev     int64
	began   int64 // token of a hold that began
	ended   int64 // token of a hold whose keys have gone
	waiting int   // candidates without a slot, or of an office, at that revision
}

// history is what happened to a name: who really held, and who came after whom. It is read by a watch of the test's own.
type history struct {
	mu     sync.Mutex
	all    []happened
	queue  map[string]int64 // create revisions of the candidates
	slots  map[string]int64 // tokens of the holders of the slots
	leader map[string]int64 // lease of a candidate for an office -> its token
}

func follow(t *testing.T, o *office, kind string) *history {
	t.Helper()
	h := &history{queue: map[string]int64{}, slots: map[string]int64{}, leader: map[string]int64{}}
	events := etcdtest.Client(t, o.endpoints...).Watch(t.Context(), hold.Root, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-events
	go func() {
		for got := range events {
			for _, ev := range got.Events {
				if key, err := hold.ParseKey(string(ev.Kv.Key)); err == nil && key.Name == o.name {
					h.take(kind, key, ev)
				}
			}
		}
	}()
	return h
}

// take takes in one event. A hold of an office begins with its record, since who is only first in the queue may never begin;
// that of a slot with the slot's key.
func (h *history) take(kind string, key hold.Key, ev *clientv3.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	is, put, name := happened{rev: ev.Kv.ModRevision}, ev.Type == clientv3.EventTypePut, string(ev.Kv.Key)
	switch {
	case key.Area == hold.AreaElect && put:
		h.queue[name], h.leader[hold.FormatLease(key.Lease)] = ev.Kv.CreateRevision, ev.Kv.CreateRevision
	case key.Area == hold.AreaElect:
		is.ended = h.queue[name]
		delete(h.queue, name)
	case key.Area == hold.AreaSema && put:
		h.queue[name] = ev.Kv.CreateRevision
	case key.Area == hold.AreaSema:
		delete(h.queue, name)
	case key.Area == hold.AreaSlot && put:
		h.slots[name], is.began = ev.Kv.CreateRevision, ev.Kv.CreateRevision
	case key.Area == hold.AreaSlot:
		is.ended = h.slots[name]
		delete(h.slots, name)
	case key.Area == hold.AreaOpen && kind == hold.KindElect && put:
		var open struct{ Lease string }
		_ = json.Unmarshal(ev.Kv.Value, &open) // a record of ours
		is.began = h.leader[open.Lease]
	default:
		return
	}
	h.all = append(h.all, is)
	for i := len(h.all) - 1; i >= 0 && h.all[i].rev == is.rev; i-- {
		h.all[i].waiting = len(h.queue) - len(h.slots)
	}
}

// after is the token of who held after a hold had ended; free says that there was a moment between at which nobody held or
// waited. known is false while it has not been heard of.
func (h *history) after(token int64) (next int64, free, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	over := int64(0)
	for _, is := range h.all {
		switch {
		case is.ended == token:
			over = is.rev
		case over != 0 && is.began != 0 && is.rev > over:
			return is.began, free, true
		}
		free = free || over != 0 && is.waiting == 0
	}
	return 0, free, over != 0
}

// contend has n wrappers of children of a mode come again and again, until the returned function is called.
func contend(o *office, n int, mode string, start func(mode string) *run.Process) (stop func()) {
	var wg sync.WaitGroup
	over := make(chan struct{})
	for range n {
		wg.Go(func() {
			for {
				p := start(mode)
				select {
				case <-p.Exited():
					switch p.Code() {
					case 0, hold.CodeLost:
					default:
						o.t.Errorf("a contender ended with %d; %s", p.Code(), p.Stderr())
					}
				case <-over:
					p.Signal(syscall.SIGTERM)
					p.Code()
					return
				}
			}
		})
	}
	return func() { close(over); wg.Wait() }
}

// TestEvictionsUnderLoad: 200 random holders are evicted, every tenth by force, while others come and go. No two children
// overlap, as their locks say, and each answer names who really held next, as a watch of the test's own says.
func TestEvictionsUnderLoad(t *testing.T) {
	const evictions = 100 // of each kind
	for kind, start := range map[string]func(o *office) func(mode string) *run.Process{
		hold.KindElect: func(o *office) func(string) *run.Process {
			return func(mode string) *run.Process { return o.elect(mode, "--ttl", "60s", "--quiet") }
		},
		hold.KindSema: func(o *office) func(string) *run.Process {
			return func(mode string) *run.Process { return o.sema(3, mode, nil, "--ttl", "60s", "--quiet") }
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, etcdtest.Shared(t).Endpoint())
			h := follow(t, o, kind)
			stopMeek, stopBrief := contend(o, 4, "meek", start(o)), contend(o, 1, "brief", start(o))
			cli := etcdtest.Client(t, o.endpoints...)
			var answers []answer
			missed := 0
			for len(answers) < evictions {
				seat := someHolder(t, cli, view.Name{Kind: kind, Name: o.name})
				a, code := evictOne(t, o, kind, seat, len(answers)%10 == 9)
				switch code {
				case hold.CodeOK:
					answers = append(answers, a)
				case hold.CodeNo: // it had left by itself
					missed++
				}
			}
			stopBrief()
			stopMeek()
			o.done()
			for _, a := range answers {
				h.judge(t, a)
			}
			t.Logf("%d evicted, %d left before they were asked, %d children", len(answers), missed, len(o.acts()))
		})
	}
}

// someHolder is one of those who hold, whom chance picks.
func someHolder(t *testing.T, cli *clientv3.Client, n view.Name) view.Seat {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) { // a poll of etcd
		is, err := live.Look(t.Context(), cli, n)
		if err != nil {
			t.Fatal(err)
		}
		held := slices.DeleteFunc(is.Seats, func(seat view.Seat) bool { return seat.State != view.Held || !seat.Opened })
		if len(held) > 0 {
			return held[rand.N(len(held))]
		}
	}
	t.Fatalf("nobody holds %s", n.Name)
	return view.Seat{}
}

// evictOne evicts a holder. It is CodeNo where that has left by itself.
func evictOne(t *testing.T, o *office, kind string, seat view.Seat, force bool) (a answer, code int) {
	t.Helper()
	args := []string{"evict", kind, o.name, "--json", "--quiet", "--wait", "1m"}
	switch {
	case force:
		args = append(args, "--force", "--rev", fmt.Sprint(seat.Token))
	case kind == hold.KindSema && rand.N(2) == 0:
		args = append(args, "--slot", fmt.Sprint(seat.Slot))
	default:
		args = append(args, "--holder", fmt.Sprintf("%s:%d", seat.Holder.Host, seat.Holder.PID))
	}
	p := run.Start(t, o.env(), args...)
	if code = p.Wait(); code == hold.CodeNo && strings.HasPrefix(p.Stderr(), "conch: not evicted: ") {
		return answer{}, code
	}
	if code != hold.CodeOK || p.Stderr() != "" {
		t.Fatalf("%q: code %d; %s", args, code, p.Stderr())
	}
	if err := json.Unmarshal([]byte(p.Stdout()), &a); err != nil {
		t.Fatalf("%q: %v: %s", args, err, p.Stdout())
	}
	if a.Forced != force || force && uint64(a.Evicted.Rev) != seat.Token {
		t.Errorf("%q: %s", args, p.Stdout())
	}
	return a, code
}

// judge compares an answer with what happened.
func (h *history) judge(t *testing.T, a answer) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) { // the watch may be behind
		next, free, known := h.after(a.Evicted.Rev)
		if !known || next == 0 && !free {
			if time.Now().Before(end) {
				continue
			}
			t.Errorf("of %+v nobody has heard", a)
			return
		}
		switch {
		case a.Successor != nil && a.Successor.Rev != next:
			t.Errorf("after token %d comes %d, it says %d", a.Evicted.Rev, next, a.Successor.Rev)
		case a.Successor == nil && !free:
			t.Errorf("after token %d comes %d, it says that nobody does", a.Evicted.Rev, next)
		}
		return
	}
}
