package plan

import (
	"slices"
	"testing"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
)

// A node that lacks something does not claim, and one that lacks nothing does: both are asked of the same peers.
func TestWhatANodeLacks(t *testing.T) {
	t.Parallel()
	spec := &job.Job{Select: map[string]string{"zone": "a", "db": "yes"}, User: "www", TZ: "Europe/Berlin"}
	good := Peer{
		Host: "a", Labels: map[string]string{"zone": "a", "db": "yes"}, Carded: true,
		Card: record.Card{Zones: "2026a", MaxRunning: 2, User: "root", Users: []string{"www"}},
	}
	for name, tt := range map[string]struct {
		change func(*Peer)
		want   []string
		able   bool // as far as Able looks
	}{
		"nothing":              {func(*Peer) {}, nil, true},
		"nothing that is said": {func(p *Peer) { p.Carded, p.Card = false, record.Card{} }, nil, true},
		"anybody may":          {func(p *Peer) { p.Card.Users = []string{"*"} }, nil, true},
		"its own user":         {func(p *Peer) { p.Card.User, p.Card.Users = "www", nil }, nil, true},
		"labels":               {func(p *Peer) { p.Labels = map[string]string{"zone": "b"} }, []string{"has no label db=yes", "has zone=b, not a"}, false},
		"the user":             {func(p *Peer) { p.Card.Users = []string{"web"} }, []string{"runs jobs as root, web only, not as www"}, false},
		"the time zones":       {func(p *Peer) { p.Card.Zones = "2025b" }, []string{"has time zones 2025b, and those that count are 2026a"}, true},
		"room":                 {func(p *Peer) { p.Card.Running = 2 }, []string{"is full: 2 of 2 run"}, false},
		"time":                 {func(p *Peer) { p.Card.Stopping = true }, []string{"is stopping"}, false},
		"a clock":              {func(p *Peer) { p.Card.Unfit = "clock is off by 9s" }, []string{"is not fit to claim: clock is off by 9s"}, false},
		"leave":                {func(p *Peer) { p.Drained, p.Drain = true, record.Stop{By: "me", Why: "kernel"} }, []string{"is drained by me: kernel"}, false},
		"leave of nobody":      {func(p *Peer) { p.Drained = true }, []string{"is drained"}, false},
	} {
		p := good
		tt.change(&p)
		if got := p.Lacks(spec, "2026a"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if p.Able(spec) != tt.able {
			t.Errorf("%s: able is not %v", name, tt.able)
		}
	}
	if good.Able(nil) {
		t.Error("able to run what is not there")
	}
}

func TestTheZonesOfTheFirstNodeCount(t *testing.T) {
	t.Parallel()
	card := func(zones string) record.Card { return record.Card{Zones: zones} }
	for want, all := range map[string][]Peer{
		"":      {{Host: "a", Rev: 1}},
		"2026a": {{Host: "a", Rev: 3, Carded: true, Card: card("2026b")}, {Host: "b", Rev: 2, Carded: true, Card: card("2026a")}, {Host: "c", Rev: 1}},
	} {
		if got := Zones(all); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for zone, want := range map[string]bool{"": false, "UTC": false, "Etc/UTC": false, "Asia/Tokyo": true} {
		if Zoned(&job.Job{TZ: zone}) != want {
			t.Errorf("zone %q: not %v", zone, want)
		}
	}
}

func TestWhyNobodyStarted(t *testing.T) {
	t.Parallel()
	spec := &job.Job{Select: map[string]string{"zone": "a"}}
	there, full, other := Peer{Labels: spec.Select}, Peer{Labels: spec.Select, Drained: true}, Peer{}
	for _, tt := range []struct {
		peers []Peer
		want  record.Reason
	}{
		{nil, record.ReasonNoNode}, {[]Peer{other}, record.ReasonNoNode}, {[]Peer{other, full}, record.ReasonCapacity},
		{[]Peer{full, there, full}, record.ReasonDeadline},
	} {
		if got := Absent(spec, tt.peers); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.peers, got, tt.want)
		}
	}
}
