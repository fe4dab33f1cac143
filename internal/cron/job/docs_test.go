package job_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/go-coord/coord/internal/cron/job"
)

// document is docs/jobs.md.
func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTheExamplesOfTheDocumentAreJobs: each is read, and its schema lets it pass.
func TestTheExamplesOfTheDocumentAreJobs(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	examples := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(document(t), -1)
	if len(examples) != 4 {
		t.Fatalf("docs/jobs.md has %d examples, want 4", len(examples))
	}
	for _, example := range examples {
		doc, err := yaml.YAMLToJSONStrict([]byte(example[1]))
		if err != nil {
			t.Errorf("%s: %v", example[1], err)
			continue
		}
		parse(t, string(doc))
		if err := judge(s, string(doc)); err != nil {
			t.Errorf("%s: %v", example[1], err)
		}
	}
}

// TestTheErrorsOfTheDocumentAreTrue: they are what a job with that mistake gets.
func TestTheErrorsOfTheDocumentAreTrue(t *testing.T) {
	t.Parallel()
	text := document(t)
	for _, doc := range []string{
		`{"schedule":"@daily","script":"x","retry":{"max":1,"maxdelay":"1s"}}`,
		`{"schedule":"@daily","script":"x","overlap":"forbit"}`,
	} {
		_, err := job.Parse("job", []byte(doc))
		if err == nil || !strings.Contains(text, "\n"+err.Error()+"\n") {
			t.Errorf("docs/jobs.md does not show %v", err)
		}
	}
	if n := strings.Count(text, "\nbad job: "); n != 2 {
		t.Errorf("docs/jobs.md shows %d errors, want 2", n)
	}
}

// TestTheTablesOfTheDocumentHaveAllFields, in order, with the defaults of the schema and no others.
func TestTheTablesOfTheDocumentHaveAllFields(t *testing.T) {
	t.Parallel()
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([^|]*) \\|([^|]*)\\| (.*) \\|$")
	n, rows := schema(t), row.FindAllStringSubmatch(document(t), -1)
	catchup := node(n.at("properties", "catchup")["oneOf"].([]any)[1].(map[string]any))
	for _, part := range []struct {
		table  []string
		schema node
	}{
		{job.Table(&job.Job{}), n},
		{job.Table(&job.Catchup{}), catchup},
		{job.Table(&job.Retry{}), n.at("properties", "retry")},
		{job.Table(&job.Output{}), n.at("properties", "output")},
		{job.Table(&job.History{}), n.at("properties", "history")},
	} {
		for _, name := range part.table {
			if len(rows) == 0 || rows[0][1] != name {
				t.Fatalf("the row of %s is missing, or not in order: %v", name, rows[:min(1, len(rows))])
			}
			want := ""
			if value, ok := part.schema.at("properties", name)["default"]; ok {
				want = "`" + show(value) + "`"
			}
			if got := strings.TrimSpace(rows[0][3]); got != want {
				t.Errorf("%s: the default is %s in docs/jobs.md, %s in the schema", name, got, want)
			}
			if enum, ok := part.schema.at("properties", name)["enum"].([]any); ok {
				var words []string
				for _, w := range enum {
					words = append(words, fmt.Sprintf("`%s`", w))
				}
				if want := strings.Join(words, ", "); rows[0][2] != want {
					t.Errorf("%s: the words are %s in docs/jobs.md, %s in the schema", name, rows[0][2], want)
				}
			}
			rows = rows[1:]
		}
	}
	if len(rows) > 0 {
		t.Errorf("docs/jobs.md has rows of no field: %v", rows)
	}
}

// show writes a default as people do: a text without its quotes.
func show(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	text, _ := json.Marshal(value)
	return string(text)
}
