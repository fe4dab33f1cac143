package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// storm is what a world's weather draws from.
type storm struct {
	*world
	*rand.Rand
}

// weather is what happens to a world before it heals. First of all somebody who works loses touch, for about as long as a lease
// lasts: it is what everything here is about. Then comes anything.
func (w *world) weather(dice *rand.Rand) {
	s := storm{w, dice}
	all := faults()
	isolating := slices.DeleteFunc(slices.Clone(all), func(f fault) bool { return !f.isolates })
	w.mu.Lock()
	begun := w.news
	w.mu.Unlock()
	<-begun
	s.sleep(ttl / 2)
	long := ttl + s.upTo(ttl)
	if w.jobs {
		long *= 2 // what a daemon had begun is waited for twice as long
	}
	if s.IntN(10) < 9 {
		s.hit(isolating[s.IntN(len(isolating))], long)
	}
	for range 1 + s.IntN(4) {
		s.sleep(5 * time.Second)
		if f := all[s.IntN(len(all))]; f.etcd != nil {
			w.note("etcd: %s", f.name)
			f.etcd(s)
		} else {
			s.hit(f, s.upTo(ttl*3/2))
		}
	}
	s.sleep(5 * time.Second)
}

func (s storm) upTo(most time.Duration) time.Duration { return time.Duration(s.Int64N(int64(most))) }

// sleep lets time pass in the bubble.
func (s storm) sleep(most time.Duration) { <-time.After(s.upTo(most)) }

// fault is one kind of trouble, of etcd or of one host. A host's gets the wrapper that runs there, with the world locked, and
// returns what undoes it; nil: nothing does.
type fault struct {
	name     string
	isolates bool // a host can hear nothing of etcd
	etcd     func(storm)
	host     func(storm, *life) func()
}

// hit brings trouble to a host: more often than not to one that works. Whoever is in trouble already is left alone.
func (s storm) hit(f fault, lasts time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[s.IntN(len(s.hosts))]
	for _, o := range s.hosts {
		if s.IntN(5) > 0 && o.life != nil && o.life.work() != nil {
			h = o
			break
		}
	}
	if h.trouble || h.life == nil {
		return
	}
	s.tell("%s: %s, %v", h.life.name, f.name, lasts)
	undo := f.host(s, h.life)
	if undo == nil {
		return
	}
	h.trouble = true
	s.after(lasts, func() {
		s.tell("host %d: %s: over", h.index, f.name)
		undo()
		h.trouble = false
	})
}

// faults are all there are.
func faults() []fault {
	return []fault{
		{name: "a lease is revoked", etcd: func(s storm) {
			if l := s.m.Leases(); len(l) > 0 {
				_ = s.m.Revoke(l[s.IntN(len(l))].ID) // it may have run out meanwhile
			}
		}},
		{name: "a key is deleted", etcd: func(s storm) {
			areas := []string{hold.ElectRange(office), hold.SemaRange(office), hold.SlotPrefix(office) + "/", record.Runs, record.Nodes}
			var keys []string // records are not among them: whoever deletes those by hand is promised nothing
			for _, area := range areas {
				keys = append(keys, s.m.Keys(area)...)
			}
			if len(keys) > 0 {
				s.m.Delete(keys[s.IntN(len(keys))])
			}
		}},
		{name: "the leader moves", etcd: func(s storm) { s.m.MoveLeader(s.IntN(doors * len(s.hosts))) }},
		{name: "a leader that was paused revokes what was renewed since", etcd: func(s storm) {
			s.m.MoveLeader(s.IntN(doors * len(s.hosts)))
			for _, l := range s.m.Leases() {
				if s.IntN(2) == 0 {
					_ = s.m.Revoke(l.ID)
				}
			}
		}},
		{name: "no quorum", etcd: func(s storm) {
			s.m.NoQuorum(true)
			s.sleep(8 * time.Second)
			s.m.NoQuorum(false)
		}},
		{name: "every member restarts", etcd: func(s storm) { s.m.Restart() }},
		{name: "watches are compacted", etcd: func(s storm) {
			_ = s.m.Compact(s.m.Rev()) // it may be so already
			s.m.CancelWatches("compacted")
		}},
		{name: "watches are silent", etcd: func(s storm) {
			s.m.HoldWatches(true)
			s.after(s.upTo(10*time.Second), func() { s.m.HoldWatches(false) })
		}},
		{name: "no space", etcd: func(s storm) {
			s.m.NoSpace(true)
			s.sleep(5 * time.Second)
			s.m.NoSpace(false)
		}},
		{name: "cut off", isolates: true, host: func(s storm, l *life) func() { return s.cut(l.h) }},
		{name: "cut off, and its lease is revoked", isolates: true, host: func(s storm, l *life) func() {
			s.after(s.upTo(ttl/4), func() {
				if l.won != nil {
					_ = s.m.Revoke(l.won.session.Lease()) // it may have gone meanwhile
				}
			})
			return s.cut(l.h)
		}},
		{name: "one door is silent", host: func(s storm, l *life) func() {
			door := l.h.door(s.IntN(doors))
			s.m.Stop(door)
			return func() { s.m.Cont(door) }
		}},
		{name: "what comes back is lost", isolates: true, host: func(s storm, l *life) func() {
			return s.inject(l.h, "", coordtest.LoseReply(nil))
		}},
		{name: "what comes back is late, and then renewals are lost", isolates: true, host: func(s storm, l *life) func() {
			slow := late(ttl/25 + s.upTo(ttl*6/100))
			undo, over := s.inject(l.h, "", slow), false
			s.after(ttl/4+s.upTo(ttl/4), func() {
				if !over { // the one that is under way comes to its end
					undo()
					lost, rest := s.inject(l.h, coordtest.KeepAlive, coordtest.LoseRequest()), s.inject(l.h, "", slow)
					undo = func() { lost(); rest() }
				}
			})
			return func() { over = true; undo() }
		}},
		{name: "requests are late", host: func(s storm, l *life) func() {
			return s.inject(l.h, "", coordtest.LateBy(s.upTo(3*time.Second)))
		}},
		{name: "renewals are acknowledged by who leads no more", isolates: true, host: func(s storm, l *life) func() {
			s.m.MoveLeader(l.h.door(0))
			return s.inject(l.h, coordtest.KeepAlive, coordtest.StaleAck(0))
		}},
		{name: "the wrapper is frozen", isolates: true, host: func(s storm, l *life) func() {
			join := s.cut(l.h)
			l.freeze()
			return func() { join(); l.melt() }
		}},
		{name: "the guard is frozen", host: func(_ storm, l *life) func() { return l.stun() }},
		{name: "the machine is frozen", isolates: true, host: func(s storm, l *life) func() { return s.suspend(l) }},
		{name: "the wrapper is killed", host: func(_ storm, l *life) func() { l.kill(); return nil }},
		{name: "the guard is killed", host: func(_ storm, l *life) func() {
			for _, g := range l.guards {
				g.die()
			}
			return nil
		}},
		{name: "the machine dies", host: func(_ storm, l *life) func() { l.perish(); return nil }},
		{name: "evicted", host: func(_ storm, l *life) func() { l.evict(); return nil }},
	}
}

// cut cuts a host off, and returns what joins it again. Its connections stay, as they do when packets are lost.
func (s storm) cut(h *host) func() {
	for i := range doors {
		s.m.Stop(h.door(i))
	}
	return func() {
		for i := range doors {
			s.m.Cont(h.door(i))
		}
	}
}

// inject lets calls that come by a host's doors meet something, and returns what ends that.
func (s storm) inject(h *host, method coordtest.Method, what coordtest.Action) func() {
	f := s.m.Inject(coordtest.Rule{
		Method: method, Times: coordtest.Forever, Action: what,
		When: func(c *coordtest.Call) bool {
			return c.Method != coordtest.Watch && c.Member/doors == h.index
		},
	})
	return f.Remove
}

// late commits at once, and answers late.
func late(by time.Duration) coordtest.Action {
	return func(c *coordtest.Call) (proto.Message, error) {
		reply, err := c.Commit(c.Context)
		select {
		case <-time.After(by):
			return reply, err
		case <-c.Context.Done():
			return nil, c.Context.Err()
		}
	}
}

// suspend freezes a machine with all that is on it. When it wakes, its child does what it was about to do: the guard ends it as
// soon as it is scheduled, and up to then the fence is all there is.
func (s storm) suspend(l *life) func() {
	join := s.cut(l.h)
	l.freeze()
	thaw := l.stun()
	guards := slices.Clone(l.guards)
	for _, g := range guards {
		if g.child != nil {
			g.child.frozen = true
		}
	}
	return func() {
		join()
		for _, g := range guards {
			if g.child != nil {
				s.wake(g, g.child)
			}
		}
		l.melt()
		thaw()
	}
}

// wake lets the child of a machine that was frozen go on (the world's lock is held).
func (s storm) wake(g *guardian, c *child) {
	c.frozen, c.woken = false, true
	if c.over {
		g.exit(c)
	}
	if g.l.h.now() < g.deadlines.Kill {
		return
	}
	s.after(g.l.h.lasts(margin), func() {
		if c.lives() {
			s.fail("I1: %s lives on, long after its machine woke past its deadline", c.name)
		}
	})
}

// stun freezes the guard of a wrapper, or of a daemon, and returns what lets it go on (the world's lock is held).
func (l *life) stun() func() {
	l.torpid = true
	for _, g := range l.guards {
		g.frozen = true
	}
	return func() {
		l.torpid = false
		for _, g := range l.guards {
			g.thaw()
		}
	}
}

// perish is the end of a machine: nothing on it says a word any more (the world's lock is held).
func (l *life) perish() {
	l.once.Do(func() {
		_ = l.client.Close()
		close(l.killed)
		l.melt()
		for _, g := range l.guards {
			if g.child != nil {
				l.h.w.gone(g.child, "its machine died")
			}
			if !g.dead {
				g.dead = true
				g.events <- guard.Event{Kind: guard.KindLost}
			}
		}
	})
}

// heal ends all trouble, that of hosts by the timers which are set already.
func (w *world) heal() {
	w.note("it heals")
	for {
		w.mu.Lock()
		trouble := false
		for _, h := range w.hosts {
			trouble = trouble || h.trouble
		}
		w.mu.Unlock()
		if !trouble {
			break
		}
		<-time.After(time.Second)
	}
	w.m.Heal()
	w.m.HoldWatches(false)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healed = w.m.Rev()
	w.tell("it is healed, and who works is asked to leave")
	for _, h := range w.hosts {
		if h.life != nil {
			h.life.evict()
		}
	}
}
