package house

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// root is the checkout, as seen from this package's folder, where go test runs it.
const root = "../.."

// outside is what holds no source in a checkout: version control (a file in a worktree) and what a build leaves.
var outside = map[string]bool{".git": true, "bin": true, "cover": true, "dist": true}

// file is one file of the checkout. Name is slash-separated and relative to the root.
type file struct {
	Name string
	Data []byte
}

// isText tells a file that people read from an image or an archive.
func (f file) isText() bool { return !bytes.ContainsRune(f.Data[:min(len(f.Data), 8000)], 0) }

// isGo reports whether the file is Go source.
func (f file) isGo() bool { return strings.HasSuffix(f.Name, ".go") }

// isTest reports whether the file exists for tests only: by its name, or by the name of a folder that it
// stands in (test, testdata, and those that end in test, as etcdtest).
func (f file) isTest() bool {
	if strings.HasSuffix(f.Name, "_test.go") {
		return true
	}
	for part := range strings.SplitSeq(path.Dir(f.Name), "/") {
		if part == "testdata" || strings.HasSuffix(part, "test") {
			return true
		}
	}
	return false
}

// checkout reads every text file of the tree. Built things lie in folders of their own and are left out,
// but only at the top: cover/ below test/house is source.
func checkout(t *testing.T) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			// Another test's scratch file may go while we walk.
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if outside[rel] {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || outside[rel] {
			return nil
		}
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if f := (file{Name: rel, Data: data}); f.isText() {
			files = append(files, f)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk the checkout: %v", err)
	}
	if len(files) == 0 {
		t.Fatal("the checkout is empty: the tests look in the wrong place")
	}
	return files
}

// source is one parsed Go file.
type source struct {
	file
	Set *token.FileSet
	AST *ast.File
}

// line gives the line on which a node begins.
func (s source) line(n ast.Node) int { return s.Set.Position(n.Pos()).Line }

// sources parses the Go files of the checkout that keep accepts.
func sources(t *testing.T, keep func(file) bool) []source {
	t.Helper()
	var all []source
	for _, f := range checkout(t) {
		if !f.isGo() || strings.Contains(f.Name, "/testdata/") || !keep(f) {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, f.Name, f.Data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("parse %s: %v", f.Name, err)
			continue
		}
		all = append(all, source{file: f, Set: set, AST: tree})
	}
	return all
}

// inTree reports whether a slash-separated path, relative to the root, exists.
func inTree(name string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(path.Clean(name))))
	return err == nil
}
