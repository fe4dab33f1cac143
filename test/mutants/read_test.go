package main

import (
	"strings"
	"testing"
	"time"
)

// whole is a mutant that lacks nothing.
const whole = `# A comment.

mutant a-name
breaks a rule
claim a claim
file x/y.go
test TestX/sub
package x/z
model some.pml M_X
hangs 2s
-old
-lines
+new
+lines

-gone
`

func TestAMutantIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	all, err := parse("f.txt", whole+"mutant b\nbreaks b\nclaim c\nfile y.go\ntest TestY\n-1\n+2\n")
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	m := all[0]
	if m.name != "a-name" || m.pkg != "x/z" || m.hangs != 2*time.Second || m.at != "f.txt:3" || m.model != "some.pml M_X" {
		t.Errorf("%+v", m)
	}
	if got := m.pattern(); got != "^TestX$/^sub$" {
		t.Error(got)
	}
	is, err := m.apply("a old\nlines b gone c")
	if err != nil || is != "a new\nlines b  c" {
		t.Errorf("%q %v", is, err)
	}
	for _, text := range []string{"gone", "old\nlines gone gone", ""} {
		if _, err := m.apply(text); err == nil {
			t.Errorf("applied to %q", text)
		}
	}
	if all[1].pkg != "." {
		t.Errorf("package %q, want that of the file", all[1].pkg)
	}
}

func TestAFileThatIsWrongIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	without := func(word string) string {
		var kept []string
		for _, line := range strings.Split(whole, "\n") {
			if !strings.HasPrefix(line, word) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "\n")
	}
	for text, want := range map[string]string{
		"file x\n":                                   `f.txt:1: want "mutant NAME" first`,
		whole + "rule x\n":                           `"rule": want mutant, breaks`,
		whole + "claim x\n":                          "claim: twice",
		whole + "hangs 2h\n":                         `hangs "2h": want a duration up to 1m0s`,
		"mutant a\nbreaks \n":                        "f.txt:2: breaks: empty",
		"mutant a\n+x\n":                             "f.txt:2: a plus that follows no minus",
		without("breaks"):                            "mutant a-name: no breaks",
		without("file"):                              "no file",
		without("-"):                                 "a plus that follows no minus",
		strings.Split(whole, "-old")[0]:              "it replaces nothing",
		without("+") + "mutant b\n":                  "mutant b: no breaks",
		strings.Split(whole, "-old")[0] + "-x\n+x\n": "nothing is replaced",
	} {
		if _, err := parse("f.txt", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
