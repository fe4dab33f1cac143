//go:build linux

package main

import (
	"reflect"
	"testing"
	"time"
)

// strip leaves of a schedule what can be compared: functions cannot.
func strip(all [][]step) (plain [][]any) {
	for _, steps := range all {
		var lane []any
		for _, st := range steps {
			lane = append(lane, st.kind.name, st.id, st.target, st.at, st.lasts)
		}
		plain = append(plain, lane)
	}
	return plain
}

func TestASeedMakesOneSchedule(t *testing.T) {
	t.Parallel()
	const span = 10 * time.Minute
	a, b := strip(schedule(7, span, kinds())), strip(schedule(7, span, kinds()))
	if !reflect.DeepEqual(a, b) {
		t.Error("two schedules of one seed differ")
	}
	if reflect.DeepEqual(a, strip(schedule(8, span, kinds()))) {
		t.Error("two seeds have one schedule")
	}
}

// In ten minutes everything comes, nothing outlasts the span, and the faults of a lane follow each other with time in between.
func TestASchedule(t *testing.T) {
	t.Parallel()
	const span = 10 * time.Minute
	for seed := range uint64(20) {
		seen, ids := map[string]bool{}, map[int]bool{}
		for i, steps := range schedule(seed, span, kinds()) {
			var free time.Duration
			for _, st := range steps {
				if st.kind.lane != lanes()[i] || st.at <= free || st.lasts < st.kind.least || st.lasts > max(st.kind.least, st.kind.most) || st.at+st.lasts > span {
					t.Errorf("seed %d, lane %d: %s at %v for %v, free from %v", seed, i, st.kind.name, st.at, st.lasts, free)
				}
				if ids[st.id] {
					t.Errorf("seed %d: id %d is there twice", seed, st.id)
				}
				free, seen[st.kind.name], ids[st.id] = st.at+st.lasts, true, true
			}
		}
		for _, name := range kindNames() {
			if !seen[name] {
				t.Errorf("seed %d: no %s", seed, name)
			}
		}
	}
}

func TestFaultsAreChosenByWhatThereIs(t *testing.T) {
	t.Parallel()
	daemons := []*part{{role: roleDaemon}}
	for _, k := range kinds() {
		switch k.name {
		case "kill-wrapper", "revoke-lease", "stop-both":
			if k.concerns(daemons) {
				t.Errorf("%s where there are only daemons", k.name)
			}
		case "kill-daemon", "kill-host", "move-leader", "lossy":
			if !k.concerns(daemons) {
				t.Errorf("no %s where there are daemons", k.name)
			}
		}
		if k.most != 0 && k.most <= k.least {
			t.Errorf("%s lasts from %v to %v", k.name, k.least, k.most)
		}
	}
}
