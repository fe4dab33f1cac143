package sim

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

const (
	pipeMost     = 5 * time.Millisecond
	frozenAfter  = 500 * time.Millisecond // from gone to closing the record of a wrapper that says nothing
	releaseTries = 6
	releasePause = 100 * time.Millisecond
)

// guardian is a guard and what runs under it, by the protocol. All of its state is under the world's lock.
type guardian struct {
	l     *life
	group string              // of what it starts: the office, or the job
	term  func() hold.Instant // of the hold, as that itself has it
	executor
	events chan guard.Event
	pipe   []guard.Request // under way
	inbox  []guard.Request // arrived, and not read
	said   []guard.Event   // under way to the wrapper

	frozen, dead bool
	orphaned     bool // its wrapper was killed
	left         bool // its wrapper has ended
	freed        bool // orphaned: the release program was told

	run             string
	asked           *guard.Request // a start that is not forked yet
	child           *child
	deadlines       hold.Deadlines
	killAfter       time.Duration
	killAt          hold.Instant
	wanted, termed  bool // SIGTERM
	overdue, killed bool
	exited          bool
	wills           []will

	late time.Duration // how much later than it should the guard does what is due
	reap time.Duration // how long it takes until what was killed is gone: both together at most the margin
}

// will is a testament.
type will struct {
	run       string
	testament []byte
}

// executor is the release program. The bool says that it is for a wrapper that is frozen: the key stays.
type executor interface {
	execute(ctx context.Context, cli *clientv3.Client, testament []byte, closing bool) error
}

// release executes the testaments of holds.
type release struct{}

func (release) execute(ctx context.Context, cli *clientv3.Client, testament []byte, closing bool) error {
	var keys coord.TermKeys
	if err := json.Unmarshal(testament, &keys); err != nil {
		return err
	}
	if closing {
		return keys.CloseRecord(ctx, cli, coord.EndLost)
	}
	return keys.Release(ctx, cli, coord.End(hold.EndOrphaned))
}

// newGuardian starts a guard for a run.
func newGuardian(l *life, group string, term func() hold.Instant, x executor) *guardian {
	l.h.w.mu.Lock()
	defer l.h.w.mu.Unlock()
	g := &guardian{
		l: l, group: group, term: term, executor: x, frozen: l.torpid, events: make(chan guard.Event, 4096),
		late: l.upTo(margin / 100), reap: l.upTo(margin / 20),
	}
	if l.chance(60) { // a busy machine
		g.late = l.upTo(margin * 99 / 100)
		g.reap = margin*99/100 - g.late
	}
	if l.h.w.broken.punctual {
		g.late, g.reap = 4*margin, 4*margin
	}
	l.h.w.after(l.upTo(100*time.Millisecond), func() { g.say(guard.Event{Kind: guard.KindReady}) })
	l.guards = append(l.guards, g)
	if l.dead() {
		g.orphan()
	}
	return g
}

func (g *guardian) w() *world { return g.l.h.w }

// name is for people.
func (g *guardian) name() string {
	if g.group == office {
		return g.l.name
	}
	return g.l.name + " " + g.group + " " + g.run
}

// Send is supervise.Guard's.
func (g *guardian) Send(r guard.Request) error {
	g.l.pass()
	g.w().mu.Lock()
	defer g.w().mu.Unlock()
	if g.dead || g.l.dead() {
		return guard.ErrLost
	}
	g.pipe = append(g.pipe, r)
	g.w().after(g.l.upTo(pipeMost), func() { // in order, whichever timer comes first
		g.inbox, g.pipe = append(g.inbox, g.pipe[0]), g.pipe[1:]
		g.read()
	})
	return nil
}

// Events is supervise.Guard's.
func (g *guardian) Events() <-chan guard.Event { return g.events }

// Kill is supervise.Guard's: the guard dies, and with it its direct child.
func (g *guardian) Kill() {
	g.l.pass()
	g.w().mu.Lock()
	defer g.w().mu.Unlock()
	if !g.l.dead() {
		g.die()
	}
}

// die ends the guard (the world's lock is held).
func (g *guardian) die() {
	if g.dead {
		return
	}
	g.dead = true
	g.w().tell("%s: its guard is killed", g.name())
	if c := g.child; c != nil {
		g.w().after(g.l.upTo(pipeMost), func() {
			if c.leader = false; !c.lives() {
				g.w().gone(c, "its guard died")
			}
		})
	}
	if !g.l.dead() {
		g.w().after(g.l.upTo(pipeMost), func() { g.events <- guard.Event{Kind: guard.KindLost} })
	}
}

// Sweep is supervise.Guard's: the wrapper is a subreaper.
func (g *guardian) Sweep(context.Context) error {
	g.l.pass()
	g.w().mu.Lock()
	pause := pipeMost + g.l.upTo(50*time.Millisecond)
	g.w().mu.Unlock()
	<-time.After(pause)
	g.l.pass()
	g.w().mu.Lock()
	defer g.w().mu.Unlock()
	if g.child != nil && !g.l.dead() {
		g.w().gone(g.child, "swept")
	}
	return nil
}

// Close is supervise.Guard's.
func (g *guardian) Close() error { return nil }

// bye is the end of an orderly wrapper.
func (g *guardian) bye() {
	g.w().mu.Lock()
	defer g.w().mu.Unlock()
	g.left, g.wills = true, nil
	g.limit(g.l.h.now())
	g.step()
}

// orphan is the end of the wrapper's pipe without a word, once all is read that was said before (the world's lock is held).
// What is left of the wrapper in this process hears that its guard is gone, and ends.
func (g *guardian) orphan() {
	g.events <- guard.Event{Kind: guard.KindLost}
	g.w().after(pipeMost, func() {
		g.orphaned = true
		g.limit(g.l.h.now())
		g.step()
	})
}

// thaw lets a frozen guard go on (the world's lock is held).
func (g *guardian) thaw() {
	g.frozen = false
	g.fork()
	g.read()
	g.step()
}

// say is the pipe to the wrapper (the world's lock is held).
func (g *guardian) say(ev guard.Event) {
	if g.dead || g.orphaned || g.l.dead() {
		return
	}
	if ev.Run == "" {
		ev.Run = g.run
	}
	ev.Time = g.l.h.now()
	g.said = append(g.said, ev)
	g.w().after(g.l.upTo(pipeMost), func() {
		ev := g.said[0]
		if g.said = g.said[1:]; !g.dead && !g.l.dead() {
			g.events <- ev
		}
	})
}

// read takes in what has arrived (the world's lock is held).
func (g *guardian) read() {
	for len(g.inbox) > 0 && !g.frozen && !g.dead {
		r := g.inbox[0]
		g.inbox = g.inbox[1:]
		g.serve(r)
	}
}

func (g *guardian) serve(r guard.Request) {
	switch r.Op {
	case guard.OpBequeath:
		g.wills = append(g.wills, will{r.Run, r.Testament})
	case guard.OpForget:
		g.wills = slices.DeleteFunc(g.wills, func(o will) bool { return o.run == r.Run })
	case guard.OpStart:
		g.start(r)
	}
	if r.Run != g.run {
		return
	}
	switch r.Op {
	case guard.OpExtend:
		if !g.overdue {
			g.deadlines.Term, g.deadlines.Kill = max(g.deadlines.Term, r.Deadlines.Term), max(g.deadlines.Kill, r.Deadlines.Kill)
			g.wake(g.deadlines.Term)
		}
	case guard.OpStop:
		g.limit(r.KillAt)
		g.wanted = true
	case guard.OpKill:
		g.limit(g.l.h.now())
	}
	g.step()
}

// start forks, which takes a while, and looks at the clock again right before it (the world's lock is held).
func (g *guardian) start(r guard.Request) {
	if g.asked != nil || g.child != nil && g.child.lives() {
		g.w().fail("I1: %s asks for a start beside another", g.name())
		return
	}
	g.run, g.deadlines, g.killAfter = r.Run, r.Deadlines, r.KillAfter
	g.child, g.asked, g.killAt = nil, &r, 0
	g.wanted, g.termed, g.overdue, g.killed, g.exited = false, false, false, false, false
	g.wake(g.deadlines.Term)
	g.w().after(g.l.upTo(20*time.Millisecond), g.fork)
}

func (g *guardian) fork() {
	if g.frozen || g.asked == nil {
		return // thaw comes back to it
	}
	r := g.asked
	g.asked = nil
	now := g.l.h.now()
	switch {
	case g.dead || g.orphaned || g.left:
		g.step()
		return
	case !g.w().broken.deadlines && now >= g.deadlines.Term || g.killAt != 0 && now >= g.killAt:
		g.say(guard.Event{Kind: guard.KindRefused})
		g.step()
		return
	}
	c := &child{g: g, name: g.name(), leader: true, leftovers: g.l.chance(30), stubborn: g.l.chance(70)}
	for _, v := range r.Spec.Env {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "CONCH_REV":
			c.token, _ = strconv.ParseUint(value, 10, 64)
		case "CONCH_SLOT":
			c.slot, _ = strconv.Atoi(value)
		case tickEnv:
			c.tick = value
		}
	}
	g.child = c
	g.w().begin(c, now, g.term())
	g.say(guard.Event{Kind: guard.KindStarted, Pid: 42})
	g.w().after(g.lasts(), func() { g.exit(c) })
	g.step()
}

// lasts is how long a child goes on by itself.
func (g *guardian) lasts() time.Duration {
	endless := 0
	switch g.group {
	case office:
		endless = 75
	case forbid:
		endless = 50
	}
	if g.l.chance(endless) { // until it is told to end
		return 10 * ttl
	}
	return g.l.upTo(ttl)
}

// exit is the leader's end by itself.
func (g *guardian) exit(c *child) {
	switch {
	case !c.leader:
		return
	case c.frozen:
		c.over = true // as soon as it wakes
		return
	}
	c.leader = false
	if !c.lives() {
		g.w().gone(c, "it ended")
	}
	g.step()
}

// wake lets the guard look at its clock when that reads at, or as much later as it is late.
func (g *guardian) wake(at hold.Instant) {
	if at != 0 && !g.w().broken.deadlines {
		g.w().after(g.l.h.until(at)+g.l.h.lasts(g.late), g.step)
	}
}

// limit asks for SIGKILL at an instant; the earliest wish stands. It is the wrapper's word: a guard without deadlines heeds it.
func (g *guardian) limit(at hold.Instant) {
	if g.killAt == 0 || at < g.killAt {
		g.killAt = at
		g.w().after(g.l.h.until(at)+g.l.h.lasts(g.late), g.step)
	}
}

// sigterm tells the leader to end.
func (g *guardian) sigterm() {
	c := g.child
	if c == nil || g.termed || !c.leader {
		return
	}
	g.termed = true
	g.say(guard.Event{Kind: guard.KindTermSent, Reason: "told to"})
	if !c.stubborn {
		g.w().after(g.l.upTo(3*time.Second), func() { g.exit(c) })
	}
}

// step does what is due (the world's lock is held).
func (g *guardian) step() {
	if g.frozen || g.dead || g.asked != nil {
		return
	}
	now := g.l.h.now()
	if c := g.child; c != nil {
		if !c.leader && !g.exited {
			g.exited = true
			g.say(guard.Event{Kind: guard.KindExited})
			if c.leftovers {
				g.limit(now + g.killAfter)
			}
		}
		if !g.overdue && !g.w().broken.deadlines && now >= g.deadlines.Term {
			g.overdue = true
			g.limit(g.deadlines.Kill)
			g.wanted = true
		}
		if g.wanted {
			g.sigterm()
		}
		if c.lives() && !g.killed && g.killAt != 0 && now >= g.killAt {
			g.kill(c)
		}
		if c.lives() {
			return
		}
		g.child = nil
		g.say(guard.Event{Kind: guard.KindGone})
		if g.overdue {
			run := g.run
			g.w().after(g.l.h.lasts(frozenAfter), func() { g.closeRecord(run) })
		}
	}
	if g.orphaned && !g.freed {
		g.freed = true
		for _, w := range g.wills {
			g.w().tell("%s: the guard releases", g.name())
			g.carryOut(w, releaseTries, false)
		}
		g.wills = nil
	}
}

// kill is SIGKILL to everything, and the time until it is reaped.
func (g *guardian) kill(c *child) {
	g.killed = true
	g.w().tell("%s: SIGKILL at %v of its clock, deadline %v", g.name(), g.l.h.now(), g.deadlines.Kill)
	g.say(guard.Event{Kind: guard.KindKillSent, Reason: "due"})
	g.w().after(g.l.h.lasts(g.reap), func() {
		if c.lives() {
			g.w().gone(c, "killed")
		}
		g.step()
	})
}

// closeRecord is for a wrapper that does not say that its hold is over: it is frozen.
func (g *guardian) closeRecord(run string) {
	if g.frozen || g.dead || g.orphaned {
		return
	}
	for _, w := range g.wills {
		if w.run == run {
			g.w().tell("%s: the guard closes the record", g.name())
			g.carryOut(w, 1, true)
		}
	}
}

// carryOut runs the release program, a few times if it has to be.
func (g *guardian) carryOut(w will, tries int, closing bool) {
	h := g.l.h
	h.w.lives.Go(func() {
		cli := h.client()
		defer func() { _ = cli.Close() }()
		for try := range tries {
			ctx, cancel := briefly()
			err := g.execute(ctx, cli, w.testament, closing)
			cancel()
			if err == nil {
				return
			}
			<-time.After(releasePause << try)
		}
	})
}
