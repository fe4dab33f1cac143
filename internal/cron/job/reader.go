package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/go-coord/coord/internal/cron/nearest"
	"github.com/go-coord/coord/internal/hold"
)

// later are fields that a job will have. An older conch that meets them must not take them for slips.
var later = []string{"after", "calendar", "mutex", "notify", "expect"}

// refuse makes an error about the value of a field. The value is shown as it is, so it has to be safe.
func refuse(at, value, want string) error {
	return fmt.Errorf("%w: %s %s: want %s", ErrSpec, at, value, want)
}

// refuseName is refuse of a name that is none of those accepted.
func refuseName(at, value, want string, names []string) error {
	return fmt.Errorf("%w%s", refuse(at, quote(value), want), nearest.Hint(nearest.Name(value, names)))
}

// shown is how many bytes of what was given are repeated in an error.
const shown = 40

func quote(s string) string { return `"` + hold.EscapeCut(s, shown) + `"` }

// below is the path of a part. A name that would not be taken for one is quoted.
func below(at, name string) string {
	if !isLabelKey(name) || len(name) > shown {
		name = quote(name)
	}
	if at == "" {
		return name
	}
	return at + "." + name
}

func item(at string, i int) string { return at + "[" + strconv.Itoa(i) + "]" }

// reader reads JSON value by value. Who reads says what it takes, so nothing is ever skipped.
type reader struct {
	dec *json.Decoder
}

func newReader(data []byte) *reader {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return &reader{dec}
}

// token gives the next piece: a json.Delim, string, json.Number, bool or nil.
func (r *reader) token() (json.Token, error) {
	tok, err := r.dec.Token()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: no JSON: it ends too early, at byte %d", ErrSpec, r.dec.InputOffset())
	case err != nil:
		return nil, fmt.Errorf("%w: no JSON: %s, near byte %d", ErrSpec, hold.EscapeCut(err.Error(), 100), r.dec.InputOffset())
	}
	return tok, nil
}

// end fails if anything follows.
func (r *reader) end() error {
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows the job, at byte %d: want one JSON object", ErrSpec, r.dec.InputOffset())
	}
	return nil
}

// wrong is the error about a piece of another type than the field's.
func wrong(at string, tok json.Token, want string) error {
	switch v := tok.(type) {
	case string:
		return refuse(at, quote(v), want)
	case json.Delim:
		if v == '{' {
			return refuse(at, "{...}", want)
		}
		return refuse(at, "[...]", want)
	case json.Number:
		return refuse(at, hold.EscapeCut(v.String(), shown), want)
	case bool:
		return refuse(at, strconv.FormatBool(v), want)
	}
	return refuse(at, "null", want)
}

// text reads a text.
func (r *reader) text(at, want string) (string, error) {
	tok, err := r.token()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", wrong(at, tok, want)
	}
	return s, nil
}

// open reads the bracket that begins an object or a list.
func (r *reader) open(at string, bracket json.Delim, want string) error {
	tok, err := r.token()
	if err == nil && tok != bracket {
		err = wrong(at, tok, want)
	}
	return err
}

// members reads the rest of an object whose bracket was read, each member by one who takes its path and its name.
func (r *reader) members(at string, read func(at, name string) error) error {
	seen := map[string]bool{}
	for r.dec.More() {
		tok, err := r.token()
		if err != nil {
			return err
		}
		name, _ := tok.(string) // or the decoder would have refused it
		if seen[name] {
			return fmt.Errorf("%w: %s: is given twice", ErrSpec, below(at, name))
		}
		seen[name] = true
		if err := read(below(at, name), name); err != nil {
			return err
		}
	}
	_, err := r.token()
	return err
}

// items reads the rest of a list whose bracket was read.
func (r *reader) items(at, want string, read func(at string) error) error {
	n := 0
	for ; r.dec.More(); n++ {
		if err := read(item(at, n)); err != nil {
			return err
		}
	}
	if _, err := r.token(); err != nil {
		return err
	}
	if n == 0 {
		return refuse(at, "[]", want)
	}
	return nil
}

// noun reads the rest of an object that has a table.
func (r *reader) noun(at string, n noun) error {
	fields := n.fields()
	return r.members(at, func(part, name string) error {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		if i < 0 {
			return unknown(at, name, fields)
		}
		return fields[i].read(r, part)
	})
}

// unknown says which field was meant; if that cannot be told, which there are.
func unknown(at, name string, fields []field) error {
	path := below(at, name)
	if at == "" && slices.Contains(later, name) {
		return fmt.Errorf("%w: %s: is not supported yet", ErrSpec, path)
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	if near := nearest.Name(name, names); near != "" {
		return fmt.Errorf("%w: %s: there is no such field%s", ErrSpec, path, nearest.Hint(below(at, near)))
	}
	return fmt.Errorf("%w: %s: there is no such field: want %s", ErrSpec, path, or(names))
}

// or joins names: a, b or c.
func or(names []string) string {
	text := names[0]
	for i, name := range names[1:] {
		if i == len(names)-2 {
			text += " or " + name
		} else {
			text += ", " + name
		}
	}
	return text
}
