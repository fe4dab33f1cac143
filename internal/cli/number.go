package cli

import (
	"errors"
	"fmt"
	"strconv"
)

// number is a flag that holds a whole number.
type number[T int | uint64] struct {
	to          *T
	least, most uint64
}

// Number makes a flag value for a whole number from 1 to most. It is 0 where the flag is not given.
func Number[T int | uint64](to *T, most uint64) number[T] { return number[T]{to, 1, most} }

// Index makes a flag value for a whole number from 0 to most.
func Index[T int | uint64](to *T, most uint64) number[T] { return number[T]{to, 0, most} }

func (n number[T]) Set(s string) error {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || v < n.least || v > n.most {
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
	return fmt.Sprintf("a whole number from %d to %d", n.least, n.most)
}
