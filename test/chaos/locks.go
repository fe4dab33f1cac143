//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-coord/coord/internal/linear"
)

const (
	// lockName begins the names of the locks.
	lockName = "orders"
	// decision is how long an order of the calls to one lock or register is looked for.
	decision = 20 * time.Second
)

// locks is lockers that are killed, stopped and cut off while they write under their tokens: no stale write is accepted, tokens
// rise, and there is an order in which all that they were told is right.
type locks struct {
	all       []*part
	decided   int // orders that were found, or shown not to be
	undecided int // searches that took too long
}

func newLocks(_ context.Context, a *arena) (workload, error) {
	l := &locks{}
	for i := range 3 {
		l.all = append(l.all, a.ours(lockerRole, lockName, i))
	}
	return l, nil
}

func (l *locks) parts() []*part { return l.all }

// waits for a lease, and a write under it, that was asked for since.
func (l *locks) waits(events []event, since time.Duration) (late []violation) {
	for _, want := range []string{callAcquire, callWrite} {
		if !slices.ContainsFunc(pairs(ofLocks(events)), func(a *asked) bool {
			return a.call.At > since && a.call.Text == want && a.answer.Text == wordYes
		}) {
			late = append(late, violationf("locks", 0, "%s: no %s succeeds, although nothing is in the way any more", lockName, want))
		}
	}
	return late
}

func (l *locks) audit(events []event) (found []violation) {
	byKey := map[string][]*asked{}
	for _, a := range pairs(ofLocks(events)) {
		byKey[a.call.Name] = append(byKey[a.call.Name], a)
	}
	early := dozes(events)
	for key, calls := range byKey {
		found = append(found, stale(calls)...)
		found = append(found, falling(calls)...)
		var lock, register []porcupine.Operation
		for _, a := range calls {
			if op, ok := a.lock(early); ok {
				lock = append(lock, op)
			} else if op, ok := a.register(); ok {
				register = append(register, op)
			}
		}
		found = append(found, l.verdict(calls[0].call.At, linear.JudgeLocks(lock, decision))...)
		found = append(found, l.verdict(calls[0].call.At, linear.JudgeRegister(registerPrefix+key, register, decision))...)
	}
	return found
}

// verdict counts how a search for an order ended.
func (l *locks) verdict(at time.Duration, err error) []violation {
	if errors.Is(err, linear.ErrUndecided) {
		l.undecided++
		return nil
	}
	l.decided++
	if err != nil {
		return []violation{violationf("locks", at, "%v", err)}
	}
	return nil
}

func ofLocks(events []event) []event {
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool { return !strings.HasPrefix(e.Name, lockName+".") })
}

// answered are the positive answers to calls of a kind, each followed by the calls that were made after it: what a later call was told
// is judged by what an earlier one was told before that was asked.
func answered(calls []*asked, kind string, judge func(earlier, later *asked)) {
	var done []*asked // by the time of their answers
	for _, a := range calls {
		if a.call.Text == kind && a.answer.Text == wordYes {
			done = append(done, a)
		}
	}
	later := slices.Clone(done) // by the time of the calls
	slices.SortStableFunc(done, func(a, b *asked) int { return int(a.answer.At - b.answer.At) })
	var highest *asked
	for _, a := range later {
		for len(done) > 0 && done[0].answer.At < a.call.At {
			if highest == nil || token(done[0]) > token(highest) {
				highest = done[0]
			}
			done = done[1:]
		}
		if highest != nil {
			judge(highest, a)
		}
	}
}

// token is that of a lease that was granted, or under which something was written.
func token(a *asked) uint64 { return max(a.call.Token, a.answer.Token) }

// stale are writes that were accepted although one with a higher token had been before they were asked for.
func stale(calls []*asked) (found []violation) {
	answered(calls, callWrite, func(earlier, later *asked) {
		if token(later) < token(earlier) {
			found = append(found, violationf("locks", later.answer.At, "%s: stale write: token %d, process %d writes after token %d, process %d",
				later.call.Name, token(later), later.call.Pid, token(earlier), earlier.call.Pid))
		}
	})
	return found
}

// falling are leases that were granted with a token that is no higher than that of one before.
func falling(calls []*asked) (found []violation) {
	answered(calls, callAcquire, func(earlier, later *asked) {
		if token(later) <= token(earlier) {
			found = append(found, violationf("locks", later.answer.At, "%s: token %d is granted to process %d after token %d to process %d",
				later.call.Name, token(later), later.call.Pid, token(earlier), earlier.call.Pid))
		}
	})
	return found
}

// dozes are the times of the faults in which a member is stopped, and has leases revoked when it goes on that were renewed elsewhere
// meanwhile: the comment of package etcdlock promises nothing then.
func dozes(events []event) (all []span) {
	const moment = 3 * time.Second // until what it has revoked is revoked
	began := map[int]time.Duration{}
	for _, e := range events {
		switch {
		case !slices.Contains([]string{"stop-member", "stop-leader", "stop-leader-long", "stop-majority"}, e.Fault):
		case e.What == whatFault:
			began[e.ID] = e.At
		case e.What == whatHeal:
			all = append(all, span{began[e.ID], e.At + moment})
		}
	}
	return all
}

func (l *locks) tally(events []event, numbers map[string]int) {
	for _, a := range pairs(ofLocks(events)) {
		numbers["calls of locks checked"]++
		switch {
		case !a.known:
			numbers["calls of locks without an answer"]++
		case a.answer.Text == wordNo && a.call.Text == callWrite:
			numbers["writes refused"]++
		case a.answer.Text == wordYes && a.call.Text == callWrite:
			numbers["writes"]++
		case a.answer.Text == wordYes && a.call.Text == callAcquire:
			numbers["locks granted"]++
		}
	}
	numbers["orders of calls decided"] += l.decided
	numbers[fmt.Sprintf("orders of calls not decided in %v", decision)] += l.undecided
}
