//go:build linux

package main

import (
	"slices"
	"syscall"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// wrapperCodes are those that a wrapper of a child of ours may end with: the child's own, what a signal of a fault or of a stop makes of
// that, and what it says of etcd and of a loss. Everything else is told of: 75 to who waits as long as it takes, a panic's 2.
var wrapperCodes = []int{
	hold.CodeOK, hold.CodeUnreachable, hold.CodeLost, hold.SignalCode(int(syscall.SIGKILL)), hold.SignalCode(int(syscall.SIGTERM)),
}

// judge lets each workload, and the auditor of them all, look at what happened.
func judge(a *arena, loads []workload, found []violation) (report, error) {
	events, err := a.history.events()
	if err != nil {
		return report{}, err
	}
	numbers := map[string]int{}
	for _, w := range loads {
		found = append(found, w.audit(events)...)
		found = append(found, ends(w.parts(), events)...)
		w.tally(events, numbers)
	}
	slices.SortStableFunc(found, func(a, b violation) int {
		if (a.At == 0) != (b.At == 0) { // what is wrong at the end comes last
			return int(b.At - a.At)
		}
		return int(a.At - b.At)
	})
	for _, v := range found {
		a.history.add(event{What: whatViolation, Text: v.Workload + ": " + v.Text})
	}
	if len(found) > 0 || a.Keep {
		if err := draw(a.path("timeline.svg"), events, found); err != nil {
			return report{}, err
		}
	}
	return summarize(events, numbers, found), nil
}

// exclusive judges the events of one office or slot: nobody found it taken, no child starts before the one before it has said
// that it ends, and tokens rise.
func exclusive(workload string, events []event) (found []violation) {
	var last event // start
	open := false  // it has neither stopped nor been followed
	for _, e := range events {
		switch e.What {
		case whatOverlap:
			found = append(found, violationf(workload, e.At, "%s: two children at once: token %d, process %d found it taken, the last to start was token %d, process %d",
				label(e), e.Token, e.Pid, last.Token, last.Pid))
		case whatStart:
			if e.Token <= last.Token {
				found = append(found, violationf(workload, e.At, "%s: token %d after %d", label(e), e.Token, last.Token))
			}
			last, open = e, true
		case whatStop:
			if e.Pid != last.Pid || e.Token != last.Token || !open {
				found = append(found, violationf(workload, e.At, "%s: token %d, process %d stops after token %d has started", label(e), e.Token, e.Pid, last.Token))
			}
			open = false
		}
	}
	return found
}

// label names an office, or a slot.
func label(e event) string {
	if e.Slot != "" {
		return e.Name + " slot " + e.Slot
	}
	return e.Name
}

// ends judges how the runs of parts ended.
func ends(parts []*part, events []event) (found []violation) {
	byName := map[string]*part{}
	for _, p := range parts {
		byName[p.name] = p
	}
	for _, e := range events {
		p := byName[e.Part]
		if p == nil {
			continue
		}
		switch killed := hold.SignalCode(int(syscall.SIGKILL)); {
		case e.What == whatStuck:
			found = append(found, violationf(p.name, e.At, "process %d did not end within %v of SIGTERM", e.Pid, time.Duration(patience)))
		case e.What != whatExit || e.Target == "killed" && e.Code == killed:
		case outcomeCode(e.Text) != 0 && e.Code != outcomeCode(e.Text):
			found = append(found, violationf(p.name, e.At, "process %d ended with code %d, outcome %q: want code %d", e.Pid, e.Code, e.Text, outcomeCode(e.Text)))
		case !slices.Contains(p.codes, e.Code):
			found = append(found, violationf(p.name, e.At, "process %d ended with code %d, outcome %q: want one of %v", e.Pid, e.Code, e.Text, p.codes))
		}
	}
	return found
}

// outcomeCode is the one code that goes with an outcome of a status file; 0: the code is the child's, or there is no outcome.
func outcomeCode(outcome string) int {
	switch hold.Result(outcome) {
	case hold.ResultLost, hold.ResultEvicted:
		return hold.CodeLost
	case hold.ResultUnreachable:
		return hold.CodeUnreachable
	case hold.ResultSignalled:
		return hold.SignalCode(int(syscall.SIGTERM)) // no other signal is sent to who waits
	}
	return 0
}
