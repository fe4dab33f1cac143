package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// models is the folder of the models, as seen from here.
const models = "../../docs/model"

func TestBadLinesOfTheTable(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"a | b.pml | - | - | clean | ci":                     "6 fields",
		"a | b.pml | N=2 | - | clean | ci | shows":           `flag "N=2" for spin`,
		"a | b.pml | - | - | dirty | ci | shows":             `want "dirty"`,
		"a | b.pml | - | - | clean | sometimes | shows":      `where "sometimes"`,
		"a |   | - | - | clean | ci | shows":                 "want a name",
		"a | b.pml | - | - | clean | ci | shows | and shows": "8 fields",
	} {
		if _, err := parseSearch(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", line, err, want)
		}
	}
}

func TestALineOfTheTable(t *testing.T) {
	t.Parallel()
	s, err := parseSearch("a | b.pml | -DN=2 -DLIVE | -DBITSTATE -w30 | counterexample | full | a rule that is broken")
	if err != nil {
		t.Fatal(err)
	}
	if s.name != "a" || s.file != "b.pml" || !s.broken || s.ci || !s.partial() ||
		!slices.Equal(s.defines, []string{"-DN=2", "-DLIVE"}) || !slices.Equal(s.pan, []string{"-w30"}) {
		t.Errorf("read as %+v", s)
	}
}

func TestTwoSearchesOfOneName(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "searches.txt")
	line := "a | b.pml | - | - | clean | ci | shows\n"
	if err := os.WriteFile(name, []byte("# twice\n\n"+line+line), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSearches(name); err == nil || !strings.Contains(err.Error(), ":4: ") {
		t.Errorf("%v: want it to name line 4", err)
	}
}

// Each rule that a model can break is broken by a search that wants a counterexample, and by no other; and no search
// names a rule that its model does not know, which would find nothing and say so of no rule at all.
func TestEachRuleOfAModelIsBroken(t *testing.T) {
	t.Parallel()
	searches, err := readSearches(filepath.Join(models, "searches.txt"))
	if err != nil {
		t.Fatal(err)
	}
	switches := regexp.MustCompile(`(?m)^#(?:ifn?def +|if .*|elif .*)`)
	word := regexp.MustCompile(`\b[A-Z][A-Z0-9_]*\b`)
	known := map[string]map[string]bool{}
	files, err := filepath.Glob(filepath.Join(models, "*.pml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		words := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			if switches.MatchString(line) {
				for _, w := range word.FindAllString(line, -1) {
					words[w] = true
				}
			}
		}
		known[filepath.Base(f)] = words
	}

	broken := map[string]bool{}
	for _, s := range searches {
		breaks := false
		for _, d := range s.defines {
			name, _, _ := strings.Cut(strings.TrimPrefix(d, "-D"), "=")
			if !known[s.file][name] {
				t.Errorf("search %s: %s knows no %s", s.name, s.file, name)
			}
			if strings.HasPrefix(name, "M_") {
				breaks, broken[s.file+" "+name] = true, true
			}
		}
		if breaks != s.broken {
			t.Errorf("search %s: breaks a rule: %v, wants a counterexample: %v", s.name, breaks, s.broken)
		}
	}
	for file, words := range known {
		for w := range words {
			if strings.HasPrefix(w, "M_") && !broken[file+" "+w] {
				t.Errorf("%s: no search breaks %s", file, w)
			}
		}
	}
}
