package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

func everyFile(file) bool     { return true }
func productFile(f file) bool { return !f.isTest() }

// called gives the last name of what a call calls, and of what it is called on: "time", "Sleep".
func called(call *ast.CallExpr) (on, name string) {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return "", fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			on = x.Name
		}
		return on, fun.Sel.Name
	}
	return "", ""
}

// calls runs see for every call below a node.
func calls(below ast.Node, see func(call *ast.CallExpr, on, name string)) {
	ast.Inspect(below, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			on, name := called(call)
			see(call, on, name)
		}
		return true
	})
}

func TestNoInitFunctions(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, everyFile) {
		for _, d := range s.AST.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "init" && f.Recv == nil {
				t.Errorf("%s:%d: func init: what runs by import alone cannot be tested, ordered or left out", s.Name, s.line(f))
			}
		}
	}
}

func TestEverySleepGivesItsReason(t *testing.T) {
	t.Parallel()
	all := sources(t, everyFile)
	bubbles := bubbleFunctions(all)
	for _, s := range all {
		for _, line := range sleepsWithoutReason(s, bubbles[path.Dir(s.Name)]) {
			t.Errorf("%s:%d: time.Sleep without a comment on its line or the line above: wait for an event, or say why there is none", s.Name, line)
		}
	}
}

// bubbleFunctions gives, by folder, the functions that open a bubble of fake time. In one of these a sleep
// is no wait: it is the one way to let time pass.
func bubbleFunctions(all []source) map[string]map[string]bool {
	found := map[string]map[string]bool{}
	for _, s := range all {
		for _, d := range s.AST.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && opensBubble(f, nil) {
				dir := path.Dir(s.Name)
				if found[dir] == nil {
					found[dir] = map[string]bool{}
				}
				found[dir][f.Name.Name] = true
			}
		}
	}
	return found
}

// opensBubble reports whether a declaration calls synctest.Test, or one of the functions known to do so.
func opensBubble(d ast.Node, known map[string]bool) (opens bool) {
	calls(d, func(_ *ast.CallExpr, on, name string) {
		opens = opens || on == "synctest" && name == "Test" || on == "" && known[name]
	})
	return opens
}

// sleepsWithoutReason gives the lines of sleeps in real time that no comment explains.
func sleepsWithoutReason(s source, bubbles map[string]bool) (lines []int) {
	commented := map[int]bool{}
	for _, group := range s.AST.Comments {
		for l := s.line(group); l <= s.Set.Position(group.End()).Line; l++ {
			commented[l] = true
		}
	}
	for _, d := range s.AST.Decls {
		if opensBubble(d, bubbles) {
			continue
		}
		calls(d, func(call *ast.CallExpr, on, name string) {
			if l := s.line(call); on == "time" && name == "Sleep" && !commented[l] && !commented[l-1] {
				lines = append(lines, l)
			}
		})
	}
	return lines
}

func TestNoTestIsSkipped(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, file.isTest) {
		for _, d := range s.AST.Decls {
			if asksForCI(d) {
				continue
			}
			calls(d, func(call *ast.CallExpr, on, name string) {
				if on == "t" || on == "b" || on == "tb" {
					if name == "Skip" || name == "Skipf" || name == "SkipNow" {
						t.Errorf("%s:%d: a skipped test looks like a passed one: make what it needs, or fail", s.Name, s.line(call))
					}
				}
			})
		}
	}
}

// asksForCI reports whether a declaration looks whether this is CI, where nothing may be missing: what needs a server that is
// not ours to bring (PostgreSQL) may be skipped elsewhere.
func asksForCI(d ast.Node) (asks bool) {
	calls(d, func(call *ast.CallExpr, on, name string) {
		if on == "os" && name == "Getenv" && len(call.Args) == 1 {
			value, ok := call.Args[0].(*ast.BasicLit)
			asks = asks || ok && value.Value == `"CI"`
		}
	})
	return asks
}

func TestProductCodeDeletesNoRange(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, productFile) {
		for _, line := range rangeDeletes(s) {
			t.Errorf("%s:%d: a delete of a whole range: one wrong prefix and everybody's keys are gone; delete single keys, guarded by their revision", s.Name, line)
		}
	}
}

func rangeDeletes(s source) (lines []int) {
	calls(s.AST, func(call *ast.CallExpr, _, name string) {
		if name != "Delete" && name != "OpDelete" {
			return
		}
		for _, arg := range call.Args {
			if opt, ok := arg.(*ast.CallExpr); ok {
				if _, name := called(opt); name == "WithPrefix" || name == "WithRange" || name == "WithFromKey" {
					lines = append(lines, s.line(call))
				}
			}
		}
	})
	return lines
}

func TestOnlyAMainExits(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, productFile) {
		if s.AST.Name.Name == "main" {
			continue
		}
		calls(s.AST, func(call *ast.CallExpr, on, name string) {
			if on == "os" && name == "Exit" || on == "log" && strings.HasPrefix(name, "Fatal") {
				t.Errorf("%s:%d: %s.%s outside a main: return an error, so that cleanup runs and a test can see it", s.Name, s.line(call), on, name)
			}
		})
	}
}

func TestProductFilesStayShort(t *testing.T) {
	t.Parallel()
	for _, f := range checkout(t) {
		if !f.isGo() || f.isTest() {
			continue
		}
		limit := maxProductFile
		if strings.HasPrefix(f.Name, "cmd/") && strings.HasSuffix(f.Name, "/main.go") {
			limit = maxMain
		}
		if n := bytes.Count(f.Data, []byte("\n")); n > limit {
			t.Errorf("%s has %d lines, at most %d: split it by noun", f.Name, n, limit)
		}
	}
}

func TestProductFunctionsStayShort(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, productFile) {
		for _, d := range s.AST.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.Set.Position(f.End()).Line - s.line(f) + 1; n > maxFunction {
				t.Errorf("%s:%d: func %s has %d lines, at most %d: give a paragraph of it a name", s.Name, s.line(f), f.Name.Name, n, maxFunction)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	said, files := map[string]bool{}, map[string]string{}
	for _, s := range sources(t, func(f file) bool { return !strings.HasSuffix(f.Name, "_test.go") }) {
		dir := path.Dir(s.Name)
		said[dir] = said[dir] || s.AST.Doc != nil
		files[dir] = s.Name
	}
	for dir, ok := range said {
		if !ok {
			t.Errorf("the package of %s has no package comment: it is the design document, written first", files[dir])
		}
	}
}

func TestNoLeftovers(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t, everyFile) {
		for _, group := range s.AST.Comments {
			for _, word := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"} {
				if strings.Contains(group.Text(), word) {
					t.Errorf("%s:%d: %s: do it, or write it where the work is planned", s.Name, s.line(group), word)
				}
			}
		}
	}
}

func TestNothingNamesThePlaceItWasWrittenIn(t *testing.T) {
	t.Parallel()
	for _, f := range checkout(t) {
		for n, line := range strings.Split(string(f.Data), "\n") {
			for _, word := range forbidden {
				if strings.Contains(line, word) {
					t.Errorf("%s:%d: %q means nothing to who reads this elsewhere", f.Name, n+1, word)
				}
			}
		}
	}
}

// TestBrokenSourceIsSeen proves the two checks of this file that read more than a name.
func TestBrokenSourceIsSeen(t *testing.T) {
	t.Parallel()
	const text = `package x

func f() {
	time.Sleep(1)
	time.Sleep(1) // the server's own clock has no event
	// nothing to wait for
	time.Sleep(1)
}

func bubble(f func()) { synctest.Test(t, f) }

func g() {
	bubble(func() { time.Sleep(1) })
}

func h() {
	kv.Delete(ctx, "k")
	kv.Delete(ctx, "k", clientv3.WithPrefix())
	clientv3.OpDelete("k", WithFromKey())
}
`
	s := parse(t, text)
	if got := fmt.Sprint(sleepsWithoutReason(s, bubbleFunctions([]source{s})["."])); got != "[4]" {
		t.Errorf("sleeps without reason: lines %s, want [4]", got)
	}
	if got := fmt.Sprint(rangeDeletes(s)); got != "[18 19]" {
		t.Errorf("range deletes: lines %s, want [18 19]", got)
	}
}

// parse makes a source of a text.
func parse(t *testing.T, text string) source {
	t.Helper()
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, "x.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return source{file: file{Name: "x.go", Data: []byte(text)}, Set: set, AST: tree}
}
