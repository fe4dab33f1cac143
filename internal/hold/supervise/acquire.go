package supervise

import (
	"fmt"
	"strconv"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// onPlaced: a key of ours stands in the queue, and nothing of ours runs. Killed now, this process would leave the key to
// its TTL, and whoever queues behind it: so the guard can take it away, also under FenceOnLose, since there is nothing
// to clean up. What is told late changes nothing: a hold that was won has a testament of its own, or none (I6).
func (m *machine) onPlaced(testament []byte) {
	if m.phase != waiting {
		return
	}
	m.places++
	m.bequeath("queued-"+strconv.Itoa(m.places), testament)
}

// bequeath leaves a testament with the guard under the name of a run, and only then drops the one before, so that
// there is no moment without. nil leaves none. It goes ahead of the start of that run: a testament that does not
// cover a run would be executed beside it.
func (m *machine) bequeath(run string, testament []byte) {
	former := m.run
	m.run = run
	if testament != nil {
		m.send(guard.Request{Op: guard.OpBequeath, Run: run, Testament: testament})
	}
	if former != "" {
		m.send(guard.Request{Op: guard.OpForget, Run: former})
	}
}

// onAcquired: the hold is ours. If nobody changed their mind meanwhile, the child starts.
func (m *machine) onAcquired(ev event) {
	m.acquired, m.acquiredAt = true, m.now
	m.info, m.testament, m.deadlines = ev.info, ev.testament, ev.deadlines
	m.phase, m.giveUpAt = held, 0
	m.announce()

	// The guard first: from here on it can release for us. Then what happened on the way: this process may
	// have been frozen since the win.
	m.newRun()
	if ev.err != nil {
		m.lose(ev.err)
	}
	m.heed(event{kind: evTick})
	if m.signal != 0 || m.err != nil {
		m.leave()
	}
	m.tryStart()
}

// onNotAcquired: there is no hold and nothing of ours in etcd.
func (m *machine) onNotAcquired(err error) {
	if m.err == nil {
		m.err = err
	}
	m.finish()
}

// newRun names the next run and leaves the hold's testament under that name. Run ids are unique because a hold has a
// lease of its own.
func (m *machine) newRun() {
	m.tries++
	testament := m.testament
	if m.cfg.FenceOnLose {
		testament = nil
	}
	m.bequeath(hold.FormatLease(m.info.Lease)+"-"+strconv.Itoa(m.tries), testament)
	m.live = m.run
}

// tryStart asks the guard to start on-acquire, and after it the child, if everything is as it has to be. It is called whenever one
// of the conditions may have become true.
func (m *machine) tryStart() {
	// I2: nothing starts after loss. heed has compared the clock with the deadline in this very step; the
	// guard does so again at the moment of exec.
	if m.phase != held || m.lost || !m.guardReady || m.deadlines.Term <= m.refusedTerm {
		return
	}
	if m.refusedTerm != 0 {
		m.newRun() // a refused run never starts
	}
	m.phase, m.told = starting, m.deadlines
	if m.cfg.OnAcquire != "" && !m.equipped {
		m.begin(onAcquire)
		m.hookBy = m.now + m.cfg.HookTimeout
		m.start(m.deadlines, m.hook(m.cfg.OnAcquire))
		return
	}
	m.begin(theChild)
	m.start(m.deadlines, &guard.Spec{
		Path:       m.cfg.Path,
		Argv:       m.cfg.Argv,
		Env:        m.environ(),
		Dir:        m.cfg.Dir,
		Foreground: m.cfg.Foreground,
		Stdin:      m.cfg.Stdin,
		Stdout:     m.cfg.Stdout,
		Stderr:     m.cfg.Stderr,
		Credential: m.cfg.Credential,
		Umask:      m.cfg.Umask,
	})
}

// begin forgets what was known of the run before: the next one is another run.
func (m *machine) begin(p part) {
	m.part, m.live = p, m.run
	if p != theChild {
		m.live += "/" + p.String()
	}
	m.stopBy, m.termSent, m.killSent, m.stuckSince, m.heardSince = 0, false, false, 0, 0
	m.hookExit, m.hookBy, m.hookCut = nil, 0, ""
}

func (m *machine) start(d hold.Deadlines, what *guard.Spec) {
	m.send(guard.Request{Op: guard.OpStart, Run: m.live, Deadlines: d, KillAfter: m.cfg.KillAfter, Spec: what})
}

// onRenewed: the deadlines rose; the guard has to know, or a start that came too late can be tried again.
func (m *machine) onRenewed() {
	switch m.phase {
	case held:
		m.tryStart()
	case starting, running:
		// I3: a lost hold is not extended, whatever etcd says by now.
		if !m.lost && m.deadlines.Term > m.told.Term {
			m.told = m.deadlines
			m.send(guard.Request{Op: guard.OpExtend, Run: m.live, Deadlines: m.deadlines})
		}
	}
}

// failGuard gives up because there is no guard and nothing was started.
func (m *machine) failGuard(kill bool, why string) {
	m.guardGone = true
	if m.err == nil {
		m.err = fmt.Errorf("%w: %s", hold.ErrNoGuard, why)
	}
	if kill {
		m.do(action{kind: actKillGuard})
	}
	switch m.phase {
	case waiting:
		m.do(action{kind: actCancelAcquire})
	case held:
		m.leave()
	}
}
