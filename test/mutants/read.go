package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// mutant is one rule broken on purpose.
//
// In a file it is a block of lines, a word and its value each, and then what is replaced by what:
//
//	mutant terms-differ
//	breaks renewals are believed although the raft terms differ
//	claim an acknowledgement of a deposed leader is no renewal
//	file keepalive.go
//	test TestAStaleAcknowledgementIsNoRenewal
//	-got.header.GetRaftTerm() != term
//	+false
//
// What follows a minus is the text that has to be there, exactly once, and what follows the plus stands in its place;
// several lines of one sign are one text, and a second minus begins a second place. Blank lines and those that begin
// with # are left out. Beside these there are
//
//	package P   whose tests are run, where that is not the package of the file
//	model F M   the macro M that breaks the same rule in the file F of docs/model
//	hangs D     its test does not end: it is given up, and the mutant counts as killed, after D
type mutant struct {
	name   string
	breaks string
	claim  string
	file   string // slash-separated, relative to the root
	pkg    string // folder of the test's package
	test   string // pattern for -run, its parts between slashes
	model  string
	hangs  time.Duration // 0: it does not
	hunks  []hunk
	at     string // where it is written
}

// hunk is one place of a mutant.
type hunk struct{ old, new string }

// read reads the mutants of all files in a folder.
func read(dir string) ([]*mutant, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, fmt.Errorf("find mutants: %w", err)
	}
	var all []*mutant
	taken := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read mutants: %w", err)
		}
		some, err := parse(filepath.Base(name), string(text))
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			if at := taken[m.name]; at != "" {
				return nil, fmt.Errorf("%s: mutant %s is at %s already", m.at, m.name, at)
			}
			taken[m.name] = m.at
		}
		all = append(all, some...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("find mutants: none in %s", dir)
	}
	return all, nil
}

// parse reads the mutants of one file.
func parse(file, text string) ([]*mutant, error) {
	var all []*mutant
	var m *mutant
	last := byte(0) // the sign of the line before
	for n, line := range strings.Split(text, "\n") {
		at := fmt.Sprintf("%s:%d", file, n+1)
		word, value, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
			last = 0
			continue
		case word == "mutant":
			m = &mutant{name: value, at: at}
			all = append(all, m)
		case m == nil:
			return nil, fmt.Errorf("%s: want \"mutant NAME\" first, got %q", at, line)
		case line[0] == '-' || line[0] == '+':
			if err := m.replace(line[0], last, line[1:]); err != nil {
				return nil, fmt.Errorf("%s: %w", at, err)
			}
		default:
			if err := m.set(word, value); err != nil {
				return nil, fmt.Errorf("%s: %w", at, err)
			}
		}
		last = line[0]
	}
	for _, m := range all {
		if err := m.complete(); err != nil {
			return nil, fmt.Errorf("%s: mutant %s: %w", m.at, m.name, err)
		}
	}
	return all, nil
}

// set takes in a line of a word and its value.
func (m *mutant) set(word, value string) error {
	field := map[string]*string{
		"breaks": &m.breaks, "claim": &m.claim, "file": &m.file, "package": &m.pkg, "test": &m.test, "model": &m.model,
	}[word]
	switch {
	case word == "hangs":
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 || d > testWithin {
			return fmt.Errorf("hangs %q: want a duration up to %v", value, testWithin)
		}
		m.hangs = d
		return nil
	case field == nil:
		return fmt.Errorf("%q: want mutant, breaks, claim, file, package, test, model, hangs, - or +", word)
	case *field != "":
		return fmt.Errorf("%s: twice", word)
	case value == "":
		return fmt.Errorf("%s: empty", word)
	}
	*field = value
	return nil
}

// replace takes in a line of a place.
func (m *mutant) replace(sign, last byte, text string) error {
	switch {
	case sign == '-' && last == '-':
		m.hunks[len(m.hunks)-1].old += "\n" + text
	case sign == '-':
		m.hunks = append(m.hunks, hunk{old: text})
	case last == '-':
		m.hunks[len(m.hunks)-1].new = text
	case last == '+':
		m.hunks[len(m.hunks)-1].new += "\n" + text
	default:
		return fmt.Errorf("a plus that follows no minus")
	}
	return nil
}

// complete says what a mutant lacks.
func (m *mutant) complete() error {
	for _, f := range []struct{ word, value string }{
		{"mutant", m.name}, {"breaks", m.breaks}, {"claim", m.claim}, {"file", m.file}, {"test", m.test},
	} {
		if f.value == "" {
			return fmt.Errorf("no %s", f.word)
		}
	}
	if len(m.hunks) == 0 {
		return fmt.Errorf("it replaces nothing")
	}
	for _, h := range m.hunks {
		if h.old == "" || h.old == h.new {
			return fmt.Errorf("a place where nothing is replaced: %q", h.old)
		}
	}
	if m.pkg == "" {
		m.pkg = path.Dir(m.file)
	}
	return nil
}

// pattern is the test's name for -run: it and no other.
func (m *mutant) pattern() string {
	parts := strings.Split(m.test, "/")
	for i, p := range parts {
		parts[i] = "^" + p + "$"
	}
	return strings.Join(parts, "/")
}

// apply gives the text of the mutant's file, in which each place has to be exactly once.
func (m *mutant) apply(text string) (string, error) {
	for _, h := range m.hunks {
		if n := strings.Count(text, h.old); n != 1 {
			return "", fmt.Errorf("%s has %d times, not once: %q", m.file, n, h.old)
		}
		text = strings.Replace(text, h.old, h.new, 1)
	}
	return text, nil
}
