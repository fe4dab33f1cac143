package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
)

// hasCode reports whether one of the files has a function with a body: packages of types and constants
// appear in no profile, and rightly so.
func hasCode(dir string, names []string) (bool, error) {
	for _, name := range names {
		tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, fmt.Errorf("parse source: %w", err)
		}
		for _, d := range tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && len(f.Body.List) > 0 {
				return true, nil
			}
		}
	}
	return false, nil
}
