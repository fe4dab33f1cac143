package record_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/go-coord/coord/internal/cron/record"
)

// part is a schema or a part of one.
type part map[string]any

func (p part) at(path ...string) part {
	for _, name := range path {
		below, _ := p[name].(map[string]any)
		p = below
	}
	return p
}

func (p part) list(name string) (all []string) {
	list, _ := p[name].([]any)
	for _, one := range list {
		all = append(all, one.(string))
	}
	return all
}

func published(t *testing.T) (whole part) {
	t.Helper()
	raw, err := os.ReadFile("../../../docs/schema/result.json")
	if err == nil {
		err = json.Unmarshal(raw, &whole)
	}
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// TestTheResultAndItsSchemaAgree: the names of the fields, in their order, what type each is of, and which are always there.
func TestTheResultAndItsSchemaAgree(t *testing.T) {
	t.Parallel()
	schema := published(t)
	agree(t, reflect.TypeFor[record.Result](), schema)
	agree(t, reflect.TypeFor[record.Output](), schema.at("properties", "output"))
}

func agree(t *testing.T, of reflect.Type, schema part) {
	t.Helper()
	types := map[reflect.Kind]string{reflect.Int: "integer", reflect.Int64: "integer", reflect.Bool: "boolean", reflect.String: "string"}
	var names, always []string
	for f := range of.Fields() {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
		if option == "" {
			always = append(always, name)
		}
		p := schema.at("properties", name)
		if p["description"] == nil {
			t.Errorf("%s: the schema does not say what it is", name)
		}
		want := types[f.Type.Kind()]
		switch f.Type {
		case reflect.TypeFor[record.Stamp]():
			if p["$ref"] != "#/$defs/time" {
				t.Errorf("%s is no time in the schema", name)
			}
			continue
		case reflect.TypeFor[record.Output]():
			want = "object"
		case reflect.TypeFor[record.Kind](), reflect.TypeFor[record.Status](), reflect.TypeFor[record.Reason]():
			if got, want := p.list("enum"), constants(t, f.Type.Name()); !slices.Equal(got, want) {
				t.Errorf("%s: the schema has %q, the code %q", name, got, want)
			}
			continue
		}
		if p["type"] != want {
			t.Errorf("%s is %v in the schema, want %s", name, p["type"], want)
		}
	}
	if len(schema.at("properties")) != len(names) {
		t.Errorf("the schema has %d fields, want %q", len(schema.at("properties")), names)
	}
	if got := schema.list("required"); !slices.Equal(got, always) {
		t.Errorf("always there are %q, and the schema says %q", always, got)
	}
}

// constants are the values of a type that this package names, in their order.
func constants(t *testing.T, of string) (all []string) {
	t.Helper()
	for _, name := range []string{"claim.go", "reason.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == of {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, value)
			}
			return true
		})
	}
	return all
}

// What is written is what the schema says, and what cannot be is refused by it.
func TestResultsFollowTheSchema(t *testing.T) {
	t.Parallel()
	compiled, err := jsonschema.NewCompiler().Compile("../../../docs/schema/result.json")
	if err != nil {
		t.Fatal(err)
	}
	at := record.StampOf(time.Date(2027, 3, 14, 7, 0, 1, 999_999_999, time.UTC))
	ran := record.Result{
		Job: "backup", Tick: 1805007600, Kind: record.Late, Attempt: 1, Status: record.Failed, Reason: record.ReasonExit, Detail: "d", By: "me@desk: so", Host: "node1",
		Pid: 7, Rev: 8, SpecRev: 9, ClaimedAt: at, StartedAt: at, EndedAt: at, LateMS: 1999, WallMS: 5, UserMS: 1, SysMS: 2, MaxRSS: 3 << 20, ExitCode: 3,
		Output: record.Output{Tail: "x\n", Bytes: 2}, RunID: "backup/1805007600.1@node1",
	}
	skipped := record.Result{
		Job: "backup", Tick: 1805007600, From: 1804921200, Ticks: 2, Kind: record.Scheduled, Attempt: 1, Status: record.Skipped, Reason: record.ReasonPaused,
		Host: "node1", EndedAt: at, RunID: "backup/1805007600",
	}
	valid := func(text string) error {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return compiled.Validate(doc)
	}
	for _, r := range []record.Result{ran, skipped} {
		if err := valid(record.Encode(r)); err != nil {
			t.Error(err)
		}
		if again, ok := record.Decode[record.Result]([]byte(record.Encode(r))); !ok || record.Encode(again) != record.Encode(r) {
			t.Errorf("%+v", again)
		}
	}
	for name, change := range map[string]func(r *record.Result){
		"a status": func(r *record.Result) { r.Status = "fine" }, "a kind": func(r *record.Result) { r.Kind = "" }, "a reason": func(r *record.Result) { r.Reason = "why" },
		"an attempt": func(r *record.Result) { r.Attempt = 0 }, "a name": func(r *record.Result) { r.Job = "a/b" }, "a run id": func(r *record.Result) { r.RunID = "backup" },
		"half a range": func(r *record.Result) { r.From = 5 }, "a range of one": func(r *record.Result) { r.From, r.Ticks = 5, 1 },
	} {
		r := ran
		change(&r)
		if valid(record.Encode(r)) == nil {
			t.Errorf("%s that there is not is accepted", name)
		}
	}
}
