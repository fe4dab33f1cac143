//go:build linux

package main

import (
	"context"
	"strconv"
	"time"
)

// slots is how many may hold the semaphore.
const slots = 2

// sema is contenders for the slots of a semaphore: one child at a time in each, and no slot beyond the last.
type sema struct {
	name string
	all  []*part
}

func newSema(_ context.Context, a *arena) (workload, error) {
	s := &sema{name: "seats"}
	for i := range hosts {
		s.all = append(s.all, a.wrapper("sema", s.name, i, "--max", strconv.Itoa(slots), "--ttl", "5s", "--kill-after", "1s"))
	}
	return s, nil
}

func (s *sema) parts() []*part { return s.all }

// bySlot are the events of the semaphore, one list for each slot.
func (s *sema) bySlot(events []event) map[string][]event {
	all := map[string][]event{}
	for _, e := range holds(events, s.name) {
		all[e.Slot] = append(all[e.Slot], e)
	}
	return all
}

func (s *sema) waits(events []event, since time.Duration) (late []violation) {
	all := s.bySlot(events)
	for i := range slots {
		if !happened(all[strconv.Itoa(i)], whatStart, since) {
			late = append(late, violationf("sema", 0, "%s: nobody holds slot %d, although nothing is in the way any more", s.name, i))
		}
	}
	return late
}

func (s *sema) audit(events []event) (found []violation) {
	for slot, own := range s.bySlot(events) {
		if n, err := strconv.Atoi(slot); err != nil || n < 0 || n >= slots {
			found = append(found, violationf("sema", own[0].At, "%s: slot %q of %d", s.name, slot, slots))
		}
		found = append(found, exclusive("sema", own)...)
	}
	return found
}

func (s *sema) tally(events []event, numbers map[string]int) {
	for _, own := range s.bySlot(events) {
		count(own, numbers)
	}
}
