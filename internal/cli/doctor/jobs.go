package doctor

import (
	"maps"
	"slices"
	"time"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

// jobs looks for jobs that cannot run.
func (v *visit) jobs(c *crew, now time.Time) {
	bad := pile{check: "job", level: Fail, root: record.Jobs, what: "such jobs"}
	for _, one := range c.bad {
		bad.add(one.name, "cannot be read, and is not run: %s", hold.EscapeCut(one.why, 250))
	}
	nowhere := pile{check: "job", level: Warn, root: record.Jobs, what: "such jobs"}
	nobody := pile{check: "job", level: Warn, root: record.Jobs, what: "such jobs"}
	paused := pile{check: "paused", level: Note, root: record.Jobs, what: "such jobs"}
	if c.paused != nil && c.paused.In(now.UnixMilli()) {
		all := pile{check: "paused", level: Note}
		all.add(record.Pause, "nothing is claimed in the whole cluster: paused%s", stopText(*c.paused))
		v.show(all)
	}
	peers := c.peers()
	for _, name := range slices.Sorted(maps.Keys(c.specs)) {
		spec := c.specs[name]
		if spec == nil {
			continue
		}
		if stop := pauseOf(spec); stop.In(now.UnixMilli()) {
			paused.add(name, "is paused%s", stopText(stop))
			continue
		}
		if len(peers) == 0 || slices.ContainsFunc(peers, func(p plan.Peer) bool { return p.Candidate(spec) }) {
			continue
		}
		if slices.ContainsFunc(peers, func(p plan.Peer) bool { return spec.Matches(p.Labels) }) {
			nobody.add(name, "no node that it selects runs jobs as %s: it is not run until one does; conch cron why %s says more", hold.EscapeCut(spec.User, 60), name)
		} else {
			nowhere.add(name, "selects no node that is registered: it is not run until there is one; conch cron why %s says more", name)
		}
	}
	for _, one := range []pile{bad, v.ahead(c, now), nowhere, nobody, paused} {
		v.show(one)
	}
}

// aheadMost is how far a cursor may be ahead of this machine's clock.
const aheadMost = time.Minute

// ahead looks for cursors that say that ticks of the future are decided. None of ours does; one that was written by hand, or by a node
// whose clock was years ahead, stops its job without a word.
func (v *visit) ahead(c *crew, now time.Time) pile {
	p := pile{check: "job", level: Fail, root: record.Cursors, what: "such jobs"}
	for _, d := range c.ticks {
		if at := time.Unix(d.tick, 0); c.specs[d.job] != nil && at.Sub(now) > aheadMost {
			p.add(d.job, "starts nothing before %s: its cursor says that all ticks until then are decided. Where the clock here is right, delete the key %s",
				at.UTC().Format(time.RFC3339), d.key)
		}
	}
	return p
}

// pauseOf is the pause of a job; one that is over where there is none.
func pauseOf(spec *job.Job) record.Stop {
	p := spec.Paused
	if p == nil {
		return record.Stop{Resumed: 1}
	}
	s := record.Stop{By: p.By, Why: p.Why, At: p.At.UnixMilli()}
	if p.Until != nil {
		s.Until = p.Until.UnixMilli()
	}
	return s
}

// wantGrace is how long a request may stand after its time: some node still has to take it away.
const wantGrace = time.Minute

// runs looks at starts whose end is not known, and at requests that nobody will meet.
func (v *visit) runs(c *crew, now time.Time) {
	sort := func(check, what string) pile {
		return pile{check: check, level: Warn, root: record.Root, what: what}
	}
	unsettled, wants, kills := sort("unsettled", "such runs"), sort("request", "such requests"), sort("request", "such requests")
	opened := map[string]bool{}
	nodes := len(c.peers())
	for _, o := range c.open {
		run := o.job + "/" + o.id.String()
		opened[run] = true
		ttl := time.Duration(o.says.TTL) * time.Millisecond
		switch claimed := time.UnixMilli(o.says.At); {
		case c.alive[run] || now.Sub(claimed) < ttl:
		case nodes == 0:
			unsettled.add(run, "its run marker is gone, and no node is there to say how it ended: its job may be held up until one is")
		default:
			unsettled.add(run, "its run marker is gone, and nobody has said yet how it ended on %s: a node does, %s after it saw that; look again then",
				hold.EscapeCut(o.says.Host, 60), atMost(ttl))
		}
	}
	for _, run := range slices.Sorted(maps.Keys(c.alive)) {
		if !opened[run] {
			unsettled.add(run, "has a run marker and no open record: somebody deleted that by hand, and two of it may run")
		}
	}
	for _, w := range c.wants {
		run := w.job + "/" + w.id.String()
		until := time.UnixMilli(w.says.Until)
		if _, there := c.specs[w.job]; !there && !c.cut {
			wants.add(run, "asks for a start of a job that is gone")
		} else if w.says.Until > 0 && now.Sub(until) > wantGrace {
			wants.add(run, "asks for a start until %s, and nobody has said that it was missed", until.UTC().Format(time.RFC3339))
		}
	}
	for _, run := range c.kills {
		if !opened[run] {
			kills.add(run, "asks for the end of a start that is over, or never was")
		}
	}
	for _, one := range []pile{unsettled, wants, kills} {
		v.show(one)
	}
}
