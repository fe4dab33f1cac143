//go:build linux

package main

import (
	"context"
	"fmt"
	"time"
)

// workload is something that is promised, at work: some parts, and how what they did is judged.
type workload interface {
	// parts are its processes. Each is started again when it ends, and told to stop at the end of the run.
	parts() []*part
	// waits are what has not happened since everything worked again, as the violations that they are if they do not happen in time.
	waits(events []event, since time.Duration) []violation
	// audit judges all that happened, in the order of its time.
	audit(events []event) []violation
	// tally adds what was done to the numbers of the summary.
	tally(events []event, numbers map[string]int)
}

// allWorkloads are the workloads by name. make prepares what there has to be before the parts start: files, keys, jobs.
func allWorkloads() []struct {
	name string
	make func(ctx context.Context, a *arena) (workload, error)
} {
	return []struct {
		name string
		make func(ctx context.Context, a *arena) (workload, error)
	}{
		{"elect", newElect},
		{"sema", newSema},
		{"store", newStore},
		{"locks", newLocks},
		{"presence", newPresence},
		{"cron", newCron},
	}
}

func workloadNames() (names []string) {
	for _, w := range allWorkloads() {
		names = append(names, w.name)
	}
	return names
}

// violation is something that must not be.
type violation struct {
	Workload string        `json:"workload"`
	At       time.Duration `json:"at"` // CLOCK_BOOTTIME; 0: at the end
	Text     string        `json:"text"`
}

func violationf(workload string, at time.Duration, format string, args ...any) violation {
	return violation{workload, at, fmt.Sprintf(format, args...)}
}
