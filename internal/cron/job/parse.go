package job

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/go-coord/coord/internal/cron/schedule"
)

// Parse reads and judges the job of that name. The error wraps ErrSpec and is one line, safe to print.
func Parse(name string, data []byte) (*Job, error) {
	return parse(nil, name, data)
}

// ParseIn is Parse for who reads many jobs and has opened the time zones already.
func ParseIn(zones *schedule.Zones, name string, data []byte) (*Job, error) {
	return parse(zones, name, data)
}

func parse(zones *schedule.Zones, name string, data []byte) (*Job, error) {
	switch {
	case len(data) > MaxSize:
		return nil, tooLarge(len(data))
	case !utf8.Valid(data):
		return nil, fmt.Errorf("%w: it is not UTF-8: want one JSON object", ErrSpec)
	}
	j := &Job{}
	r := newReader(data)
	if err := r.open("the job", '{', "an object"); err != nil {
		return nil, err
	}
	if err := r.noun("", j); err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if err := j.validate(name, zones); err != nil {
		return nil, err
	}
	return j, nil
}

// catchup is an object, or the policy alone.
func catchup(name string, to **Catchup) field {
	f := object(name, to)
	f.read = func(r *reader, at string) error {
		tok, err := r.token()
		if err != nil {
			return err
		}
		c := &Catchup{}
		*to = c
		switch v := tok.(type) {
		case string:
			c.Policy = Policy(v)
			return c.fields()[0].check(at)
		case json.Delim:
			if v == '{' {
				return r.noun(at, c)
			}
		}
		return wrong(at, tok, "none, last or all, or an object with policy, window and max")
	}
	return f
}

func tooLarge(n int) error {
	return fmt.Errorf("%w: it has %d bytes: want %d at most", ErrSpec, n, MaxSize)
}
