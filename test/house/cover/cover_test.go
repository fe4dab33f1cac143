package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAPackageBelowItsMinimumIsFound(t *testing.T) {
	t.Parallel()
	tab, err := readTable(write(t, "# all\n* 80\nb 50 # half will do\nd - made for tests\n"))
	if err != nil {
		t.Fatal(err)
	}
	prof := profile{}
	// Two profiles of the same blocks: what either reached is reached.
	for _, text := range []string{
		"mode: set\nm/a/x.go:1.1,2.2 9 1\nm/a/x.go:3.1,4.2 1 0\nm/b/x.go:1.1,2.2 1 0\n",
		"mode: atomic\nm/a/x.go:1.1,2.2 9 0\nm/b/x.go:1.1,2.2 1 7\nm/b/x.go:5.1,6.2 1 0\n",
	} {
		if err := prof.add(write(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		pkg  pkg
		line string
		ok   bool
	}{
		{"above the minimum of all", pkg{Path: "m/a", Folder: "a", Code: true}, "a  90.0%  10  ok\n", true},
		{"at its own minimum", pkg{Path: "m/b", Folder: "b", Code: true}, "b  50.0%  2  ok\n", true},
		{"code that no profile knows", pkg{Path: "m/c", Folder: "c", Code: true}, "c  0.0%  0  BELOW 80\n", false},
		{"no code", pkg{Path: "m/c", Folder: "c"}, "c  100.0%  0  ok\n", true},
		{"exempt", pkg{Path: "m/d", Folder: "d", Code: true}, "d  0.0%  0  exempt: made for tests\n", true},
		{"a main", pkg{Path: "m/e", Folder: "e", Main: true, Code: true}, "", true},
	}
	for _, tt := range tests {
		if line, ok := judge(tab, prof, []pkg{tt.pkg}); line != tt.line || ok != tt.ok {
			t.Errorf("%s: got %q, %v; want %q, %v", tt.name, line, ok, tt.line, tt.ok)
		}
	}
}

func TestABadTableIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a 80\n":          "no line for",
		"* 80\n* 90\n":    "twice",
		"* 101\n":         "0 to 100",
		"* eighty\n":      "0 to 100",
		"*\n":             "want a folder",
		"* 80\na -\n":     "takes a reason",
		"* 80 per cent\n": "0 to 100",
	} {
		if _, err := readTable(write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestABadProfileIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"m/a/x.go 1 1\n", "m/a/x.go:1.1,2.2 one 1\n", "m/a/x.go:1.1,2.2 1\n"} {
		if err := (profile{}).add(write(t, text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestOnlyFunctionsWithABodyAreCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"package x\n\ntype T int\n\nconst C = 1\n": false,
		"package x\n\nfunc f() {}\n":               false,
		"package x\n\nfunc f() int { return 1 }\n": true,
	} {
		name := write(t, text)
		if got, err := hasCode(filepath.Dir(name), []string{filepath.Base(name)}); got != want || err != nil {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
}
