package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// texts is a list of texts.
func texts(name string, to *[]string, f form) field {
	const want = "a list of texts, one at least"
	return field{
		name: name,
		read: func(r *reader, at string) error {
			*to = nil
			if err := r.open(at, '[', want); err != nil {
				return err
			}
			return r.items(at, want, r.into(to, f.want))
		},
		check: func(at string) error {
			for i, s := range *to {
				if err := f.judge(item(at, i), s); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// into reads one more text of a list.
func (r *reader) into(to *[]string, want string) func(at string) error {
	return func(at string) error {
		s, err := r.text(at, want)
		*to = append(*to, s)
		return err
	}
}

// expressions is a list of texts, or the only one of them. Package schedule judges them.
func expressions(name string, to *Strings) field {
	const want = "a schedule, such as 30 2 * * *, or a list of them"
	return field{
		name: name,
		read: func(r *reader, at string) error {
			*to = nil
			tok, err := r.token()
			if err != nil {
				return err
			}
			switch v := tok.(type) {
			case string:
				*to = Strings{v}
				return nil
			case json.Delim:
				if v == '[' {
					return r.items(at, want, r.into((*[]string)(to), want))
				}
			}
			return wrong(at, tok, want)
		},
		check: func(at string) error {
			if len(*to) == 0 {
				return fmt.Errorf("%w: %s: is missing: want %s", ErrSpec, at, want)
			}
			return nil
		},
	}
}

// codes is a list of exit codes, each once.
func codes(name string, to *[]int, least int) field {
	wantOne := fmt.Sprintf("an exit code from %d to 255, each once", least)
	want := "a list of exit codes, one at least"
	return field{
		name: name,
		read: func(r *reader, at string) error {
			*to = nil
			if err := r.open(at, '[', want); err != nil {
				return err
			}
			return r.items(at, want, func(at string) error {
				n, err := r.whole(at, wantOne)
				*to = append(*to, n)
				return err
			})
		},
		check: func(at string) error {
			for i, n := range *to {
				if n < least || n > 255 || slices.Contains((*to)[:i], n) {
					return refuse(item(at, i), strconv.Itoa(n), wantOne)
				}
			}
			return nil
		},
	}
}

// labels is a map from names to texts.
func labels(name string, to *map[string]string) field {
	return field{
		name: name,
		read: func(r *reader, at string) error {
			*to = nil
			if err := r.open(at, '{', "an object of texts"); err != nil {
				return err
			}
			return r.members(at, func(at, name string) error {
				s, err := r.text(at, labelValue.want)
				if *to == nil {
					*to = map[string]string{}
				}
				(*to)[name] = s
				return err
			})
		},
		check: func(at string) error {
			return each(at, *to, func(at, name, value string) error {
				if err := labelKey.judge(at, name); err != nil {
					return err
				}
				return labelValue.judge(at, value)
			})
		},
	}
}

// environment is a map from variables to texts, or files that hold them.
func environment(name string, to *map[string]EnvValue) field {
	return field{
		name: name,
		read: func(r *reader, at string) error {
			*to = nil
			if err := r.open(at, '{', "an object of variables"); err != nil {
				return err
			}
			return r.members(at, func(at, name string) error {
				v, err := r.envValue(at)
				if *to == nil {
					*to = map[string]EnvValue{}
				}
				(*to)[name] = v
				return err
			})
		},
		check: func(at string) error {
			return each(at, *to, func(at, name string, v EnvValue) error {
				if err := variable.judge(at, name); err != nil {
					return err
				}
				return check(at, &v)
			})
		},
	}
}

func (r *reader) envValue(at string) (v EnvValue, err error) {
	tok, err := r.token()
	if err != nil {
		return v, err
	}
	if s, ok := tok.(string); ok {
		return EnvValue{Value: s}, nil
	}
	if tok != json.Delim('{') {
		// Whatever stands here may be a secret.
		return v, fmt.Errorf(`%w: %s: is of another type: want a text, or {"file": PATH}`, ErrSpec, at)
	}
	if err = r.noun(at, &v); err == nil && v.File == "" {
		err = fmt.Errorf(`%w: %s.file: is missing: want %s`, ErrSpec, at, absolute.want)
	}
	return v, err
}

// moment is a time of RFC 3339. It is kept in UTC, since no zone of its own means anything here.
func moment(name string, to **time.Time) field {
	return field{
		name: name,
		read: func(r *reader, at string) error {
			t, err := r.moment(at)
			*to = &t
			return err
		},
		check: func(at string) error {
			if *to == nil {
				return nil
			}
			return judgeTime(at, **to)
		},
	}
}

// instant is a moment that is zero where it was not said.
func instant(name string, to *time.Time) field {
	return field{
		name: name,
		read: func(r *reader, at string) (err error) {
			*to, err = r.moment(at)
			return err
		},
		check: func(at string) error {
			if to.IsZero() {
				return nil
			}
			return judgeTime(at, *to)
		},
	}
}

const wantTime = "a time of RFC 3339 from 1970 to 9999, such as 2027-03-14T02:30:00Z"

func (r *reader) moment(at string) (t time.Time, err error) {
	s, err := r.text(at, wantTime)
	if err != nil {
		return t, err
	}
	if t.UnmarshalText([]byte(s)) != nil {
		return t, refuse(at, quote(s), wantTime)
	}
	t = t.UTC()
	return t, judgeTime(at, t)
}

func judgeTime(at string, t time.Time) error {
	if u := t.UTC(); u.Unix() < 0 || u.Year() > 9999 {
		return refuse(at, quote(t.Format(time.RFC3339)), wantTime)
	}
	return nil
}
