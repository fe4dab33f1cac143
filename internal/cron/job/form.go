package job

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/lazy"
)

// form is what a text has to look like.
type form struct {
	want string
	ok   func(s string) bool
}

func (f form) judge(at, s string) error {
	if !f.ok(s) {
		return refuse(at, quote(s), f.want)
	}
	return nil
}

// argument: what can be passed to a program.
func argument(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

func filled(s string) bool { return s != "" && argument(s) }

func path(s string) bool { return strings.HasPrefix(s, "/") && argument(s) }

// matching is whether a text matches a regular expression.
func matching(expr string) func(string) bool {
	form := lazy.Regexp(expr)
	return func(s string) bool { return form().MatchString(s) }
}

var (
	anyText    = form{"a text in UTF-8", utf8.ValidString}
	someText   = form{"a text in UTF-8 that is not empty and has no zero byte", filled}
	argText    = form{"a text in UTF-8 without a zero byte", argument}
	zoneName   = form{"an IANA name, such as Europe/Berlin or UTC", filled}
	absolute   = form{"a path that begins with /", path}
	userName   = form{"a user's name or number, at most 32 letters, digits, _ . and -", matching(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}\$?$`)}
	octalMask  = form{"three octal digits, with a 0 before them or without, such as 0022", matching(`^0?[0-7]{3}$`)}
	variable   = form{"a name of letters, digits and _, the first no digit", matching(`^[A-Za-z_][A-Za-z0-9_]*$`)}
	labelKey   = form{"a label's name of 1 to 200 letters, digits, . _ - and /, the first a letter or a digit, without ..", isLabelKey}
	labelValue = form{"a label's value of at most 200 bytes in UTF-8, without commas and control characters", isLabelValue}
)

// isLabelKey and isLabelValue accept what a host may have as a label.
func isLabelKey(s string) bool { return hold.ValidName(strings.ReplaceAll(s, "/", "-")) == nil }

func isLabelValue(s string) bool {
	return len(s) <= 200 && utf8.ValidString(s) && !strings.Contains(s, ",") && !strings.ContainsFunc(s, unicode.IsControl)
}
