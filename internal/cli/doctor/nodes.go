package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

const (
	// cardAge is how old a card can be: a node writes one every ten seconds, and no two within one.
	cardAge = 11 * time.Second
	// skewWarn and skewFail are how far a clock may be off: from the first on conchd warns, at the second it claims nothing by default.
	skewWarn = time.Second
	skewFail = 5 * time.Second
)

// nodes looks at the nodes that run jobs.
func (v *visit) nodes(c *crew, now time.Time) {
	peers := c.peers()
	if len(peers) == 0 && c.jobs > 0 {
		v.say("node", Warn, record.Nodes, "no node is registered: nothing is run, and nobody records what is missed")
	}
	v.zones(peers)
	sort := func(check string, level Level, what string) pile {
		return pile{check: check, level: level, root: record.Nodes, what: what}
	}
	unfit, lost := sort("node", Warn, "such nodes"), sort("node", Warn, "such nodes")
	slow, wrong := sort("clock", Warn, "such nodes"), sort("clock", Fail, "such nodes")
	drained := sort("node", Note, "such nodes")
	for _, host := range slices.Sorted(maps.Keys(c.nodes)) {
		n := c.nodes[host]
		switch {
		case !n.registered:
			lost.add(host, "has a card and no registration: its daemon cannot register, or somebody deleted the key; it claims nothing")
		case !n.leased:
			lost.add(host, "its registration or its card is on no lease: it looks alive until somebody deletes it, and keeps its daemon from registering")
		case !n.carded:
			lost.add(host, "is registered, and has not said how it is: whether it is fit, and as whom it runs jobs, is not known")
		case !n.Carded:
			lost.add(host, "its card cannot be read: whether it is fit, and as whom it runs jobs, is not known")
		}
		if n.registered && n.Carded {
			if n.Card.Unfit != "" {
				unfit.add(host, "claims nothing: %s", hold.EscapeCut(n.Card.Unfit, 200))
			}
			clock(host, time.UnixMilli(n.Card.Clock).Sub(now), &slow, &wrong)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(c.drains)) {
		there := ""
		if n := c.nodes[host]; n == nil || !n.registered {
			there = ", and is not registered"
		}
		drained.add(host, "is drained%s%s", stopText(c.drains[host]), there)
	}
	for _, one := range []pile{wrong, slow, unfit, lost, drained} {
		v.show(one)
	}
}

// clock compares the clock in a card with this machine's. A card says what the time was when it was written, so one that is
// behind may only be old.
func clock(host string, off time.Duration, slow, wrong *pile) {
	text := "ahead of"
	if off < 0 {
		off, text = min(off+cardAge, 0), "behind"
	}
	const advice = "its clock is %v or more %s this machine's: one of the two is wrong%s"
	switch off = off.Abs(); {
	case off > skewFail:
		wrong.add(host, advice, short(off.Truncate(100*time.Millisecond)), text, ", and ticks are missed or late where it runs jobs")
	case off > skewWarn:
		slow.add(host, advice, short(off.Truncate(100*time.Millisecond)), text, "")
	}
}

// zones compares time zone databases, which are part of what a tick is.
func (v *visit) zones(peers []plan.Peer) {
	have := map[string][]string{} // hosts, by database
	for _, p := range peers {
		if p.Carded {
			have[p.Card.Zones] = append(have[p.Card.Zones], p.Host)
		}
	}
	if len(have) < 2 {
		return
	}
	counts := plan.Zones(peers)
	p := pile{check: "tzdata", level: Fail, root: record.Nodes, what: "such time zones"}
	for _, zones := range slices.Sorted(maps.Keys(have)) {
		what := "which counts, being that of the node that registered first"
		if zones != counts {
			what = "so they leave jobs with a time zone to the others: they would not agree on what a tick is; update conchd there"
		}
		p.add(record.Nodes, "%s: time zones %s, %s", hostsText(have[zones]), hold.EscapeCut(zones, 40), what)
	}
	v.show(p)
}

func hostsText(all []string) string {
	text := strings.Join(all[:min(len(all), showMost)], ", ")
	if more := len(all) - showMost; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// stopText says who stopped something, since when and why.
func stopText(s record.Stop) string {
	text := ""
	if s.By != "" {
		text = " by " + hold.EscapeCut(s.By, 60)
	}
	if at := time.UnixMilli(s.At).UTC(); s.At > 0 && at.Year() < 10000 {
		text += " since " + at.Format(time.RFC3339)
	}
	if until := time.UnixMilli(s.Until).UTC(); s.Until > 0 && until.Year() < 10000 {
		text += " until " + until.Format(time.RFC3339)
	}
	if s.Why != "" {
		text += ": " + hold.EscapeCut(s.Why, 100)
	}
	return text
}
