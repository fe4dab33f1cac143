package cli

import (
	"errors"
	"strconv"
)

// number is a flag that holds a whole number above 0.
type number[T int | uint64] struct {
	to   *T
	most uint64
}

// Number makes a flag value for a whole number from 1 to most. It is 0 where the flag is not given.
func Number[T int | uint64](to *T, most uint64) number[T] { return number[T]{to, most} }

func (n number[T]) Set(s string) error {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || v == 0 || v > n.most {
		return errors.New("want " + n.Accepts())
	}
	*n.to = T(v)
	return nil
}

func (n number[T]) String() string {
	if n.to == nil {
		return ""
	}
	return strconv.FormatUint(uint64(*n.to), 10)
}

func (n number[T]) Type() string { return "number" }
func (n number[T]) Accepts() string {
	return "a whole number from 1 to " + strconv.FormatUint(n.most, 10)
}
