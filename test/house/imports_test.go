package house

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// listed is what the go command says about one package.
type listed struct {
	ImportPath string
	Name       string
	Standard   bool
	Imports    []string
	Deps       []string
}

// graph is every package that this module builds, with all they depend on, without tests.
type graph map[string]listed

// packages asks the go command once; all tests share the answer, which nobody changes.
var packages = sync.OnceValues(func() (graph, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Name,Standard,Imports,Deps", "./...")
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(err, errors.New(stderr.String()))
	}
	g := graph{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return g, nil
		} else if err != nil {
			return nil, err
		}
		g[p.ImportPath] = p
	}
})

// load gives the graph or ends the test.
func load(t *testing.T) graph {
	t.Helper()
	g, err := packages()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	return g
}

// short turns an import path into the form that the rules use.
func short(importPath string) string {
	if importPath == module {
		return "."
	}
	if rest, ok := strings.CutPrefix(importPath, module+"/"); ok {
		return "./" + rest
	}
	return importPath
}

// ours reports whether a package belongs to this module.
func ours(importPath string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

// matches reports whether a package falls under one of the patterns.
func (g graph) matches(importPath string, patterns []string) bool {
	name := short(importPath)
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if pattern == "std" {
			return importPath == "C" || importPath == "unsafe" || g[importPath].Standard
		}
		if parent, ok := strings.CutSuffix(pattern, "/..."); ok {
			return name == parent || strings.HasPrefix(name, parent+"/")
		}
		return name == pattern
	})
}

// reach walks from a package over the packages of this module only, and gives for every import met the
// package that makes it.
func (g graph) reach(from string) map[string]string {
	met := map[string]string{}
	for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
		for _, imp := range g[todo[0]].Imports {
			if _, seen := met[imp]; seen {
				continue
			}
			met[imp] = todo[0]
			if ours(imp) {
				todo = append(todo, imp)
			}
		}
	}
	return met
}

// breaks gives one line for each break of a rule by a package.
func (g graph) breaks(r rule, of string) []string {
	var found []string
	pkg := g[of]

	// What it imports itself.
	if len(r.May) > 0 {
		for _, imp := range pkg.Imports {
			if !g.matches(imp, r.May) {
				found = append(found, short(of)+" imports "+short(imp)+", may import only "+strings.Join(r.May, " "))
			}
		}
	}

	// What it reaches through packages of this module.
	for imp, by := range g.reach(of) {
		if g.matches(imp, r.Never) {
			found = append(found, short(of)+" reaches "+short(imp)+" (imported by "+short(by)+")")
		}
	}

	// What ends up in it.
	for _, dep := range pkg.Deps {
		if g.matches(dep, r.Unlinked) {
			found = append(found, short(of)+" links "+short(dep))
		}
	}
	slices.Sort(found)
	return found
}

func TestPackagesImportOnlyWhatTheirWallAllows(t *testing.T) {
	t.Parallel()
	g := load(t)
	for _, r := range rules {
		for path := range g {
			if !ours(path) || !g.matches(path, r.Of) {
				continue
			}
			for _, line := range g.breaks(r, path) {
				t.Errorf("%s\n\tbecause %s", line, r.Why)
			}
		}
	}
}

func TestSomePackagesAreForFewImportersOnly(t *testing.T) {
	t.Parallel()
	g := load(t)
	for _, only := range onlyBy {
		for path, pkg := range g {
			if !ours(path) || g.matches(path, only.By) {
				continue
			}
			for _, imp := range pkg.Imports {
				if g.matches(imp, []string{only.Package}) {
					t.Errorf("%s imports %s\n\tbecause %s, only these may: %s", short(path), only.Package, only.Why, strings.Join(only.By, " "))
				}
			}
		}
	}
}

func TestPackageNamesSayWhatIsInside(t *testing.T) {
	t.Parallel()
	for path, pkg := range load(t) {
		if !ours(path) {
			continue
		}
		for _, part := range append(strings.Split(strings.TrimPrefix(path, module), "/"), pkg.Name) {
			if badNames[part] {
				t.Errorf("package %s: %q says nothing about what is inside; name it for its noun", short(path), part)
			}
		}
	}
}

// TestBrokenRulesAreSeen proves the checker on a made-up module: without it, a checker that finds nothing
// would pass for a house in order.
func TestBrokenRulesAreSeen(t *testing.T) {
	t.Parallel()
	g := graph{
		"os/exec":                {Standard: true},
		"fmt":                    {Standard: true},
		module + "/a":            {Imports: []string{"fmt", module + "/b"}, Deps: []string{"fmt", "os/exec", module + "/b", "example.com/x", "example.com/x/deep"}},
		module + "/b":            {Imports: []string{"os/exec", "example.com/x"}},
		"example.com/x":          {Imports: []string{"example.com/x/deep"}},
		"example.com/x/deep":     {},
		"example.com/x-not-this": {},
	}
	tests := []struct {
		name string
		rule rule
		want []string
	}{
		{"all allowed", rule{May: []string{"std", "./b"}}, nil},
		{"an import that is not allowed", rule{May: []string{"std"}}, []string{"./a imports ./b, may import only std"}},
		{"reached through our own package", rule{Never: []string{"os/exec"}}, []string{"./a reaches os/exec (imported by ./b)"}},
		{"a foreign module's own imports are not ours", rule{Never: []string{"example.com/x/deep"}}, nil},
		{"but they are linked", rule{Unlinked: []string{"example.com/x/deep"}}, []string{"./a links example.com/x/deep"}},
		{"a pattern takes in what is below", rule{Unlinked: []string{"example.com/x/..."}}, []string{"./a links example.com/x", "./a links example.com/x/deep"}},
		{"a name that only begins alike is another", rule{Unlinked: []string{"example.com/x-not/..."}}, nil},
	}
	for _, tt := range tests {
		if got := g.breaks(tt.rule, module+"/a"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
