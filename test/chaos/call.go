//go:build linux

package main

import (
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-coord/coord/internal/linear"
)

// Calls of a locker, in the text of an event, and what it is told.
const (
	callAcquire = string(linear.Acquire)
	callRenew   = string(linear.Renew)
	callRelease = string(linear.Release)
	callWrite   = "write"
	callRead    = "read"

	wordYes     = "yes"
	wordNo      = "no"
	wordUnknown = "unknown"
)

// asked is a call, and what came of it.
type asked struct {
	call, answer event
	known        bool // there was an answer
}

// pairs puts answers to calls, in the order of the calls. A process that was killed has left one without.
func pairs(events []event) (all []*asked) {
	type name struct{ pid, id int }
	open := map[name]*asked{}
	for _, e := range events {
		switch n := (name{e.Pid, e.ID}); e.What {
		case whatCall:
			a := &asked{call: e}
			all, open[n] = append(all, a), a
		case whatReturn:
			if a := open[n]; a != nil {
				a.answer, a.known = e, e.Text != wordUnknown
				delete(open, n) // another process may get the number
			}
		}
	}
	return all
}

// operation is the call as the search for an order takes it.
func (a *asked) operation(input, output any) porcupine.Operation {
	op := porcupine.Operation{ClientId: a.call.Pid, Input: input, Output: output, Call: int64(a.call.At), Return: linear.Never}
	if a.known {
		op.Return = int64(a.answer.At)
	}
	return op
}

// lock is the call as one of a lock; false: it is none. A lease that etcd may take away early promises nothing of its end.
func (a *asked) lock(early []span) (op porcupine.Operation, ok bool) {
	input := linear.Call{Kind: linear.Kind(a.call.Text), Key: a.call.Name, Token: a.call.Token}
	switch input.Kind {
	case linear.Acquire, linear.Renew, linear.Release:
	default:
		return op, false
	}
	output := linear.Answer{Held: a.answer.Text == wordYes, Token: a.answer.Token, Expires: a.answer.Until, At: a.answer.At, Unknown: !a.known}
	for _, s := range early {
		if a.call.At < s.to && a.answer.Until > s.from {
			output.Expires = 0
		}
	}
	return a.operation(input, output), true
}

// register is the call as one of a register; false: it is none.
func (a *asked) register() (op porcupine.Operation, ok bool) {
	if a.call.Text != callWrite && a.call.Text != callRead {
		return op, false
	}
	input := linear.Access{Write: a.call.Text == callWrite, Key: a.call.Name, Token: a.call.Token, Value: a.call.Value}
	output := linear.Outcome{Refused: a.answer.Text == wordNo, Seen: a.answer.Token, Value: a.answer.Value, Unknown: !a.known}
	return a.operation(input, output), true
}

// span is a stretch of time.
type span struct{ from, to time.Duration }
