package main

import (
	"strings"
	"testing"
)

const source = `package p

import "fmt"

const limit = 3

type t struct{}

func (x *t) method(a, b int, more ...string) (int, error) {
	return a + b, nil
}

func plain(n int) { fmt.Println(n) }

func none() int { return limit }

func (t) unnamed(n int) int { return n + 1 }

func blank(_ int) int { return 1 }

func types(int) int { return 2 }

func generic[T any](v T) T { return v }
`

func TestAFunctionHasAChangedCopyAndABranchToIt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ old, new, branch, text string }{
		{"a + b", "a - b", `if isMutant("0007") { return x.methodMutant0007(a, b, more...) }; `, "func (x *t) methodMutant0007(a, b int, more ...string) (int, error) {\n\treturn a - b, nil\n}"},
		{"Println(n)", "Print(n)", `if isMutant("0007") { plainMutant0007(n); return }; `, "func plainMutant0007(n int) { fmt.Print(n) }"},
		{"return limit", "return 1", `if isMutant("0007") { return noneMutant0007() }; `, "func noneMutant0007() int { return 1 }"},
	} {
		c, err := copyOf(source, strings.Replace(source, row.old, row.new, 1), 7)
		if err != nil {
			t.Fatal(row.old, err)
		}
		joined := join(source, []copied{c})
		if !strings.Contains(joined, "{ "+row.branch) || !strings.Contains(joined, "\n//line mutant-0007:1\n"+row.text+"\n") {
			t.Errorf("%s:\n%s", row.old, joined)
		}
		if _, err := functions(joined); err != nil {
			t.Error(err)
		}
	}
}

// Whoever changes more than one function's body, or one that cannot be called from within, is built alone.
func TestWhatIsNoFunctionsBodyStandsApart(t *testing.T) {
	t.Parallel()
	for _, changed := range []string{
		strings.Replace(source, "limit = 3", "limit = 4", 1),
		strings.Replace(strings.Replace(source, "a + b", "a - b", 1), "return limit", "return 1", 1),
		strings.Replace(source, "plain(n int)", "plain(n int64)", 1),
		strings.Replace(source, "n + 1", "n - 1", 1),
		strings.Replace(source, "return 1", "return 2", 1),
		strings.Replace(source, "return 2", "return 3", 1),
		strings.Replace(source, "return v", "panic(v)", 1),
		source + "\nfunc another() {}\n",
		source + "\n// a comment\n",
		strings.Replace(source, "return limit }", "return limit", 1), // does not parse
	} {
		if c, err := copyOf(source, changed, 1); err == nil {
			t.Errorf("a copy: %+v", c)
		}
	}
}

func TestABinaryIsPatchedOrRefused(t *testing.T) {
	t.Parallel()
	got, err := patch([]byte("..."+inForce+"0000..."+inForce+"0000"), 12)
	if err != nil || string(got) != "..."+inForce+"0012..."+inForce+"0012" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := patch([]byte("..."), 1); err == nil {
		t.Error("patched what has no place for it")
	}
}
