package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The documents, and the lines between which the table stands.
const (
	claimsFile = "docs/claims.md"
	tableFile  = "docs/guarantees.md"
	tableBegin = "<!-- written by `go run ./test/mutants -write`: change the mutants, not this -->"
	tableEnd   = "<!-- end of what is written -->"
)

// claim is a row of docs/claims.md.
type claim struct{ section, text, tests string }

// readClaims reads the rows of all sections.
func readClaims(text string) []claim {
	var all []claim
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		cells := strings.Split(line, " | ")
		if strings.HasPrefix(line, "| ") && len(cells) == 2 && !strings.HasPrefix(line, "| claim ") {
			all = append(all, claim{section, strings.TrimPrefix(cells[0], "| "), strings.TrimSuffix(cells[1], " |")})
		}
	}
	return all
}

// table is the generated part of docs/guarantees.md.
func table(claims []claim, mutants []*mutant) string {
	by := map[string][]*mutant{}
	for _, m := range mutants {
		by[m.claim] = append(by[m.claim], m)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%d rules, of %d claims.\n", tableBegin, len(mutants), len(by))
	section := ""
	for _, c := range claims {
		if len(by[c.text]) == 0 {
			continue
		}
		if c.section != section {
			section = c.section
			fmt.Fprintf(&b, "\n### %s\n", section)
		}
		fmt.Fprintf(&b, "\n**%s**: %s\n\n| broken | in | turns red | in the model |\n|---|---|---|---|\n", c.text, c.tests)
		for _, m := range by[c.text] {
			b.WriteString(m.row())
		}
	}
	b.WriteString("\n" + tableEnd)
	return b.String()
}

// row is a mutant in the table.
func (m *mutant) row() string {
	top, _, _ := strings.Cut(m.test, "/")
	model := ""
	if m.model != "" {
		model = "`" + m.model + "`"
	}
	return fmt.Sprintf("| %s | %s | `%s` | %s |\n", m.breaks, m.file, top, model)
}

var between = regexp.MustCompile("(?s)" + regexp.QuoteMeta(tableBegin) + ".*" + regexp.QuoteMeta(tableEnd))

// document is docs/guarantees.md as it is, and as it has to be.
func document(root string, claims []claim, mutants []*mutant) (is, want string, err error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(tableFile)))
	if err != nil {
		return "", "", fmt.Errorf("read table: %w", err)
	}
	is = string(data)
	if !between.MatchString(is) {
		return "", "", fmt.Errorf("%s: no place for the table: want the lines %q and %q", tableFile, tableBegin, tableEnd)
	}
	return is, between.ReplaceAllLiteralString(is, table(claims, mutants)), nil
}
