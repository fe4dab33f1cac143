//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// lane is a queue of faults, one at a time; those of different lanes overlap. Of the members one at most is hurt at a time, but for
// faults that say otherwise, and so a majority is there again when a fault has ended.
type lane string

const (
	laneProcess lane = "process" // of parts
	laneMember  lane = "member"
	laneNetwork lane = "network" // of hosts
	laneStore   lane = "store"   // what stands in etcd
)

// kind is a kind of fault.
type kind struct {
	name  string
	rows  []int // of the matrix in docs/faults.md
	lane  lane
	least time.Duration // it lasts from least
	most  time.Duration // to most; 0: it is over at once
	netns bool          // it needs network namespaces
	roles []role        // it happens to parts of these; empty: not to parts
	// inject does it. The target is any number: what there is to be hit is chosen by it. It returns whom it hit, and what ends the
	// fault, which may be nil. errMissed: there was nobody.
	inject func(ctx context.Context, s strike) (target string, heal func() error, err error)
}

// strike is one fault of a schedule.
type strike struct {
	a      *arena
	parts  []*part
	id     int
	target int
}

// errMissed is returned when a fault finds nobody to hit, because it has just ended, say.
var errMissed = errors.New("nobody to hit")

// kinds are all faults, a file each group.
func kinds() (all []kind) {
	for _, group := range [][]kind{processFaults(), memberFaults(), networkFaults(), storeFaults()} {
		all = append(all, group...)
	}
	return all
}

func kindNames() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// injection is how long it is tried to inject a fault, before it counts as missed.
const injection = 3 * time.Second

// happen injects the fault, lets it last, and ends it, whatever has become of ctx.
func (s strike) happen(ctx context.Context, st step) error {
	try, cancel := context.WithTimeout(ctx, injection)
	target, heal, err := st.kind.inject(try, s)
	cancel()
	e := event{What: whatFault, Fault: st.kind.name, Target: target, ID: s.id}
	switch {
	case errors.Is(err, errMissed) || err != nil && heal == nil && try.Err() != nil:
		e.What, e.Text = whatMiss, err.Error()
		s.a.tell(s.a.history.add(e))
		return nil
	case err != nil:
		if heal != nil {
			err = errors.Join(err, heal())
		}
		return fmt.Errorf("inject %s: %w", st.kind.name, err)
	}
	s.a.tell(s.a.history.add(e))
	if heal == nil {
		return nil
	}
	sleep(ctx, st.lasts)
	if err := heal(); err != nil {
		return fmt.Errorf("end %s: %w", st.kind.name, err)
	}
	s.a.tell(s.a.history.add(event{What: whatHeal, Fault: st.kind.name, Target: target, ID: s.id}))
	return nil
}
