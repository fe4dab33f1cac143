package linear

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// ErrUndecided is returned when the time for a search was over before it found an order or excluded all of them.
var ErrUndecided = errors.New("not decided")

// Never is the time of the return of a call without an answer.
const Never = math.MaxInt64

// judge looks for an order of the operations of one key, and says what stands in its way: nil where there is one.
func judge(key string, model porcupine.Model, part []porcupine.Operation, patience time.Duration) error {
	result, info := porcupine.CheckOperationsVerbose(model, part, patience)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%q: no order found in %v, and none excluded, for %d calls: %w", key, patience, len(part), ErrUndecided)
	}
	return fmt.Errorf("%q: no order of %d calls makes all answers right; %s", key, len(part), conflict(model, part, info))
}

// conflict shows the end of the longest order that was found, and the calls of which none can come next.
func conflict(model porcupine.Model, part []porcupine.Operation, info porcupine.LinearizationInfo) string {
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
		fmt.Fprintf(&text, "  client %d, %d to %d: %s\n", op.ClientId, op.Call, op.Return, model.DescribeOperation(op.Input, op.Output))
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
