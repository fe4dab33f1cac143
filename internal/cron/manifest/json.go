package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// jsonReader makes nodes of JSON: values, one after the other.
type jsonReader struct {
	data []byte
	dec  *json.Decoder
	seen int // so many bytes of it have
	ends int // so many line ends
}

func newJSON(data []byte) *jsonReader {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return &jsonReader{data: data, dec: dec}
}

// line is where the reader stands.
func (r *jsonReader) line() int {
	at := int(r.dec.InputOffset())
	r.ends += bytes.Count(r.data[r.seen:at], []byte("\n"))
	r.seen = at
	return 1 + r.ends
}

// document gives the next value; io.EOF: there is none.
func (r *jsonReader) document() (*yaml.Node, error) {
	tok, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	return r.value(tok, 0)
}

// value is the value that begins with a token.
func (r *jsonReader) value(tok json.Token, depth int) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.line()}
	switch v := tok.(type) {
	case json.Delim:
		if depth > maxDepth {
			return nil, errDeep
		}
		n.Kind = yaml.SequenceNode
		if v == '{' {
			n.Kind = yaml.MappingNode
		}
		return n, r.content(n, depth)
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Number:
		n.Tag, n.Value = "!!float", v.String()
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(v)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}

// content reads what an object or a list holds, and its end.
func (r *jsonReader) content(n *yaml.Node, depth int) error {
	for {
		tok, err := r.dec.Token()
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case tok == json.Delim(']') || tok == json.Delim('}'):
			return nil
		}
		one, err := r.value(tok, depth+1)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, one)
	}
}
