package command

import (
	"fmt"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// evictedLine is the JSON of an eviction that is over.
type evictedLine struct {
	Kind      string     `json:"kind"`
	Name      string     `json:"name"`
	State     view.State `json:"state"` // held or vacant
	How       string     `json:"how"`   // how the hold ended; "": nobody has said
	Forced    bool       `json:"forced"`
	WaitedMS  int64      `json:"waited_ms"`
	Evicted   view.Line  `json:"evicted"`   // as it was when it was asked
	Successor *view.Line `json:"successor"` // null where the state is vacant
}

// result is the answer.
func (e *eviction) result() []byte {
	waited := time.Since(e.asked).Round(time.Millisecond)
	how := string(e.now.End.How)
	if e.output.JSON() {
		line := evictedLine{
			Kind: e.name.Kind, Name: e.name.Name, State: view.Vacant, How: how, Forced: e.force,
			WaitedMS: waited.Milliseconds(), Evicted: e.name.Line(e.seat),
		}
		if e.now.Next != nil {
			next := e.name.Line(*e.now.Next)
			line.State, line.Successor = view.Held, &next
		}
		return cli.JSONLine(line)
	}
	if how == "" {
		how = "nobody has said how"
	}
	next := "nobody holds it"
	switch {
	case e.now.Next != nil:
		next = "held by " + tokenText(*e.now.Next)
	case e.seat.Slot >= 0:
		next = "nobody waits for the slot"
	}
	return fmt.Appendf(nil, "%s: %s, has left (%s) after %v; %s\n", e.name.Name, tokenText(e.seat), hold.Escape(how), waited, next)
}
