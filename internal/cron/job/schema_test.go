package job_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/go-coord/coord/internal/cron/job"
)

func TestTheSchemaIsPublished(t *testing.T) {
	t.Parallel()
	published, err := os.ReadFile("../../../docs/schema/job.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(published, job.Schema()) {
		t.Error("docs/schema/job.json is not the schema that the program has: copy internal/cron/job/schema.json to it")
	}
}

// node is a schema or a part of one.
type node map[string]any

func schema(t *testing.T) node {
	t.Helper()
	var n node
	if err := json.Unmarshal(job.Schema(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n node) at(path ...string) node {
	for _, name := range path {
		below, _ := n[name].(map[string]any)
		n = below
	}
	return n
}

// TestTheTypesTheTableAndTheSchemaAgree: the names of the fields, their order in types and tables, and what kind each is of.
func TestTheTypesTheTableAndTheSchemaAgree(t *testing.T) {
	t.Parallel()
	agree(t, "", reflect.TypeFor[job.Job](), schema(t))
}

func agree(t *testing.T, at string, of reflect.Type, n node) {
	t.Helper()
	var names []string
	for f := range of.Fields() {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if names = append(names, name); option == "" {
			t.Errorf("%s%s is written where it says nothing", at, name)
		}
		property := n.at("properties", name)
		if property == nil {
			t.Errorf("%s%s: the schema has no such field", at, name)
			continue
		}
		if property["description"] == nil {
			t.Errorf("%s%s: the schema does not say what it is", at, name)
		}
		if got, want := kindOf(property), kinds()[f.Type]; want != "" && got != want {
			t.Errorf("%s%s is %s in the schema, want %s for a %s", at, name, got, want, f.Type)
		}
		if f.Type.Kind() == reflect.Pointer && kinds()[f.Type] == "" {
			if property["oneOf"] != nil {
				property = property["oneOf"].([]any)[1].(map[string]any)
			}
			agree(t, at+name+".", f.Type.Elem(), property)
		}
	}
	if table := job.Table(reflect.New(of).Interface()); !slices.Equal(table, names) {
		t.Errorf("%s: the table has %v, the type %v", at, table, names)
	}
	for name := range n.at("properties") {
		if !slices.Contains(names, name) {
			t.Errorf("%s%s: the schema has it, the type has not", at, name)
		}
	}
	if n["additionalProperties"] != false {
		t.Errorf("%s: the schema lets pass fields that there are not", at)
	}
}

// kinds are the forms in the schema that types have to have; parts have tables of their own.
func kinds() map[reflect.Type]string {
	return map[reflect.Type]string{
		reflect.TypeFor[bool]():                    "boolean",
		reflect.TypeFor[string]():                  "string",
		reflect.TypeFor[job.Policy]():              "string",
		reflect.TypeFor[int]():                     "integer",
		reflect.TypeFor[float64]():                 "number",
		reflect.TypeFor[job.Duration]():            "duration",
		reflect.TypeFor[job.Size]():                "size",
		reflect.TypeFor[time.Time]():               "time",
		reflect.TypeFor[*time.Time]():              "time",
		reflect.TypeFor[[]string]():                "array of string",
		reflect.TypeFor[[]int]():                   "array of integer",
		reflect.TypeFor[job.Strings]():             "string or array of string",
		reflect.TypeFor[map[string]string]():       "object of string",
		reflect.TypeFor[map[string]job.EnvValue](): "object of string or object",
	}
}

// kindOf says what form a property has, in the words of kinds.
func kindOf(n node) string {
	ref, _ := n["$ref"].(string)
	switch name := strings.TrimPrefix(ref, "#/$defs/"); name {
	case "path", "argument":
		return "string"
	case "labels":
		return "object of string"
	case "duration", "size", "time":
		return name
	}
	if all, ok := n["oneOf"].([]any); ok {
		var forms []string
		for _, one := range all {
			forms = append(forms, kindOf(one.(map[string]any)))
		}
		return strings.Join(forms, " or ")
	}
	kind, _ := n["type"].(string)
	switch {
	case n["enum"] != nil:
		return "string"
	case kind == "array":
		return "array of " + kindOf(n.at("items"))
	case kind == "object" && n.at("additionalProperties") != nil:
		return "object of " + kindOf(n.at("additionalProperties"))
	}
	return kind
}

// TestTheWordsOfTheSchemaAreThoseOfTheParser: an enumeration of the schema is word by word what an error says is accepted.
func TestTheWordsOfTheSchemaAreThoseOfTheParser(t *testing.T) {
	t.Parallel()
	n, found := schema(t), 0
	for name := range n.at("properties") {
		words, ok := n.at("properties", name)["enum"].([]any)
		if !ok {
			continue
		}
		found++
		var all []string
		for _, w := range words {
			all = append(all, w.(string))
			parse(t, fmt.Sprintf(`{"schedule":"@daily","script":"x","%s":"%s"}`, name, w))
		}
		refused(t, fmt.Sprintf(`{"schedule":"@daily","script":"x","%s":"-"}`, name), fmt.Sprintf(`%s "-": want %s`, name, job.Or(all)))
	}
	if found != 5 {
		t.Errorf("the schema has %d enumerations, want dst, run_on, prefer, overlap and on_lost", found)
	}
}

// TestTheDefaultsOfTheSchemaAreThoseOfTheMethods: a job that says every default does what one does that says nothing.
func TestTheDefaultsOfTheSchemaAreThoseOfTheMethods(t *testing.T) {
	t.Parallel()
	n := schema(t)
	said := defaults(n)
	for _, part := range []string{"output", "history", "retry"} {
		said[part] = defaults(n.at("properties", part))
	}
	said["retry"].(node)["max"] = 9
	said["output"].(node)["file"] = "/x"
	said["schedule"], said["script"] = "30 2 * * *", "x"
	doc, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	if len(said) < 15 || len(said["output"].(node)) != 4 {
		t.Fatalf("the schema has few defaults: %s", doc)
	}
	explicit := parse(t, string(doc))
	silent := parse(t, `{"schedule":"30 2 * * *","script":"x","retry":{"max":9},"output":{"file":"/x"}}`)
	if diff := cmp.Diff(behaviour(t, silent), behaviour(t, explicit)); diff != "" {
		t.Errorf("%s: -silent +explicit:\n%s", doc, diff)
	}

	window := n.at("properties", "catchup")["oneOf"].([]any)[1].(map[string]any)
	all := defaults(window)
	all["policy"] = "all"
	doc, _ = json.Marshal(node{"schedule": "@daily", "script": "x", "catchup": all})
	last := parse(t, `{"schedule":"@daily","script":"x","catchup":"last"}`)
	most := parse(t, `{"schedule":"@daily","script":"x","catchup":{"policy":"all","window":"1h"}}`)
	if got := parse(t, string(doc)).CatchUp(); got.Window != last.CatchUp().Window || got.Max != most.CatchUp().Max {
		t.Errorf("catchup: the schema says %+v", got)
	}
}

// behaviour is all that the methods answer.
func behaviour(t *testing.T, j *job.Job) []string {
	t.Helper()
	plan, err := j.Plan("job", nil)
	if err != nil {
		t.Fatal(err)
	}
	ok, failed, ttl := j.HistoryLimits()
	file, size, count := j.OutputFile()
	all := []string{fmt.Sprint(plan.Explain(), j.Argv(), j.RunTime(), j.Grace(), j.Overlaps(), j.Preference(), j.OnAll(), j.Keep(), ok, failed, ttl,
		file, size, count, j.RetriesLost(), j.CatchUp(), j.Succeeds(0), j.Succeeds(1))}
	for attempt := range 10 {
		delay, again := j.Retries(attempt+1, 1)
		all = append(all, fmt.Sprint(delay, again))
	}
	return all
}

// defaults are those that a schema gives for the fields of an object.
func defaults(n node) node {
	found := node{}
	for name := range n.at("properties") {
		if value, ok := n.at("properties", name)["default"]; ok {
			found[name] = value
		}
	}
	return found
}

// compiled is the schema as a validator reads it, with its formats taken seriously.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(job.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("job.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("job.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// judge says whether the schema lets a document pass.
func judge(s *jsonschema.Schema, doc string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// TestTheSchemaRefusesWhatParseRefuses, but for what no schema can see: these are named, by what Parse says of them.
func TestTheSchemaRefusesWhatParseRefuses(t *testing.T) {
	t.Parallel()
	beyond := []string{
		"is given twice",
		"schedule: ", "tz: ", // it reads neither
		"jitter 0s", "jitter 169h", "start_deadline 10ms", "run_ttl 800h", "kill_after 0s", "history.ttl 1s", // nor units
		"output.keep \"99999999999GiB\"", "output.keep 65KiB", "output.keep 0B",
		"retry.max_delay 1s", "end_at ", // nor compares
		"start_at \"1969", "start_at \"10000",
		`cmd[0] ""`,
	}
	s := compiled(t)
	seen := map[string]bool{}
	for _, bad := range slices.Concat(badFields(), badDocuments()) {
		err := judge(s, bad.doc)
		i := slices.IndexFunc(beyond, func(prefix string) bool {
			return strings.HasPrefix(bad.want, prefix) || strings.HasSuffix(bad.want, prefix)
		})
		if i >= 0 {
			seen[beyond[i]] = true
		}
		missing := strings.Contains(bad.want, "is missing")
		switch {
		case err == nil && (i < 0 || missing):
			t.Errorf("the schema lets pass %s: %s", bad.doc, bad.want)
		case err != nil && i >= 0 && !missing:
			t.Errorf("the schema refuses %s: the list of what it cannot see is too long: %v", bad.doc, err)
		}
	}
	for _, prefix := range beyond {
		if !seen[prefix] {
			t.Errorf("no bad document is about %q", prefix)
		}
	}
}

// TestTheSchemaLetsPassWhatParseDoes: see TestEveryJobComesBackAsItWas as well.
func TestTheSchemaLetsPassWhatParseDoes(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	for _, doc := range []string{
		full,
		`{"schedule":"@daily","cmd":["x",""]}`,
		`{"schedule":["@daily","@hourly"],"cmd":["x"],"catchup":"last","env":{},"labels":{},"select":{},"output":{},"history":{},"paused":{}}`,
		`{"schedule":"@manual","script":"x","run_on":"all","retry":{"max":1,"other_node":false},"description":"","stdin":"","catchup":{"policy":"none"}}`,
		`{"schedule":"@every 1h","script":"x","start_at":"2027-01-01T02:00:00.25+02:00","catchup":{"policy":"last","window":".5h1.m"},"seconds":false}`,
		`{"schedule":"@daily","script":"x","jitter":"1\u00b5s1h","user":"1000","umask":"022"}`,
		`{"schedule":"@daily","script":"a\nb","cwd":"/a b\nc","labels":{"a/b":"\u00fc \u2028"}}`,
	} {
		parse(t, doc)
		if err := judge(s, doc); err != nil {
			t.Errorf("the schema refuses %s: %v", doc, err)
		}
	}
}

func TestTheSchemaNamesItsDraft(t *testing.T) {
	t.Parallel()
	if got := schema(t)["$schema"]; got != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("$schema is %v", got)
	}
}
