package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// group is what is built together: mutants that the tests of one package judge.
type group struct {
	pkg     string
	mutants []*mutant // by number, from 1 on
}

// groups sorts mutants into builds, in the order in which they come.
func groups(mutants []*mutant) []*group {
	var all []*group
	by := map[string]*group{}
	for _, m := range mutants {
		g := by[m.pkg]
		if g == nil {
			g = &group{pkg: m.pkg}
			all = append(all, g)
			by[m.pkg] = g
		}
		g.mutants = append(g.mutants, m)
	}
	return all
}

// builder builds test binaries of a changed tree, of which it touches nothing.
type builder struct {
	root, scratch string
	built         int
}

// overlay is a set of files that stand in the place of those of the tree.
type overlay map[string]string // content by slash-separated name

// together is the overlay of all mutants of a group but the broken ones, and those that do not fit into it.
func (b *builder) together(g *group, broken map[*mutant]bool) (overlay, []*mutant, error) {
	var apart []*mutant
	copies := map[string][]copied{}
	texts := map[string]string{}
	for i, m := range g.mutants {
		if broken[m] {
			continue
		}
		was, is, err := b.texts(m)
		if err != nil {
			return nil, nil, err
		}
		c, err := copyOf(was, is, i+1)
		if err != nil {
			apart = append(apart, m)
			continue
		}
		texts[m.file] = was
		copies[m.file] = append(copies[m.file], c)
	}
	files := overlay{}
	for name, some := range copies {
		files[name] = join(texts[name], some)
		pkg, err := packageOf(texts[name])
		if err != nil {
			return nil, nil, err
		}
		files[path.Join(path.Dir(name), "mutant_in_force.go")] = fmt.Sprintf(selector, pkg)
	}
	return files, apart, nil
}

// texts are the mutant's file as it is, and as the mutant has it.
func (b *builder) texts(m *mutant) (was, is string, err error) {
	data, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(m.file)))
	if err != nil {
		return "", "", fmt.Errorf("read file: %w", err)
	}
	is, err = m.apply(string(data))
	return string(data), is, err
}

func packageOf(text string) (string, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), "", text, parser.PackageClauseOnly)
	if err != nil {
		return "", fmt.Errorf("parse: %w", err)
	}
	return tree.Name.Name, nil
}

// alone is the overlay of one mutant.
func (b *builder) alone(m *mutant) (overlay, error) {
	_, is, err := b.texts(m)
	return overlay{m.file: is}, err
}

// build compiles and links the tests of a package.
func (b *builder) build(ctx context.Context, pkg string, files overlay) (binary string, err error) {
	b.built++
	dir := filepath.Join(b.scratch, fmt.Sprintf("build%d", b.built))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	var list struct{ Replace map[string]string }
	list.Replace = map[string]string{}
	for name, text := range files {
		to := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return "", fmt.Errorf("write overlay: %w", err)
		}
		list.Replace[filepath.Join(b.root, filepath.FromSlash(name))] = to
	}
	data, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, data, 0o644); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	binary = filepath.Join(dir, "tests")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./"+pkg)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return binary, nil
}

// force gives a binary in which a mutant is in force.
func (b *builder) force(binary string, number int) (string, error) {
	data, err := os.ReadFile(binary)
	if err != nil {
		return "", fmt.Errorf("read binary: %w", err)
	}
	if data, err = patch(data, number); err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s-%04d", binary, number)
	// A child that is forked meanwhile would have the file open for writing until its exec, and nobody could execute it.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(name, data, 0o755); err != nil {
		return "", fmt.Errorf("write binary: %w", err)
	}
	return name, nil
}
