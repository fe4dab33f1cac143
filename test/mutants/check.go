package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// check says what is wrong with mutants without building any: texts that do not match, tests and claims that are not there.
func check(root string, claims []claim, mutants []*mutant) []error {
	known := map[string]bool{}
	for _, c := range claims {
		known[c.text] = true
	}
	tests := map[string]map[string]bool{}
	b := builder{root: root}
	var wrong []error
	say := func(m *mutant, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s: mutant %s: %w", m.at, m.name, fmt.Errorf(format, args...)))
	}
	for _, m := range mutants {
		if _, _, err := b.texts(m); err != nil {
			say(m, "%w", err)
		}
		if !known[m.claim] {
			say(m, "%s has no claim %q", claimsFile, m.claim)
		}
		if tests[m.pkg] == nil {
			some, err := testsOf(filepath.Join(root, filepath.FromSlash(m.pkg)))
			if err != nil {
				say(m, "%w", err)
				continue
			}
			tests[m.pkg] = some
		}
		if name, _, _ := strings.Cut(m.test, "/"); !tests[m.pkg][name] {
			say(m, "./%s has no test %s", m.pkg, name)
		}
		if err := m.checkModel(root); err != nil {
			say(m, "%w", err)
		}
	}
	return wrong
}

// modelDir is where the model is.
const modelDir = "docs/model"

// checkModel looks whether the model has the macro that the mutant names, in a checkout with a model.
func (m *mutant) checkModel(root string) error {
	dir := filepath.Join(root, filepath.FromSlash(modelDir))
	if _, err := os.Stat(dir); m.model == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	file, macro, ok := strings.Cut(m.model, " ")
	if !ok {
		return fmt.Errorf("model %q: want FILE MACRO", m.model)
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return fmt.Errorf("read model: %w", err)
	}
	if !regexp.MustCompile(`\b` + regexp.QuoteMeta(macro) + `\b`).Match(text) {
		return fmt.Errorf("%s/%s has no %s", modelDir, file, macro)
	}
	return nil
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testsOf are the names of the tests of a package.
func testsOf(dir string) (map[string]bool, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("find tests: %w", err)
	}
	tests := map[string]bool{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read tests: %w", err)
		}
		for _, m := range testFunction.FindAllSubmatch(data, -1) {
			tests[string(m[1])] = true
		}
	}
	return tests, nil
}
