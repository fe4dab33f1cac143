package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
)

// Peer is what is known of a node that is registered: the one that decides, too, as others see it.
type Peer struct {
	Host    string
	Rev     int64 // create revision of its registration: who came first has the lowest
	Version string
	Labels  map[string]string
	Card    record.Card
	Carded  bool // it has said how it is
	// Drained: an operator wants nothing to be started there. Drain says who, where that is known.
	Drained bool
	Drain   record.Stop
}

// MayRunAs reports whether a node whose daemon runs as own, and that allows users, runs a job of a user's.
func MayRunAs(user, own string, users []string) bool {
	return user == "" || user == own || slices.Contains(users, user) || slices.Contains(users, "*")
}

// Zoned reports whether the ticks of a job depend on the time zone database.
func Zoned(spec *job.Job) bool { return spec.TZ != "" && spec.TZ != "UTC" && spec.TZ != "Etc/UTC" }

// Zones is the time zone database that counts, which is that of the node that registered first: where they differ, the newer nodes
// leave what depends on it to those that were there before, so that a tick never is two things. It is "" where nobody has said.
func Zones(peers []Peer) string {
	first := -1
	for i := range peers {
		if p := &peers[i]; p.Carded && (first < 0 || p.Rev < peers[first].Rev) {
			first = i
		}
	}
	if first < 0 {
		return ""
	}
	return peers[first].Card.Zones
}

// Candidate reports whether a node is one that a job is for, as far as is known: whether it would start it now is another question.
func (p *Peer) Candidate(spec *job.Job) bool {
	return spec != nil && spec.Matches(p.Labels) && (!p.Carded || MayRunAs(spec.User, p.Card.User, p.Card.Users))
}

// Able reports whether a node would claim starts of a job now, as far as is known. Whether it has the time zones that count is not
// looked at: see Lacks.
func (p *Peer) Able(spec *job.Job) bool {
	busy := p.Carded && (p.Card.Unfit != "" || p.Card.Stopping || p.Card.Running >= p.Card.MaxRunning)
	return p.Candidate(spec) && !busy && !p.Drained
}

// Absent says why nobody started a tick, as far as these nodes tell.
func Absent(spec *job.Job, peers []Peer) record.Reason {
	why := record.ReasonNoNode
	for i := range peers {
		switch {
		case peers[i].Able(spec):
			return record.ReasonDeadline
		case peers[i].Candidate(spec):
			why = record.ReasonCapacity
		}
	}
	return why
}

// Lacks says what keeps a node from claiming starts of a job, where zones is the time zone database that counts: nothing where it
// would. The texts hold what the node and the job say of themselves, as it is.
func (p *Peer) Lacks(spec *job.Job, zones string) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(spec.Select)) {
		switch has, ok := p.Labels[name]; {
		case !ok:
			say("has no label %s=%s", name, spec.Select[name])
		case has != spec.Select[name]:
			say("has %s=%s, not %s", name, has, spec.Select[name])
		}
	}
	c := &p.Card
	if p.Carded && !MayRunAs(spec.User, c.User, c.Users) {
		say("runs jobs as %s only, not as %s", strings.Join(append([]string{c.User}, c.Users...), ", "), spec.User)
	}
	if p.Carded && Zoned(spec) && zones != c.Zones {
		say("has time zones %s, and those that count are %s", c.Zones, zones)
	}
	if p.Drained {
		say("is drained%s", byWhom(p.Drain.By, p.Drain.Why))
	}
	switch {
	case !p.Carded: // nothing is known against it
	case c.Stopping:
		say("is stopping")
	case c.Running >= c.MaxRunning:
		say("is full: %d of %d run", c.Running, c.MaxRunning)
	}
	if c.Unfit != "" {
		say("is not fit to claim: %s", c.Unfit)
	}
	return all
}

// byWhom goes behind what somebody did.
func byWhom(by, why string) string {
	text := ""
	if by != "" {
		text = " by " + by
	}
	if why != "" {
		text += ": " + why
	}
	return text
}
