package linear

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Access is one call to a register that is fenced: a write of a value under a token, or a read. What is written is written once.
type Access struct {
	Write bool
	Key   string
	Token uint64 // of a write
	Value string // of a write
}

// Outcome is what became of an Access.
type Outcome struct {
	Refused bool   // of a write: a higher token has been seen
	Seen    uint64 // the highest, of a write that was refused
	Value   string // of a read; empty: nothing was ever written
	Unknown bool   // an error: it may have happened at any time since the call, or never
}

// register is the state of one key: the last value, and the highest token that has written.
type register struct {
	value string
	seen  uint64
}

// step is what a fence promises of one call.
func (r register) step(c Access, o Outcome) (bool, any) {
	switch {
	case !c.Write:
		return o.Value == r.value, r
	case o.Refused:
		return c.Token < r.seen && o.Seen == r.seen, r
	case c.Token < r.seen:
		return o.Unknown, r // it was refused, and nobody heard
	}
	return true, register{c.Value, c.Token}
}

// registers are such registers as porcupine takes them: here a write without an answer that never happened comes when a higher token
// has been seen, or after everything else.
func registers() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register{} },
		Step: func(state, input, output any) (bool, any) {
			return state.(register).step(input.(Access), output.(Outcome))
		},
		Equal: func(a, b any) bool { return a == b },
		DescribeOperation: func(input, output any) string {
			return input.(Access).describe(output.(Outcome))
		},
	}
}

func (c Access) describe(o Outcome) string {
	what := "read"
	if c.Write {
		what = fmt.Sprintf("write(%d, %q)", c.Token, c.Value)
	}
	switch {
	case o.Unknown:
		return what + " -> no answer"
	case o.Refused:
		return fmt.Sprintf("%s -> refused, %d seen", what, o.Seen)
	case c.Write:
		return what + " -> done"
	}
	return fmt.Sprintf("%s -> %q", what, o.Value)
}

// JudgeRegister looks for an order of the calls to one register.
func JudgeRegister(key string, history []porcupine.Operation, patience time.Duration) error {
	told := slices.DeleteFunc(slices.Clone(history), func(op porcupine.Operation) bool {
		return !op.Input.(Access).Write && op.Output.(Outcome).Unknown // it says nothing
	})
	return judge(key, registers(), told, patience)
}
