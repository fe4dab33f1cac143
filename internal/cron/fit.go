package cron

import (
	"slices"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
)

// fit reports whether this node may claim starts of a job; full: it could, if it had room.
func (n *node) fit(e *entry) (fit, full bool) {
	if e.spec == nil || n.proof == nil || n.stopping || n.unfit != "" || n.drains[n.Host] || !n.selected(e) {
		return false, false
	}
	if !mayRunAs(e.spec.User, n.User, n.Users) || zoned(e.spec) && !n.agreed() {
		return false, false
	}
	if len(n.running)+n.asking >= n.MaxRunning {
		return false, true
	}
	return true, false
}

// selected reports whether the job's selector takes this node.
func (n *node) selected(e *entry) bool { return e.spec != nil && e.spec.Matches(n.Labels) }

// mayRunAs reports whether a node whose daemon runs as own, and that allows users, runs a job of a user's.
func mayRunAs(user, own string, users []string) bool {
	return user == "" || user == own || slices.Contains(users, user) || slices.Contains(users, "*")
}

// zoned reports whether the ticks of a job depend on the time zone database.
func zoned(spec *job.Job) bool { return spec.TZ != "" && spec.TZ != "UTC" && spec.TZ != "Etc/UTC" }

// agreed reports whether this node has the time zones of the one that registered first: where they differ, the newer nodes leave
// what depends on them to those that were there before, so that a tick never is two things.
func (n *node) agreed() bool {
	var first *peer
	for _, p := range n.peers {
		if p.rev != 0 && p.carded && (first == nil || p.rev < first.rev) {
			first = p
		}
	}
	return first == nil || first.card.Zones == zonesOf()
}

// others reports whether another node could run a job now.
func (n *node) others(e *entry) bool {
	for host, p := range n.peers {
		if host != n.Host && n.able(p, e) {
			return true
		}
	}
	return false
}

// able reports whether a node that is registered would claim starts of a job, as far as is known.
func (n *node) able(p *peer, e *entry) bool {
	busy := p.carded && (p.card.Unfit != "" || p.card.Stopping || p.card.Running >= p.card.MaxRunning)
	return n.candidate(p, e) && !busy && !n.drains[p.host]
}

func (n *node) candidate(p *peer, e *entry) bool {
	return p.rev != 0 && e.spec != nil && e.spec.Matches(p.labels) && (!p.carded || mayRunAs(e.spec.User, p.card.User, p.card.Users))
}

// absent says why nobody started a tick, as far as is known now.
func (n *node) absent(e *entry) record.Reason {
	why := record.ReasonNoNode
	for _, p := range n.peers {
		switch {
		case n.able(p, e):
			return record.ReasonDeadline
		case n.candidate(p, e):
			why = record.ReasonCapacity
		}
	}
	return why
}

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
