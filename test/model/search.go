package main

import (
	"fmt"
	"os"
	"strings"
)

// search is one line of searches.txt: a model, its bounds and rules, and what is to be found.
type search struct {
	name    string
	file    string
	defines []string // for spin: -DNAME, -DNAME=VALUE
	compile []string // for gcc
	pan     []string // for the verifier
	broken  bool     // want a counterexample
	ci      bool
	shows   string
}

// partial reports whether the search is said not to see all states.
func (s search) partial() bool {
	for _, f := range s.compile {
		if f == "-DBITSTATE" {
			return true
		}
	}
	return false
}

// fields is how many a line has.
const fields = 7

// readSearches reads the table. Lines that are empty or begin with # are left out.
func readSearches(name string) ([]search, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read searches: %w", err)
	}
	var all []search
	seen := map[string]bool{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := parseSearch(line)
		if err == nil && seen[s.name] {
			err = fmt.Errorf("name %q: another search has it", s.name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		seen[s.name] = true
		all = append(all, s)
	}
	return all, nil
}

func parseSearch(line string) (search, error) {
	parts := strings.Split(line, " | ")
	if len(parts) != fields {
		return search{}, fmt.Errorf("%d fields: want %d, separated by %q", len(parts), fields, " | ")
	}
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	s := search{name: parts[0], file: parts[1], shows: parts[6]}
	if s.name == "" || s.file == "" || s.shows == "" {
		return s, fmt.Errorf("line %q: want a name, a file and what it shows", line)
	}
	if parts[2] != "-" {
		s.defines = strings.Fields(parts[2])
	}
	for _, d := range s.defines {
		if !strings.HasPrefix(d, "-D") {
			return s, fmt.Errorf("flag %q for spin: want -DNAME or -DNAME=VALUE", d)
		}
	}
	if parts[3] != "-" {
		for _, f := range strings.Fields(parts[3]) {
			if strings.HasPrefix(f, "-D") {
				s.compile = append(s.compile, f)
			} else {
				s.pan = append(s.pan, f)
			}
		}
	}
	switch parts[4] {
	case "clean":
	case "counterexample":
		s.broken = true
	default:
		return s, fmt.Errorf("want %q: want clean or counterexample", parts[4])
	}
	switch parts[5] {
	case "ci":
		s.ci = true
	case "full":
	default:
		return s, fmt.Errorf("where %q: want ci or full", parts[5])
	}
	return s, nil
}
