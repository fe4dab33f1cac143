package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/lazy"
)

// maxDepth is how deep a job may nest. None nests deeper than 4.
const maxDepth = 32

var (
	errDeep  = fmt.Errorf("it nests deeper than %d levels, or holds an alias of itself", maxDepth)
	errLarge = fmt.Errorf("it has more than %d bytes: want no more", job.MaxSize)
)

// encoder writes nodes as JSON, with the keys in order and as often as they were given: package job judges that.
type encoder struct {
	bytes.Buffer
}

func encode(n *yaml.Node) ([]byte, error) {
	var e encoder
	if err := e.value(n, 0); err != nil {
		return nil, err
	}
	return e.Bytes(), nil
}

func (e *encoder) value(n *yaml.Node, depth int) error {
	n = followed(n)
	switch {
	case depth > maxDepth:
		return errDeep
	case e.Len() > job.MaxSize:
		return errLarge
	}
	switch n.Kind {
	case yaml.MappingNode:
		return e.object(n, depth)
	case yaml.SequenceNode:
		e.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				e.WriteByte(',')
			}
			if err := e.value(item, depth+1); err != nil {
				return err
			}
		}
		e.WriteByte(']')
		return nil
	}
	return e.scalar(n)
}

func (e *encoder) object(n *yaml.Node, depth int) error {
	e.WriteByte('{')
	for i := 0; i < len(n.Content); i += 2 {
		key, err := keyOf(n.Content[i])
		if err != nil {
			return err
		}
		if i > 0 {
			e.WriteByte(',')
		}
		e.text(key)
		e.WriteByte(':')
		if err := e.value(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	e.WriteByte('}')
	return nil
}

// keyOf is a key as it was typed.
func keyOf(n *yaml.Node) (string, error) {
	n = followed(n)
	switch {
	case n.Kind != yaml.ScalarNode:
		return "", fmt.Errorf("line %d: a key that is no text", n.Line)
	case n.ShortTag() == "!!merge":
		return "", fmt.Errorf("line %d: merge keys (<<) are not supported: write the fields out", n.Line)
	}
	return n.Value, nil
}

// numeral is a number as JSON writes it.
var numeral = lazy.Regexp(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func (e *encoder) scalar(n *yaml.Node) error {
	switch tag := n.ShortTag(); tag {
	case "!!null":
		e.WriteString("null")
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return errors.New("want true or false, got " + quote(n.Value))
		}
		fmt.Fprint(e, b)
	case "!!int", "!!float":
		if !numeral().MatchString(n.Value) {
			// An octal number, a hexadecimal one, one with underlines: as it was typed, for the field to judge.
			e.text(n.Value)
			break
		}
		e.WriteString(n.Value)
	case "!!str", "!!timestamp":
		e.text(n.Value)
	default:
		return fmt.Errorf("line %d: tag %s: want none", n.Line, quote(tag))
	}
	return nil
}

func (e *encoder) text(s string) {
	enc := json.NewEncoder(e)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a text, into memory
	e.Truncate(e.Len() - 1)
}

func quote(s string) string { return `"` + hold.EscapeCut(s, shown) + `"` }
