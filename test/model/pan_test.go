package main

import (
	"errors"
	"strings"
	"testing"
)

// Reports of the verifier, shortened.
const (
	reportClean = `
(Spin Version 6.5.2 -- 6 December 2019)
Full statespace search for:
	assertion violations	+
State-vector 84 byte, depth reached 99, errors: 0
  1852542 states, stored
  5861420 states, matched
  379.453	total actual memory usage
`
	reportFound = `pan:1: assertion violated ((z==i)|| !(child[z])) (at depth 51)
pan: wrote settle.pml.trail

(Spin Version 6.5.2 -- 6 December 2019)
Warning: Search not completed
State-vector 76 byte, depth reached 93, errors: 1
    16130 states, stored
`
	reportDeep = `error: max search depth too small

State-vector 84 byte, depth reached 9, errors: 0
1.2e+07 states, stored
`
	reportMemory = `pan: reached -DMEMLIM bound
	6e+09 bytes used
Warning: Search not completed
State-vector 84 byte, depth reached 99, errors: 0
   100 states, stored
`
	reportTime = `Time limit of      6 minutes exceeded

Warning: Search not completed
State-vector 84 byte, depth reached 99, errors: 0
   100 states, stored
`
	reportKilled = `Depth=      93 States=    1e+06 Transitions= 6.94e+06 Memory=   288.437
`
)

func TestReportsOfTheVerifier(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text     string
		ended          bool
		errors         int
		what           string
		states, memory float64
		exhausted      bool
		clean, partial error // how a clean search ends, and one that need not see all
		broken         error // and one that wants a counterexample
	}{
		{name: "clean", text: reportClean, ended: true, states: 1852542, memory: 379.453, exhausted: true, broken: errMissing},
		{name: "found", text: reportFound, ended: true, errors: 1, what: "assertion violated ((z==i)|| !(child[z]))", states: 16130, clean: errFound, partial: errFound},
		{name: "too deep", text: reportDeep, ended: true, states: 1.2e7, clean: errCut, broken: errMissing},
		{name: "out of memory", text: reportMemory, ended: true, states: 100, clean: errCut, broken: errMissing},
		{name: "out of time", text: reportTime, ended: true, states: 100, clean: errCut, broken: errMissing},
		{name: "killed", text: reportKilled, exhausted: true, clean: errNoReport, partial: errNoReport, broken: errNoReport},
		{name: "nothing", exhausted: true, clean: errNoReport, partial: errNoReport, broken: errNoReport},
	} {
		o := parsePan(c.text)
		if o.ended != c.ended || o.errors != c.errors || o.what != c.what || o.states != c.states || o.memory != c.memory || (o.cut == "") != c.exhausted {
			t.Errorf("%s: read as %+v", c.name, o)
		}
		partial := search{compile: []string{"-DBITSTATE"}}
		for _, want := range []struct {
			s    search
			want error
		}{{search{}, c.clean}, {partial, c.partial}, {search{broken: true}, c.broken}} {
			if got := want.s.judge(o); !errors.Is(got, want.want) {
				t.Errorf("%s, of %+v: %v, want %v", c.name, want.s, got, want.want)
			}
		}
	}
}

func TestTheLineOfASearch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    verdict
		want string
	}{
		{verdict{search: search{name: "a"}, outcome: outcome{states: 12}}, "clean, exhausted"},
		{verdict{search: search{name: "a", compile: []string{"-DBITSTATE"}}}, "clean, not exhausted"},
		{verdict{search: search{name: "a", broken: true}, outcome: outcome{what: "assertion violated x"}}, "counterexample: assertion violated x"},
		{verdict{search: search{name: "a"}, err: errMissing}, "no counterexample"},
	} {
		line := c.v.line()
		if !strings.HasSuffix(line, c.want) || strings.Contains(line, "\n") || strings.HasPrefix(line, "ok") != (c.v.err == nil) {
			t.Errorf("line %q: want it to end in %q", line, c.want)
		}
	}
}

func TestTheLastLinesOfAText(t *testing.T) {
	t.Parallel()
	if got := last("a\nb\nc\n", 2); got != "b\nc\n" {
		t.Errorf("last two lines: %q", got)
	}
	if got := last("a\n", 5); got != "a\n" {
		t.Errorf("last lines of a short text: %q", got)
	}
}
