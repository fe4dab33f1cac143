package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// table is the least coverage of packages, in percent, by folder.
type table map[string]minimum

// minimum is one line of the table.
type minimum struct {
	Percent float64
	Exempt  bool
	Reason  string
}

// anyPackage is the line for packages that have none of their own.
const anyPackage = "*"

// readTable reads lines of "folder percent"; "#" begins a comment.
func readTable(name string) (table, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open table: %w", err)
	}
	defer f.Close()
	tab := table{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 2 {
			return nil, fmt.Errorf("%s:%d: want a folder and a minimum", name, n)
		}
		if _, twice := tab[fields[0]]; twice {
			return nil, fmt.Errorf("%s:%d: %s stands here twice", name, n, fields[0])
		}
		m, err := readMinimum(fields[1:])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		tab[fields[0]] = m
	}
	if _, ok := tab[anyPackage]; !ok && lines.Err() == nil {
		return nil, fmt.Errorf("%s: no line for %q", name, anyPackage)
	}
	return tab, lines.Err()
}

func readMinimum(fields []string) (minimum, error) {
	if fields[0] == "-" {
		reason := strings.Join(fields[1:], " ")
		if reason == "" {
			return minimum{}, fmt.Errorf("an exemption takes a reason")
		}
		return minimum{Exempt: true, Reason: reason}, nil
	}
	p, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || p < 0 || p > 100 || len(fields) > 1 {
		return minimum{}, fmt.Errorf("a minimum is one number from 0 to 100, not %q", strings.Join(fields, " "))
	}
	return minimum{Percent: p}, nil
}

// of gives the minimum of a folder.
func (t table) of(folder string) minimum {
	if m, ok := t[folder]; ok {
		return m
	}
	return t[anyPackage]
}
