package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/lazy"
)

// MaxSize is how many bytes a file may have.
const MaxSize = 64 << 20

// Entry is a job that was read.
type Entry struct {
	Name string
	Job  *job.Job
	At   string // file and line, safe to print
}

// Fault is something that was read and is no job. Its text is one line, safe to print.
type Fault struct {
	At   string // file and line
	Name string // of the job; empty: it is not known
	Err  error
}

func (f *Fault) Error() string {
	text := f.At + ": "
	if f.Name != "" {
		text += hold.EscapeCut(f.Name, shown) + ": "
	}
	return text + strings.TrimPrefix(f.Err.Error(), job.ErrSpec.Error()+": ")
}

// Unwrap gives what is wrong by itself.
func (f *Fault) Unwrap() error { return f.Err }

// shown is how many bytes are shown of what was given.
const shown = 40

// Reader reads files, one after the other, and keeps what it found.
type Reader struct {
	Entries []Entry
	Faults  []error

	zones *schedule.Zones
	file  string
	first map[string]string // where a name was used first
}

// NewReader makes a Reader. An error means that the program itself is damaged.
func NewReader() (*Reader, error) {
	zones, err := schedule.OpenZones()
	return &Reader{zones: zones, first: map[string]string{}}, err
}

// Read reads a file. name is what faults call it.
func (r *Reader) Read(name string, data []byte) {
	r.file = hold.EscapeCut(name, 200)
	if len(data) > MaxSize {
		r.fault(1, "", fmt.Errorf("it has more than %d bytes: want no more", MaxSize))
		return
	}
	if isJSON(name, data) {
		r.readJSON(data)
		return
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.noYAML(err)
			return
		}
		r.document(doc.Content[0])
	}
}

// isJSON goes by the name, and where that says nothing by what stands first.
func isJSON(name string, data []byte) bool {
	switch {
	case strings.HasSuffix(name, ".json"):
		return true
	case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"):
		return false
	}
	_, err := newJSON(data).document()
	return err == nil
}

func (r *Reader) readJSON(data []byte) {
	docs := newJSON(data)
	for {
		doc, err := docs.document()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.fault(docs.line(), "", fmt.Errorf("no JSON: %s", hold.EscapeCut(err.Error(), 100)))
			return
		}
		r.document(doc)
	}
}

// lineOf is where the YAML library says that it stumbled.
var lineOf = lazy.Regexp(`^yaml: (?:line (\d+): )?(.*)$`)

// noYAML says what the library says, and what helps against the slip that everybody makes with schedules.
func (r *Reader) noYAML(err error) {
	line, text := 1, hold.Escape(err.Error())
	if m := lineOf().FindStringSubmatch(text); m != nil {
		text = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	for _, said := range []string{"expected alphabetic or numeric character", "cannot start any token", "unknown anchor"} {
		if strings.Contains(text, said) {
			text += "; a text that begins with * or @, as schedules do, has to stand in quotes"
			break
		}
	}
	r.fault(line, "", errors.New("no YAML: "+hold.EscapeCut(text, 200)))
}

func (r *Reader) fault(line int, name string, err error) {
	r.Faults = append(r.Faults, &Fault{At: r.at(line), Name: name, Err: err})
}

func (r *Reader) at(line int) string { return fmt.Sprintf("%s:%d", r.file, line) }

// document takes in one document: nothing, a job, or several.
func (r *Reader) document(n *yaml.Node) {
	n = followed(n)
	switch {
	case n.ShortTag() == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		r.fault(n.Line, "", errors.New("want an object: a job with its name, or jobs by their names"))
		return
	}
	if jobs := member(n, "jobs"); jobs != nil {
		r.several(n, followed(jobs))
		return
	}
	r.named(n)
}

// several takes in jobs by their names.
func (r *Reader) several(doc, jobs *yaml.Node) {
	if len(doc.Content) > 2 {
		r.fault(doc.Line, "", errors.New("jobs: there is something beside it: want jobs alone, or one job with its name"))
		return
	}
	if jobs.Kind != yaml.MappingNode {
		r.fault(jobs.Line, "", errors.New("jobs: want an object of jobs by their names"))
		return
	}
	for i := 0; i < len(jobs.Content); i += 2 {
		key, err := keyOf(jobs.Content[i])
		if err != nil {
			r.fault(jobs.Content[i].Line, "", err)
			continue
		}
		r.take(jobs.Content[i].Line, key, jobs.Content[i+1])
	}
}

// named takes in a job that has its name beside its fields.
func (r *Reader) named(doc *yaml.Node) {
	name := ""
	rest := &yaml.Node{Kind: yaml.MappingNode, Line: doc.Line}
	found := 0
	for i := 0; i < len(doc.Content); i += 2 {
		key, value := doc.Content[i], followed(doc.Content[i+1])
		if key.Value != "name" {
			rest.Content = append(rest.Content, key, value)
			continue
		}
		if value.Kind != yaml.ScalarNode || value.ShortTag() != "!!str" {
			r.fault(value.Line, "", errors.New("name: want a text; a number as a name has to stand in quotes"))
			return
		}
		name, found = value.Value, found+1
	}
	switch found {
	case 0:
		r.fault(doc.Line, "", errors.New("name: is missing: want the name of the job beside its fields, or jobs with jobs by their names"))
	case 1:
		r.take(doc.Line, name, rest)
	default:
		r.fault(doc.Line, "", errors.New("name: is given twice"))
	}
}

// unquoted is what is said of a number, or of true and false, where a text is wanted.
var unquoted = lazy.Regexp(` (true|false|-?[0-9][^ "]*): want a (text|label's value) |: is of another type: want a text, or`)

// take reads one job.
func (r *Reader) take(line int, name string, spec *yaml.Node) {
	if first, twice := r.first[name]; twice {
		r.fault(line, name, fmt.Errorf("is given twice, the first time at %s", first))
		return
	}
	r.first[name] = r.at(line)
	raw, err := encode(spec)
	if err != nil {
		r.fault(line, name, err)
		return
	}
	j, err := job.ParseIn(r.zones, name, raw)
	if err != nil {
		if unquoted().MatchString(err.Error()) {
			err = fmt.Errorf("%w; as a text it has to stand in quotes", err)
		}
		r.fault(line, name, err)
		return
	}
	r.Entries = append(r.Entries, Entry{Name: name, Job: j, At: r.at(line)})
}

// member is the value of a key, the first one; nil: there is none.
func member(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// followed is a node, or what it is an alias of.
func followed(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
