package locktest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// call is one call of the history as it was made. Times are counted from the beginning of the history.
type call struct {
	kind  kind
	key   string
	token uint64 // of the lease that was given
}

type kind string

const (
	acquire kind = "acquire"
	renew   kind = "renew"
	release kind = "release"
)

// answer is what became of a call.
type answer struct {
	held    bool
	token   uint64
	expires time.Duration // ExpiresAt
	at      time.Duration // when the call had returned
	unknown bool          // an error: it may have happened at any time since the call, or never
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
			return state.(lock).step(input.(call), output.(answer))
		},
	}
}

// step is what the contract says of one call.
func (l lock) step(c call, a answer) (bool, any) {
	switch {
	case c.kind == acquire && a.unknown:
		if l.holder == 0 {
			l.holder = lost
		}
		return true, l
	case c.kind == acquire && a.held:
		ok := l.free <= a.at && a.token > l.last
		return ok, lock{holder: a.token, free: a.expires, last: a.token}
	case c.kind == acquire:
		return l.holder != 0, l
	case c.kind == renew && a.held:
		l.free = a.expires
		return l.holder == c.token && a.token == c.token, l
	case c.kind == renew:
		if l.holder != c.token {
			return true, l
		}
		l.holder = 0
		return l.free <= a.at, l
	}
	if l.holder == c.token {
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
		if op.Input.(call).kind == renew && op.Output.(answer).unknown {
			continue
		}
		key := op.Input.(call).key
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

func describe(c call, a answer) string {
	what := string(c.kind)
	if c.kind != acquire {
		what = fmt.Sprintf("%s(%d)", c.kind, c.token)
	}
	switch {
	case a.unknown:
		return what + " -> no answer"
	case c.kind == release:
		return what + " -> done"
	case !a.held:
		return fmt.Sprintf("%s -> false, at %v", what, a.at)
	}
	return fmt.Sprintf("%s -> %d until %v, at %v", what, a.token, a.expires, a.at)
}

// judge looks for an order, and says what stands in its way: nil where there is one.
func judge(history []porcupine.Operation, patience time.Duration) error {
	for _, part := range partition(history) {
		result, info := porcupine.CheckOperationsVerbose(model(), part, patience)
		switch result {
		case porcupine.Ok:
		case porcupine.Unknown:
			return fmt.Errorf("%q: no order found in %v, and none excluded, for %d calls", part[0].Input.(call).key, patience, len(part))
		default:
			return fmt.Errorf("%q: no order of %d calls makes all answers right; %s", part[0].Input.(call).key, len(part), conflict(part, info))
		}
	}
	return nil
}

// conflict shows the end of the longest order that was found, and the calls of which none can come next.
func conflict(part []porcupine.Operation, info porcupine.LinearizationInfo) string {
	const context = 16
	var longest []porcupine.Operation
	for _, orders := range info.PartialLinearizationsOperations() {
		for _, order := range orders {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	in := map[int64]bool{}
	for _, op := range longest {
		in[op.Call] = true
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of them have one, which ends with\n", len(longest))
	line := func(op porcupine.Operation) {
		fmt.Fprintf(&text, "  client %d, %d to %d: %s\n", op.ClientId, op.Call, op.Return, describe(op.Input.(call), op.Output.(answer)))
	}
	for _, op := range longest[max(0, len(longest)-context):] {
		line(op)
	}
	text.WriteString("and none of these can follow:\n")
	shown := 0
	for _, op := range part {
		if !in[op.Call] && shown < context {
			line(op)
			shown++
		}
	}
	return text.String()
}
