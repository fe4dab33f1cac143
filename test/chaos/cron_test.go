//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron/record"
)

// shelf is an archive in memory.
type shelf struct {
	said  map[string][]record.Result // by job, or job@host
	opens []int64
	fail  error
}

func (s *shelf) results(job, host string) (all []record.Result, cursor int64, err error) {
	if host != "" {
		job += "@" + host
	}
	for _, r := range s.said[job] {
		cursor = max(cursor, r.Tick)
	}
	return s.said[job], cursor, s.fail
}

func (s *shelf) open() ([]int64, error) { return s.opens, s.fail }

// ticked is a result of a tick that succeeded.
func ticked(job, host string, tick int64) record.Result {
	id := record.ID{Tick: tick, Host: host}
	return record.Result{Job: job, Tick: tick, Attempt: 1, Kind: record.Scheduled, Status: record.Success, Host: host, Pid: int(tick), Rev: tick + 1000, RunID: job + "/" + id.String()}
}

// started is what a run of it wrote down.
func started(job, host string, tick int64) event {
	return event{What: whatStart, Name: job, Part: host, Token: uint64(tick + 1000), Pid: int(tick), Value: fmt.Sprint(tick, " 1")}
}

func TestWhatIsWrongWithTicksIsFound(t *testing.T) {
	t.Parallel()
	one := []scheduled{{name: "long", manner: jobAlone, step: 2}}
	all := []scheduled{{name: "each", manner: jobHost, step: 2}}
	daemons := []*part{{name: "a"}, {name: "b"}}
	with := func(e event, change func(*event)) event { change(&e); return e }
	long := map[string][]record.Result{"long": {ticked("long", "", 2), ticked("long", "", 4)}}
	each := map[string][]record.Result{"each@a": {ticked("each", "a", 2)}, "each@b": {revised(ticked("each", "b", 2), 1003)}}
	onB := with(started("each", "b", 2), func(e *event) { e.Token = 1003 })
	for name, row := range map[string]struct {
		jobs   []scheduled
		shelf  shelf
		events []event
		want   []string
	}{
		"each tick once":         {one, shelf{said: long}, at(started("long", "a", 2), started("long", "b", 4)), nil},
		"a doubled tick":         {one, shelf{said: long}, at(started("long", "a", 2), started("long", "b", 4), with(started("long", "a", 4), func(e *event) { e.Token++ })), []string{"long: tick 4 was started twice"}},
		"two alive":              {one, shelf{said: long}, at(started("long", "a", 2), with(started("long", "b", 4), func(e *event) { e.What = whatOverlap })), []string{"long: tick 4: another one is alive"}},
		"silent":                 {one, shelf{said: long}, at(started("long", "a", 2), started("long", "b", 4), started("long", "b", 6)), []string{"started, and no result tells of it"}},
		"once a host":            {all, shelf{said: each}, at(started("each", "a", 2), onB), nil},
		"twice on a host":        {all, shelf{said: each}, at(started("each", "a", 2), onB, with(started("each", "b", 2), func(e *event) { e.Token = 1009 })), []string{"each@b: tick 2 was started twice"}},
		"on a host that is none": {all, shelf{said: each}, at(started("each", "a", 2), onB, started("each", "c", 2)), []string{`each: a start of "2 1" on "c"`}},
		"a line that is none":    {one, shelf{said: long}, at(started("long", "a", 2), started("long", "b", 4), with(started("long", "b", 6), func(e *event) { e.Value = "?" })), []string{`a start of "?"`}},
		"etcd does not say":      {one, shelf{fail: errors.New("away")}, nil, []string{"long: nobody knows what became of its ticks: away"}},
	} {
		c := &cron{daemons: daemons, jobs: row.jobs, said: &row.shelf, kinds: map[string]int{}}
		says(t, name, c.audit(row.events), row.want...)
	}
}

// revised gives a result another token.
func revised(r record.Result, rev int64) record.Result { r.Rev = rev; return r }

func TestTicksAreTold(t *testing.T) {
	t.Parallel()
	c := &cron{jobs: []scheduled{{name: "long", manner: jobAlone, step: 2}}, kinds: map[string]int{},
		said: &shelf{said: map[string][]record.Result{"long": {ticked("long", "", 2), ticked("long", "", 4)}}}}
	says(t, "well", c.audit(at(started("long", "a", 2), started("long", "b", 4))))
	numbers := map[string]int{}
	c.tally(nil, numbers)
	if want := (map[string]int{"ticks success": 2}); !maps.Equal(numbers, want) {
		t.Errorf("%v, want %v", numbers, want)
	}
}

func TestJobsHaveToRunAgainAndNothingStaysOpen(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	c := &cron{daemons: []*part{{name: "a"}, {name: "b"}}, said: s, jobs: []scheduled{{name: "long", manner: jobAlone, step: 2}, {name: "each", manner: jobHost, step: 2}}}
	stop := func(job, host string) event { e := started(job, host, 2); e.What = whatStop; return e }
	now := coord.Now()
	events := at(stop("long", "a"), stop("each", "a"), stop("each", "b"))
	for i := range events {
		events[i].At += now
	}
	says(t, "they run", c.waits(events, now))
	says(t, "one host is missing", c.waits(events[:2], now), "each: it ran on 1 hosts, want 2")
	says(t, "that was before", c.waits(events, now+time.Minute), "long: it ran on 0 hosts, want 1")
	s.opens = []int64{wall(now) + 5, wall(now) - 5}
	says(t, "something is open", c.waits(events, now), "stays open")
	s.opens = s.opens[:1]
	says(t, "that began later", c.waits(events, now))
	s.fail = errors.New("away")
	says(t, "etcd does not say", c.waits(events, now), "nobody knows what is open: away")
}
