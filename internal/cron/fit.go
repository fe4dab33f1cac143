package cron

import (
	"slices"

	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
)

// fit reports whether this node may claim starts of a job; full: it could, if it had room.
func (n *node) fit(e *entry) (fit, full bool) {
	if e.spec == nil || n.proof == nil || n.stopping || n.unfit != "" || n.drains[n.Host] || !n.selected(e) {
		return false, false
	}
	if !plan.MayRunAs(e.spec.User, n.User, n.Users) || plan.Zoned(e.spec) && !n.agreed() {
		return false, false
	}
	full = n.full()
	return !full, full
}

// full reports whether this node has no room for another start. What has ended takes none: in a burst, results wait until all is
// started (flush). But they wait in memory, so there may be no more of them than may run.
func (n *node) full() bool {
	return len(n.running)-n.results+n.asking >= n.MaxRunning || n.results >= n.MaxRunning
}

// selected reports whether the job's selector takes this node.
func (n *node) selected(e *entry) bool { return e.spec != nil && e.spec.Matches(n.Labels) }

// agreed reports whether this node has the time zones that count.
func (n *node) agreed() bool {
	zones := plan.Zones(n.registered())
	return zones == "" || zones == zonesOf()
}

// registered are the nodes that are, this one included.
func (n *node) registered() (all []plan.Peer) {
	for host, p := range n.peers {
		if p.rev != 0 {
			all = append(all, plan.Peer{Host: host, Rev: p.rev, Labels: p.labels, Card: p.card, Carded: p.carded, Drained: n.drains[host]})
		}
	}
	return all
}

// others reports whether another node could run a job now.
func (n *node) others(e *entry) bool {
	return slices.ContainsFunc(n.registered(), func(p plan.Peer) bool { return p.Host != n.Host && p.Able(e.spec) })
}

// absent says why nobody started a tick, as far as is known now.
func (n *node) absent(e *entry) record.Reason { return plan.Absent(e.spec, n.registered()) }

// judge takes note of whether a start's run marker stands. That it does not is known only once the watch has come past the moment
// at which it was put.
func (n *node) judge(e *entry, o *plan.Open) {
	run := runID(e.name, o.ID)
	switch {
	case n.running[run] != nil || n.stuck[run] || n.runs[run]:
		o.Alive = true
	case o.Alive && n.areas[record.Runs].rev >= o.Rev:
		o.Alive, o.Gone = false, n.Mono()
	}
}

// unconfirmed reports whether a start is this very session's, and this process knows nothing of it: a claim that landed when
// nobody waited for it any more. It never ran.
func (n *node) unconfirmed(e *entry, o *plan.Open) bool {
	run := runID(e.name, o.ID)
	return n.proof != nil && o.Host == n.Host && o.Lease == int64(n.proof.Keys().Lease) && n.running[run] == nil && !n.stuck[run]
}
