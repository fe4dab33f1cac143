package main

import (
	"fmt"
	"os/exec"
	"strings"
	"text/tabwriter"
)

// check holds the merged profiles against the table. The report names every package that has statements.
func check(tableName string, profileNames []string) (report string, ok bool, err error) {
	tab, err := readTable(tableName)
	if err != nil {
		return "", false, err
	}
	prof := profile{}
	for _, name := range profileNames {
		if err := prof.add(name); err != nil {
			return "", false, err
		}
	}
	pkgs, err := modulePackages()
	if err != nil {
		return "", false, err
	}
	report, ok = judge(tab, prof, pkgs)
	return report, ok, nil
}

// pkg is one package of the module.
type pkg struct {
	Path   string // import path
	Folder string // relative to the module, "." for the root
	Main   bool
	Code   bool // has functions with a body, so that a profile must know it
}

// judge writes a line for each package and says whether all are at their minimum.
func judge(tab table, prof profile, pkgs []pkg) (string, bool) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	all := true
	for _, p := range pkgs {
		got, statements := prof.percent(p.Path)
		if statements == 0 && p.Code {
			got = 0
		}
		need, word := tab.of(p.Folder), "ok"
		switch {
		case p.Main:
			continue
		case need.Exempt:
			word = "exempt: " + need.Reason
		case got < need.Percent:
			word, all = fmt.Sprintf("BELOW %g", need.Percent), false
		}
		fmt.Fprintf(w, "%s\t%.1f%%\t%d\t%s\n", p.Folder, got, statements, word)
	}
	// Nothing can fail on a strings.Builder.
	_ = w.Flush()
	return text.String(), all
}

// listFormat prints one line a package: path, name, and its Go files.
const listFormat = `{{.ImportPath}}|{{.Name}}|{{.Module.Path}}|{{.Dir}}|{{join .GoFiles " "}}`

// modulePackages lists the product's packages: tests, benches and examples measure, they are not measured.
func modulePackages() ([]pkg, error) {
	out, err := exec.Command("go", "list", "-f", listFormat, "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var pkgs []pkg
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		folder := strings.TrimPrefix(strings.TrimPrefix(f[0], f[2]), "/")
		if folder == "" {
			folder = "."
		}
		if top, _, _ := strings.Cut(folder, "/"); top == "test" || top == "bench" || top == "examples" {
			continue
		}
		code, err := hasCode(f[3], strings.Fields(f[4]))
		if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, pkg{Path: f[0], Folder: folder, Main: f[1] == "main", Code: code})
	}
	return pkgs, nil
}
