package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/hold"
)

// The lease that all hold on, and what its deadline leaves for the guard.
const (
	ttl    = 10 * time.Second
	margin = coord.DefaultMargin
)

// broken is what is broken on purpose. The zero value is nothing.
type broken struct {
	settling  bool // nobody settles
	deadlines bool // the guard has none: it starts, and ends, only as it is told
	sent      bool // deadlines count from the reply
	punctual  bool // the guard takes eight times the margin
}

// design is a kind of world.
type design struct {
	spread float64 // the fastest clock runs so much faster than the slowest
	seats  int     // of a semaphore; 0: an office
	jobs   bool    // instead: daemons that run jobs
	broken broken
}

// world is a few hosts who want the same.
type world struct {
	*testing.T
	design
	seed   uint64
	m      *coordtest.Medium
	began  time.Time
	end    chan struct{} // closed when hosts start no more wrappers
	healed int64         // revision at which all trouble was over
	lives  sync.WaitGroup

	mu     sync.Mutex
	hosts  []*host
	alive  map[*child]bool
	tokens map[int]uint64  // the highest so far, by slot
	ticks  map[string]bool // of jobs, that were started
	starts int
	news   chan struct{} // closed and replaced at each start
	tale   []string
	wrong  []string
}

// live lets one world of a design pass, and returns what was wrong with it.
func live(t *testing.T, d design, seed uint64) *world {
	dice := rand.New(rand.NewPCG(seed, 0))
	w := &world{
		T: t, design: d, seed: seed, began: time.Now(), end: make(chan struct{}),
		alive: map[*child]bool{}, tokens: map[int]uint64{}, ticks: map[string]bool{}, news: make(chan struct{}),
	}
	etcd := newClock(dice, w.began, d.spread, 15, 60)
	hosts := max(d.seats, 1) + 1 + dice.IntN(2) // one or two more than can be let in
	w.m = coordtest.Start(t, coordtest.Options{
		Members: doors * hosts, Clock: etcd.now, RevokeLag: time.Duration(dice.IntN(2)) * 400 * time.Millisecond,
	})
	w.note("etcd's clock runs at %.3f", etcd.rate)
	w.lives.Go(w.sweep)
	if d.jobs {
		w.write()
	}
	for i := range hosts {
		h := &host{
			w: w, index: i, clock: newClock(dice, w.began, d.spread, 50, 25),
			offset: time.Duration(dice.Int64N(int64(2*time.Second))) - time.Second,
		}
		w.hosts = append(w.hosts, h)
		w.note("host %d: its clock runs at %.3f", i, h.rate)
		w.lives.Go(h.run)
	}
	w.weather(dice)
	w.heal()
	w.wantTaken()
	w.leave()
	w.wantNothingLeft()
	return w
}

// sweep lets leases end on time: a medium with a clock of its own looks at it only when asked.
func (w *world) sweep() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.m.Sweep()
		case <-w.end:
			return
		}
	}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(format, args...)
}

// tell is note with the lock held.
func (w *world) tell(format string, args ...any) {
	w.tale = append(w.tale, fmt.Sprintf("%10.4fs ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// fail notes what must not be (w.mu held).
func (w *world) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.tell("WRONG: %s", text)
	w.wrong = append(w.wrong, text)
}

// child is what a guard started: a leader, and perhaps something that outlives it.
type child struct {
	g                 *guardian
	name              string
	tick              string // of a job
	slot              int
	token             uint64
	leader, leftovers bool
	stubborn          bool // ignores SIGTERM
	frozen            bool // with all of its machine
	woken             bool // it was
	over              bool // it would have ended meanwhile
}

// fenced reports whether nothing but the fence is promised against a child: its machine was frozen past its deadline.
func (c *child) fenced() bool {
	return (c.frozen || c.woken) && c.g.l.h.now() >= c.g.deadlines.Kill+margin
}

func (c *child) lives() bool { return c.leader || c.leftovers }

// begin starts a child (w.mu held).
func (w *world) begin(c *child, now, term hold.Instant) {
	w.tell("%s starts, token %d, slot %d", c.name, c.token, c.slot)
	if now >= term {
		w.fail("I2: %s starts at %v of its clock, its term ended at %v", c.name, now, term)
	}
	most := max(w.seats, 1)
	if c.g.group == allow {
		most = len(w.ticks) + 1 // any number
	} else if c.token <= w.tokens[c.slot] {
		w.fail("I3: %s has token %d after %d", c.name, c.token, w.tokens[c.slot])
	} else {
		w.tokens[c.slot] = c.token
	}
	beside := 0
	for o := range w.alive {
		if o.g.group != c.g.group || o.fenced() {
			continue // of one that is fenced, I3 has seen that it has the lower token
		}
		beside++
		if o.slot == c.slot && c.g.group != allow {
			w.fail("I1: %s starts while %s is alive", c.name, o.name)
		}
	}
	if beside >= most {
		w.fail("I1: %s starts beside %d", c.name, beside)
	}
	if w.ticks[c.tick] && c.tick != "" {
		w.fail("I5: %s starts %s again", c.name, c.tick)
	}
	w.ticks[c.tick] = true
	w.alive[c] = true
	w.starts++
	close(w.news)
	w.news = make(chan struct{})
}

// gone notes that nothing of a child is left (w.mu held).
func (w *world) gone(c *child, why string) {
	c.leader, c.leftovers = false, false
	if w.alive[c] {
		delete(w.alive, c)
		w.tell("%s is gone: %s", c.name, why)
	}
}

// wantTaken waits for hand-overs after all was healed, as many as can be at the same time.
func (w *world) wantTaken() {
	// An end that nobody saw takes the TTL, and once more to settle; a leader that moved began the first anew; by a slow clock.
	late := time.NewTimer(time.Duration(float64(5*ttl) * w.spread))
	defer late.Stop()
	w.mu.Lock()
	want := w.starts + max(w.seats, 1) // of jobs there are many more
	w.mu.Unlock()
	if w.jobs {
		// What a daemon that died had begun is over when its marker has run out, and a TTL more.
		<-time.After(time.Duration(float64(5*ttl/2) * w.spread))
	}
	for {
		w.mu.Lock()
		done, news := w.starts >= want, w.news
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-news:
		case <-late.C:
			w.mu.Lock()
			w.fail("I4: not taken again: %d starts, want %d: %v", w.starts, want, w.m.Keys(""))
			w.mu.Unlock()
			return
		}
	}
}

// leave ends all hosts as an operator does.
func (w *world) leave() {
	w.note("all leave")
	close(w.end)
	w.lives.Wait()
}

func (w *world) wantNothingLeft() {
	<-time.After(time.Duration(float64(ttl)*w.spread) + time.Second) // what died a moment ago runs out
	w.m.Sweep()
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []string
	for _, kv := range w.m.List("") {
		key := string(kv.Key)
		// The record of a hold whose end nobody said stays until its slot is settled, for which there is no need while others are free.
		unsettled := w.seats > 0 && strings.HasPrefix(key, hold.Root+"open/") && kv.ModRevision <= w.healed
		if !unsettled && !strings.HasPrefix(key, hold.Root+"last/") && !recorded(key) {
			keys = append(keys, key)
		}
	}
	leases := slices.DeleteFunc(w.m.Leases(), func(l coordtest.Lease) bool { return w.jobs && l.TTL > 10*int64(ttl/time.Second) })
	if len(keys) > 0 || len(leases) > 0 || len(w.alive) > 0 {
		w.fail("I4: left: keys %v, leases %+v, %d children", keys, leases, len(w.alive))
	}
}

// after runs do under the lock, once so much of the bubble's time has passed.
func (w *world) after(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		do()
	})
}

// briefly is the context of what is cleaned up.
func briefly() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 2*time.Second)
}
