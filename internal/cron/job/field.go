package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// field is what is known of one field by itself. read is for what stands in JSON, and refuses what cannot be held; check is for what the
// job holds, and lets pass what was not said.
type field struct {
	name  string
	read  func(r *reader, at string) error
	check func(at string) error
}

// noun is a type that has a table of fields.
type noun interface {
	fields() []field
	// whole says what the fields have to do with each other.
	whole(at string) error
}

// check judges all fields of a noun, in the order of the table, and then the whole.
func check(at string, n noun) error {
	for _, f := range n.fields() {
		if err := f.check(below(at, f.name)); err != nil {
			return err
		}
	}
	return n.whole(at)
}

// scalar is a field of a type that is written as one text or number. get reads it, and ok judges what is not zero; a zero
// that somebody wrote is judged by ok as well.
func scalar[T comparable](name string, to *T, get func(r *reader, at string) (T, error), judge func(at string, v T) error) field {
	var zero T
	return field{
		name: name,
		read: func(r *reader, at string) error {
			v, err := get(r, at)
			if err == nil && v == zero {
				err = judge(at, v)
			}
			if err == nil {
				*to = v
			}
			return err
		},
		check: func(at string) error {
			if *to == zero {
				return nil
			}
			return judge(at, *to)
		},
	}
}

// flag is true or false.
func flag(name string, to *bool) field {
	get := func(r *reader, at string) (bool, error) {
		tok, err := r.token()
		b, ok := tok.(bool)
		if err == nil && !ok {
			err = wrong(at, tok, "true or false")
		}
		return b, err
	}
	return scalar(name, to, get, func(string, bool) error { return nil })
}

// text is a text of some form.
func text(name string, to *string, f form) field {
	get := func(r *reader, at string) (string, error) { return r.text(at, f.want) }
	return scalar(name, to, get, f.judge)
}

// choice is one of some words.
func choice[T ~string](name string, to *T, words ...string) field {
	get := func(r *reader, at string) (T, error) {
		s, err := r.text(at, or(words))
		return T(s), err
	}
	return scalar(name, to, get, func(at string, v T) error {
		if !slices.Contains(words, string(v)) {
			return refuseName(at, string(v), or(words), words)
		}
		return nil
	})
}

// span is a length of time within bounds.
func span(name string, to *Duration, least, most time.Duration) field {
	want := fmt.Sprintf("a duration from %s to %s", Duration(least), Duration(most))
	get := func(r *reader, at string) (Duration, error) {
		s, err := r.text(at, want)
		if err != nil {
			return 0, err
		}
		d, err := ParseDuration(s)
		if err != nil {
			return 0, refuse(at, quote(s), want+", such as 90s, 1h30m or 12h")
		}
		return d, nil
	}
	return scalar(name, to, get, func(at string, d Duration) error {
		if d < Duration(least) || d > Duration(most) {
			return refuse(at, d.String(), want)
		}
		return nil
	})
}

// size is a number of bytes within bounds.
func size(name string, to *Size, least, most Size) field {
	want := fmt.Sprintf("a size from %s to %s", least, most)
	get := func(r *reader, at string) (Size, error) {
		s, err := r.text(at, want)
		if err != nil {
			return 0, err
		}
		n, err := ParseSize(s)
		if err != nil {
			return 0, refuse(at, quote(s), want+", a whole number of B, KiB, MiB or GiB")
		}
		return n, nil
	}
	return scalar(name, to, get, func(at string, n Size) error {
		if n < least || n > most {
			return refuse(at, n.String(), want)
		}
		return nil
	})
}

// count is a whole number within bounds.
func count(name string, to *int, least, most int) field {
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	get := func(r *reader, at string) (int, error) { return r.whole(at, want) }
	return scalar(name, to, get, func(at string, n int) error {
		if n < least || n > most {
			return refuse(at, strconv.Itoa(n), want)
		}
		return nil
	})
}

func (r *reader) whole(at, want string) (int, error) {
	tok, err := r.token()
	if err != nil {
		return 0, err
	}
	digits, ok := tok.(json.Number)
	n, err := strconv.Atoi(digits.String())
	if !ok || err != nil {
		return 0, wrong(at, tok, want)
	}
	return n, nil
}

// factor is a number within bounds.
func factor(name string, to *float64, least, most float64) field {
	want := fmt.Sprintf("a number from %g to %g", least, most)
	get := func(r *reader, at string) (float64, error) {
		tok, err := r.token()
		if err != nil {
			return 0, err
		}
		digits, ok := tok.(json.Number)
		x, err := digits.Float64()
		if !ok || err != nil {
			return 0, wrong(at, tok, want)
		}
		return x, nil
	}
	return scalar(name, to, get, func(at string, x float64) error {
		if math.IsNaN(x) || x < least || x > most {
			return refuse(at, fmt.Sprint(x), want)
		}
		return nil
	})
}

// object is a part that has a table of its own.
func object[T any, N interface {
	*T
	noun
}](name string, to **T) field {
	return field{
		name: name,
		read: func(r *reader, at string) error {
			if err := r.open(at, '{', "an object"); err != nil {
				return err
			}
			part := new(T)
			*to = part
			return r.noun(at, N(part))
		},
		check: func(at string) error {
			if *to == nil {
				return nil
			}
			return check(at, N(*to))
		},
	}
}

// each judges the entries of a map, by name, so that of several errors it is always the same one.
func each[V any](at string, m map[string]V, judge func(at, name string, v V) error) error {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if err := judge(below(at, name), name, m[name]); err != nil {
			return err
		}
	}
	return nil
}
