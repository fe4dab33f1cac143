//go:build linux

package main

import (
	"context"
	"time"
)

// elect is contenders for offices: one child at a time in each, whatever happens.
type elect struct{ offices }

// offices are holds of names, with the parts that contend for them.
type offices struct {
	workload string
	names    []string
	all      []*part
}

// newElect has an office whose lease is short, so that most faults cost it, and one with the defaults, which stand more.
func newElect(_ context.Context, a *arena) (workload, error) {
	e := &elect{offices{workload: "elect", names: []string{"brief", "calm"}}}
	for i := range 3 {
		e.all = append(e.all, a.wrapper("elect", "brief", i, "--ttl", "4s", "--kill-after", "1s"), a.wrapper("elect", "calm", i))
	}
	return e, nil
}

func (o offices) parts() []*part { return o.all }

// holds are the events of one name.
func holds(events []event, name string) (own []event) {
	for _, e := range events {
		if e.Name == name {
			own = append(own, e)
		}
	}
	return own
}

// waits for a hold of each name that began since.
func (o offices) waits(events []event, since time.Duration) (late []violation) {
	for _, name := range o.names {
		if !happened(holds(events, name), whatStart, since) {
			late = append(late, violationf(o.workload, 0, "%s: nobody holds it, although nothing is in the way any more", name))
		}
	}
	return late
}

func happened(events []event, what what, since time.Duration) bool {
	for _, e := range events {
		if e.What == what && e.At > since {
			return true
		}
	}
	return false
}

func (o offices) audit(events []event) (found []violation) {
	for _, name := range o.names {
		found = append(found, exclusive(o.workload, holds(events, name))...)
	}
	return found
}

func (o offices) tally(events []event, numbers map[string]int) {
	for _, name := range o.names {
		count(holds(events, name), numbers)
	}
}

// count counts the holds of an office or slot, and how often one followed another.
func count(events []event, numbers map[string]int) {
	before := false
	for _, e := range events {
		switch {
		case e.What != whatStart:
			continue
		case before:
			numbers["hand-overs"]++
		}
		numbers["holds"]++
		before = true
	}
}
