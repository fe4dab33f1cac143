package linear

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Call is one call of the history as it was made. Times are counted from the beginning of the history.
type Call struct {
	Kind  Kind
	Key   string
	Token uint64 // of the lease that was given
}

// Kind is one of the three calls of a Locker.
type Kind string

// The calls of a Locker.
const (
	Acquire Kind = "acquire"
	Renew   Kind = "renew"
	Release Kind = "release"
)

// Answer is what became of a call.
type Answer struct {
	Held    bool
	Token   uint64
	Expires time.Duration // ExpiresAt
	At      time.Duration // when the call had returned
	Unknown bool          // an error: it may have happened at any time since the call, or never
}

// lock is the state of one key in the model: by the contract, and by nothing else.
//
// A lease may end by itself at any time from its ExpiresAt on, so that its end is no step of its own: whoever is granted
// the key after free, or is told that the lease is over, has seen it.
type lock struct {
	holder uint64        // token; 0: nobody's
	free   time.Duration // nobody else is granted the key before
	last   uint64        // the highest token so far
}

// lost stands for the token of an Acquire without an answer: nobody has it, so nobody renews or releases it.
const lost = math.MaxUint64

// now is before any time in a history: a key that was released is free at once.
const now = time.Duration(math.MinInt64)

// model is a lock as porcupine takes it. Each key is a lock of its own. Calls without an answer return at the end of the
// history: such a one that never happened is put there in any order that is looked for, where it harms nobody.
func model() porcupine.Model {
	return porcupine.Model{
		Partition: partition,
		Init:      func() any { return lock{free: now} },
		Step: func(state, input, output any) (bool, any) {
			return state.(lock).step(input.(Call), output.(Answer))
		},
		DescribeOperation: func(input, output any) string { return describe(input.(Call), output.(Answer)) },
	}
}

// step is what the contract says of one call.
func (l lock) step(c Call, a Answer) (bool, any) {
	switch {
	case c.Kind == Acquire && a.Unknown:
		if l.holder == 0 {
			l.holder = lost
		}
		return true, l
	case c.Kind == Acquire && a.Held:
		ok := l.free <= a.At && a.Token > l.last
		return ok, lock{holder: a.Token, free: a.Expires, last: a.Token}
	case c.Kind == Acquire:
		return l.holder != 0, l
	case c.Kind == Renew && a.Held:
		l.free = a.Expires
		return l.holder == c.Token && a.Token == c.Token, l
	case c.Kind == Renew:
		if l.holder != c.Token {
			return true, l
		}
		l.holder = 0
		return l.free <= a.At, l
	}
	if l.holder == c.Token {
		l.holder, l.free = 0, now
	}
	return true, l
}

// partition sorts a history by keys, in the order of the calls. A renewal without an answer says nothing.
func partition(history []porcupine.Operation) [][]porcupine.Operation {
	history = slices.Clone(history)
	slices.SortStableFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	index := map[string]int{}
	var parts [][]porcupine.Operation
	for _, op := range history {
		if op.Input.(Call).Kind == Renew && op.Output.(Answer).Unknown {
			continue
		}
		key := op.Input.(Call).Key
		i, ok := index[key]
		if !ok {
			i = len(parts)
			index[key] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

func describe(c Call, a Answer) string {
	what := string(c.Kind)
	if c.Kind != Acquire {
		what = fmt.Sprintf("%s(%d)", c.Kind, c.Token)
	}
	switch {
	case a.Unknown:
		return what + " -> no answer"
	case c.Kind == Release:
		return what + " -> done"
	case !a.Held:
		return fmt.Sprintf("%s -> false, at %v", what, a.At)
	}
	return fmt.Sprintf("%s -> %d until %v, at %v", what, a.Token, a.Expires, a.At)
}

// JudgeLocks looks for an order of the calls to each lock.
func JudgeLocks(history []porcupine.Operation, patience time.Duration) error {
	for _, part := range partition(history) {
		if err := judge(part[0].Input.(Call).Key, model(), part, patience); err != nil {
			return err
		}
	}
	return nil
}
