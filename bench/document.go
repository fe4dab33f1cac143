//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The documents that have sections made of a run.
func documentNames() []string { return []string{"performance.md", "scale.md"} }

// plots is where a run is kept, below the documents. The charts stand beside it.
const plots = "plots"

// section is what stands between two marks; the first one says what belongs there.
var section = regexp.MustCompile(`(?s)(<!-- bench: ([a-z-]+) ?([^\n>]*?) -->\n).*?(<!-- end -->)`)

// documents makes the files of a run, by name below the directory of the documents, whose hand-written text is kept.
func documents(dir string, r record) (map[string][]byte, error) {
	files := map[string][]byte{}
	kept, err := encodeRecord(r)
	if err != nil {
		return nil, err
	}
	files[filepath.Join(plots, "bench.json")] = kept
	for _, c := range r.Charts {
		svg, err := c.SVG()
		if err != nil {
			return nil, err
		}
		files[filepath.Join(plots, c.Name+".svg")] = []byte(svg)
	}
	for _, name := range documentNames() {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("make documents: %w", err)
		}
		if files[name], err = fill(text, r); err != nil {
			return nil, fmt.Errorf("make %s: %w", name, err)
		}
	}
	return files, nil
}

// writeDocuments writes them.
func writeDocuments(dir string, r record) error {
	files, err := documents(dir, r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, plots), 0o755); err != nil {
		return fmt.Errorf("write documents: %w", err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("write documents: %w", err)
		}
	}
	return nil
}

// encodeRecord writes a run with a line for each result and each chart: another run is another line in version control.
func encodeRecord(r record) ([]byte, error) {
	var out bytes.Buffer
	head, err := json.Marshal(struct {
		Machine string     `json:"machine"`
		Date    string     `json:"date"`
		Rounds  int        `json:"rounds"`
		Load    [2]float64 `json:"load"`
	}{r.Machine, r.Date, r.Rounds, r.Load})
	if err != nil {
		return nil, fmt.Errorf("keep a run: %w", err)
	}
	out.Write(bytes.TrimSuffix(head, []byte("}")))
	err = errors.Join(addLines(&out, "results", r.Results), addLines(&out, "charts", r.Charts))
	out.WriteString("}\n")
	return out.Bytes(), err
}

// addLines adds a list to an object that is being written, each element on a line of its own.
func addLines[T any](out *bytes.Buffer, name string, list []T) error {
	fmt.Fprintf(out, ",\n%q:[", name)
	for i, v := range list {
		line, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("keep a run: %w", err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(out, "\n%s", line)
	}
	out.WriteString("]")
	return nil
}

// fill writes the sections of a document anew.
func fill(text []byte, r record) ([]byte, error) {
	var failed error
	filled := section.ReplaceAllFunc(text, func(old []byte) []byte {
		part := section.FindSubmatch(old)
		made, err := r.section(string(part[2]), strings.TrimSpace(string(part[3])))
		if err != nil {
			failed = err
			return old
		}
		return slices.Concat(part[1], []byte(made), part[4])
	})
	return filled, failed
}

// section makes the text of one.
func (r record) section(kind, of string) (string, error) {
	switch kind {
	case "machine":
		return r.heading() + ".\n", nil
	case "results":
		return r.table(strings.Split(of, ","))
	case "chart":
		c := r.chart(of)
		if len(c.Lines) == 0 {
			return "", fmt.Errorf("section: no chart %q was measured", of)
		}
		return fmt.Sprintf("![%s](%s/%s.svg)\n", c.Title, plots, c.Name), nil
	case "constants":
		return r.constants().table(), nil
	case "model":
		return r.constants().model(), nil
	}
	return "", fmt.Errorf("section: %q is no kind of section", kind)
}

// table has the results of cases, in their order.
func (r record) table(cases []string) (string, error) {
	out := &strings.Builder{}
	fmt.Fprintln(out, "| what | ours | against | ratio (spread) | target | verdict |\n|---|---|---|---|---|---|")
	for _, name := range cases {
		if !slices.ContainsFunc(r.Results, func(res result) bool { return res.Case == name }) {
			return "", fmt.Errorf("section: case %q was not measured", name)
		}
		for _, res := range r.Results {
			if res.Case == name {
				fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s |\n", res.Name, number(res.Ours, res.Unit), res.peer(), res.ratio(), res.target(), res.verdict())
			}
		}
	}
	return out.String(), nil
}
