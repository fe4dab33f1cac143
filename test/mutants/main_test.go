package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// do runs the command on a tree.
func do(t *testing.T, root string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := command(t.Context(), append([]string{"-root", root}, args...), &out)
	return out.String(), err
}

func TestTheTableIsWrittenFromTheMutants(t *testing.T) {
	t.Parallel()
	root := tree(t, entry("seen", "TestNext", "-n + step\n+n")+entry("modelled", "TestNext", "model a.pml M_X\n-n + step\n+n"))
	if _, err := do(t, root, "-check"); err == nil || !strings.Contains(err.Error(), "is out of date") {
		t.Error(err)
	}
	for _, flag := range []string{"-write", "-write", "-check"} {
		if _, err := do(t, root, flag); err != nil {
			t.Fatal(flag, err)
		}
	}
	data, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Before.\n", "\n\nAfter.", "2 rules, of 1 claims.", "### Steps", "**the next is one more**: `TestNext`",
		"| the rule of seen | p/p.go | `TestNext` |  |", "| the rule of modelled | p/p.go | `TestNext` | `a.pml M_X` |",
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %q in\n%s", want, data)
		}
	}
}

func TestAMutantOfNothingIsAMistake(t *testing.T) {
	t.Parallel()
	root := tree(t, entry("a", "TestNone", "-n + step\n+n")+entry("b", "TestNext", "-n * step\n+n")+
		strings.Replace(entry("c", "TestNext", "-n + step\n+n"), "claim the next", "claim the last", 1))
	_, err := do(t, root, "-check")
	for _, want := range []string{
		"3 mistakes", "mutant a: ./p has no test TestNone", "mutant b: p/p.go has 0 times, not once", `mutant c: docs/claims.md has no claim "the last`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "docs", "model"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "docs", "model", "a.pml"), []byte("#ifdef M_X\n#endif\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := entry("d", "TestNext", "model a.pml M_X\n-n + step\n+n") + entry("e", "TestNext", "model a.pml M_Y\n-n + step\n+n") +
		entry("f", "TestNext", "model b.pml M_X\n-n + step\n+n") + entry("g", "TestNext", "model M_X\n-n + step\n+n")
	if err := os.WriteFile(filepath.Join(root, "test", "mutants", "some.txt"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = do(t, root, "-check")
	for _, want := range []string{"3 mistakes", "mutant e: docs/model/a.pml has no M_Y", "mutant f: read model", `mutant g: model "M_X": want`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestFlagsChooseMutants(t *testing.T) {
	t.Parallel()
	root := tree(t, entry("one", "TestNext", "-n + step\n+n")+entry("two", "TestNext", "-n + step\n+1")+entry("three", "TestNext", "-n + step\n+0"))
	for args, want := range map[string]string{
		"-list": "one two three", "-list -run=t": "two three", "-list -shard=1/2": "one three", "-list -shard=2/2": "two", "-list -run=^t -shard=2/2": "three",
	} {
		out, err := do(t, root, strings.Fields(args)...)
		var names []string
		for line := range strings.Lines(out) {
			names = append(names, strings.Fields(line)[0])
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", args, got, err, want)
		}
	}
	for args, want := range map[string]string{
		"-run=(": "-run: ", "-shard=0/2": `-shard "0/2": want i/n`, "-shard=3/2": "want i/n", "-shard=x": "want i/n", "more": `argument "more": want flags only`,
		"-run=none": "no mutant of that name",
	} {
		if _, err := do(t, root, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	out, err := do(t, root, "-run=one")
	if err != nil || !strings.Contains(out, "1 mutants, 1 killed") {
		t.Error(out, err)
	}
	twice := filepath.Join(root, "test", "mutants", "twice.txt")
	if err := os.WriteFile(twice, []byte(entry("one", "TestNext", "-n + step\n+n")), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := do(t, root, "-list"); err == nil || !strings.Contains(err.Error(), "twice.txt:1: mutant one is at some.txt:1 already") {
		t.Error(err)
	}
	if _, err := do(t, t.TempDir(), "-list"); err == nil || !strings.Contains(err.Error(), "find mutants: none in") {
		t.Error(err)
	}
}
