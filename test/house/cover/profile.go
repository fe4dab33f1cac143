package main

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
)

// block is one run of statements, as the compiler counts them.
type block struct {
	statements int
	reached    bool
}

// profile is the blocks of a package, by "file:from,to"; profiles of one build merge by that name.
type profile map[string]map[string]block

// add merges the lines of one profile file.
func (p profile) add(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open profile: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if strings.HasPrefix(lines.Text(), "mode: ") {
			continue
		}
		if err := p.addLine(lines.Text()); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	return lines.Err()
}

// addLine takes "import/path/file.go:1.2,3.4 statements count".
func (p profile) addLine(line string) error {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return fmt.Errorf("not a line of a coverage profile: %q", line)
	}
	statements, err1 := strconv.Atoi(fields[1])
	count, err2 := strconv.ParseUint(fields[2], 10, 64)
	file, _, ok := strings.Cut(fields[0], ":")
	if err1 != nil || err2 != nil || !ok {
		return fmt.Errorf("not a line of a coverage profile: %q", line)
	}
	pkg := path.Dir(file)
	if p[pkg] == nil {
		p[pkg] = map[string]block{}
	}
	old := p[pkg][fields[0]]
	p[pkg][fields[0]] = block{statements: statements, reached: old.reached || count > 0}
	return nil
}

// percent gives the part of a package's statements that was reached, and how many there are.
func (p profile) percent(pkg string) (percent float64, statements int) {
	reached := 0
	for _, b := range p[pkg] {
		statements += b.statements
		if b.reached {
			reached += b.statements
		}
	}
	if statements == 0 {
		return 100, 0
	}
	return 100 * float64(reached) / float64(statements), statements
}
