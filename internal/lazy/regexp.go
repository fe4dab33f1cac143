// Package lazy makes what is rarely needed only when it is: a program that runs for some milliseconds pays for
// whatever is made at its start.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that is compiled when it is first asked for, which panics where it is none.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
