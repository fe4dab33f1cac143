package manifest

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/go-coord/coord/internal/cron/job"
)

// Authored is a job without what commands write into it: when and by whom it was added, and from when its ticks count. That it is
// paused stays.
func Authored(j *job.Job) *job.Job {
	one := *j
	one.AddedBy, one.AddedAt, one.ScheduleSince, one.ResumedAt = "", nil, nil, nil
	return &one
}

// JSON is a job with its name, as a document in one line. Its texts are as they are: for a terminal they have to be escaped.
func JSON(name string, j *job.Job) []byte {
	var e encoder
	e.WriteString(`{"name":`)
	e.text(name)
	e.WriteByte(',')
	e.Write(j.Encode()[1:])
	return e.Bytes()
}

// YAML is a job with its name, as a document. What is not printable is escaped in YAML's own way, so that it is read as it was.
func YAML(name string, j *job.Job) []byte {
	doc, _ := newJSON(JSON(name, j)).document() // it was made of a job
	dress(doc, true)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	_ = enc.Encode(doc) // nodes that were read, into memory
	return visible(out.Bytes())
}

// dress says how nodes look: lists in one line, texts of several lines as such.
func dress(n *yaml.Node, value bool) {
	switch n.Kind {
	case yaml.SequenceNode:
		n.Style = yaml.FlowStyle
	case yaml.ScalarNode:
		switch {
		case n.Tag != "!!str":
			n.Tag = ""
		case strings.ContainsFunc(n.Value, hidden):
			n.Style = yaml.DoubleQuotedStyle
		case value && blocky(n.Value):
			n.Style = yaml.LiteralStyle
		}
	}
	for i, one := range n.Content {
		dress(one, n.Kind == yaml.MappingNode && i%2 == 1)
	}
}

// blocky reports whether a text is readable as a block of lines: it ends in one line end, and no line begins or ends with a blank.
func blocky(s string) bool {
	if !strings.Contains(strings.TrimSuffix(s, "\n"), "\n") {
		return false
	}
	if strings.HasSuffix(s, "\n\n") || strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\n") {
		return false
	}
	return !strings.Contains(s, " \n") && !strings.HasSuffix(s, " ")
}

// hidden reports whether a rune does not show as what it is.
func hidden(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }

// visible escapes what does not show. It stands in double quotes.
func visible(text []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(text) {
		switch {
		case !hidden(r):
			out.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08X`, r)
		default:
			fmt.Fprintf(&out, `\u%04X`, r)
		}
	}
	return out.Bytes()
}
