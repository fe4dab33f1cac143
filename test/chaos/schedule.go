//go:build linux

package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// step is one fault of a schedule: what, to whom, when and for how long.
type step struct {
	kind   kind
	id     int
	target int
	at     time.Duration // since the begin of the run
	lasts  time.Duration
}

// pace is how long a lane is quiet between two faults: time to get over the last one. Members get more, so that not every fault
// meets a cluster without a leader.
func pace(l lane, rng *rand.Rand) time.Duration {
	least, more := 300, 1200
	switch l {
	case laneMember:
		least, more = 1500, 3000
	case laneNetwork:
		least, more = 700, 2000
	}
	return time.Duration(least+rng.IntN(more)) * time.Millisecond
}

// lanes are those of a schedule, in a fixed order: two for processes, so that two of them are hit together.
func lanes() []lane { return []lane{laneProcess, laneProcess, laneMember, laneNetwork, laneStore} }

// schedule draws the faults of a run: one list for each lane. It depends on nothing but its arguments. All faults end within the span.
func schedule(seed uint64, span time.Duration, faults []kind) (all [][]step) {
	id := 0
	for i, l := range lanes() {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		var steps []step
		own := slices.DeleteFunc(slices.Clone(faults), func(k kind) bool { return k.lane != l })
		at := 2*time.Second + pace(l, rng)
		for len(own) > 0 {
			k := own[rng.IntN(len(own))]
			st := step{kind: k, target: rng.IntN(1 << 20), at: at, lasts: k.least}
			if k.most > k.least {
				st.lasts += time.Duration(rng.Int64N(int64(k.most - k.least)))
			}
			at += st.lasts + pace(l, rng)
			if st.at+st.lasts > span {
				break
			}
			id++
			st.id = id
			steps = append(steps, st)
		}
		all = append(all, steps)
	}
	return all
}
