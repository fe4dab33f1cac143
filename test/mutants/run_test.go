package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == keepWord {
		os.Exit(keep(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// tree is a checkout of its own, with a module that has one function and one constant, and mutants of them.
func tree(t *testing.T, mutants string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.24\n",
		"p/p.go": "package p\n\nconst step = 1\n\nfunc Next(n int) int {\n\treturn n + step\n}\n",
		"p/p_test.go": `package p

import (
	"os/exec"
	"testing"
)

func TestNext(t *testing.T) {
	if Next(1) != 2 {
		t.Error("no")
	}
}

func TestNothing(t *testing.T) {}

func TestLeaves(t *testing.T) {
	if Next(1) == 2 {
		return
	}
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Fatal("left:", cmd.Process.Pid)
}
`,
		"docs/claims.md":        "## Steps\n\n| claim | tests |\n|---|---|\n| the next is one more | `TestNext` |\n",
		"docs/guarantees.md":    "Before.\n\n" + tableBegin + "\n" + tableEnd + "\n\nAfter.\n",
		"test/mutants/some.txt": mutants,
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// entry is a mutant of the tree.
func entry(name, test, places string) string {
	return "mutant " + name + "\nbreaks the rule of " + name + "\nclaim the next is one more\nfile p/p.go\ntest " + test + "\n" + places + "\n"
}

// verdicts runs the mutants of a tree, and gives the verdict of each.
func verdicts(t *testing.T, root string, alone bool) (map[string]verdict, string) {
	t.Helper()
	all, err := read(filepath.Join(root, "test", "mutants"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	b := breaker{builder: builder{root: root}, out: &out, alone: alone, within: 10 * time.Second}
	if _, err := b.run(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	got := map[string]verdict{}
	for line := range strings.Lines(out.String()) {
		if f := strings.Fields(line); len(f) > 3 && f[3] == "s" {
			got[f[0]] = verdict(f[1])
		}
	}
	return got, out.String()
}

const eternal = "-\treturn n + step\n+\tfor n == 1 {\n+\t}\n+\treturn n"

func TestEachMutantHasItsVerdict(t *testing.T) {
	t.Parallel()
	root := tree(t, entry("seen", "TestNext", "-n + step\n+n")+
		entry("seen-constant", "TestNext", "-step = 1\n+step = 2")+
		entry("panics", "TestNext", "-\treturn n + step\n+\tpanic(n)")+
		entry("unseen", "TestNothing", "-n + step\n+n")+
		entry("no-test", "TestNone", "-n + step\n+n")+
		entry("no-such-text", "TestNext", "-n * step\n+n")+
		entry("no-program", "TestNext", "-n + step\n+\"n\"")+
		entry("endless", "TestNext", eternal)+
		entry("hangs", "TestNext", "hangs 1s\n"+eternal))
	got, out := verdicts(t, root, false)
	want := map[string]verdict{
		"seen": killed, "seen-constant": killed, "panics": killed, "unseen": survived, "no-test": broken, "no-such-text": broken,
		"no-program": broken, "endless": hung, "hangs": killed,
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v\n%s", got, want, out)
	}
}

func TestVerdictsAreTheSameWhereEachIsBuiltAlone(t *testing.T) {
	t.Parallel()
	root := tree(t, entry("seen", "TestNext", "-n + step\n+n")+
		entry("unseen", "TestNothing", "-n + step\n+n")+
		entry("no-program", "TestNext", "-n + step\n+\"n\""))
	got, out := verdicts(t, root, true)
	if want := (map[string]verdict{"seen": killed, "unseen": survived, "no-program": broken}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v\n%s", got, want, out)
	}
}

func TestTestsThatFailAlreadyJudgeNothing(t *testing.T) {
	t.Parallel()
	root := tree(t, entry("seen", "TestNext", "-n + step\n+n"))
	if err := os.WriteFile(filepath.Join(root, "p", "red_test.go"), []byte("package p\n\nfunc init() { panic(1) }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := command(t.Context(), []string{"-root", root}, &out)
	if err == nil || !strings.Contains(err.Error(), "the tests of ./p do not pass without a mutant") {
		t.Error(err)
	}
}

func TestWhoEndsTheCommandHearsNoVerdict(t *testing.T) {
	t.Parallel()
	root := tree(t, entry("seen", "TestNext", "-n + step\n+n"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := command(ctx, []string{"-root", root}, &out); err == nil || strings.Contains(out.String(), "killed") {
		t.Error(err, out.String())
	}
}
