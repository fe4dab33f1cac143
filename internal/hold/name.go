package hold

import (
	"fmt"
	"strings"
)

// nameLimit is the longest name, in bytes.
const nameLimit = 200

// ValidName says whether s may name an office, a semaphore or a job: 1 to 200 bytes of letters, digits,
// '.', '_' and '-', the first a letter or a digit, without "..". It is the one place where names are
// judged, and it runs before etcd is contacted. The error wraps ErrUsage and is one safe line.
func ValidName(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: the name is empty", ErrUsage)
	case len(s) > nameLimit:
		return nameError(s, fmt.Sprintf("has %d bytes, at most %d are accepted", len(s), nameLimit))
	case !alnum(s[0]):
		return nameError(s, "has to start with a letter or a digit")
	case strings.Contains(s, ".."):
		return nameError(s, `contains ".."`)
	}
	for i := range len(s) {
		if c := s[i]; !alnum(c) && c != '.' && c != '_' && c != '-' {
			return nameError(s, "may have only letters, digits, '.', '_' and '-'")
		}
	}
	return nil
}

func nameError(s, what string) error {
	return fmt.Errorf(`%w: name "%s" %s`, ErrUsage, EscapeCut(s, 40), what)
}

func alnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
