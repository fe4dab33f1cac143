package house

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// markdown gives the documents of the checkout.
func markdown(t *testing.T) []file {
	t.Helper()
	var docs []file
	for _, f := range checkout(t) {
		if strings.HasSuffix(f.Name, ".md") {
			docs = append(docs, f)
		}
	}
	return docs
}

// document gives one file by name.
func document(t *testing.T, name string) file {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatalf("read document: %v", err)
	}
	return file{Name: name, Data: data}
}

func TestReadmeIsReadInOneSitting(t *testing.T) {
	t.Parallel()
	if n := strings.Count(string(document(t, "README.md").Data), "\n"); n > maxReadme {
		t.Errorf("README.md has %d lines, at most %d: move what is below the first screen to docs/", n, maxReadme)
	}
}

func TestDecisionRecordsAreWhole(t *testing.T) {
	t.Parallel()
	records := 0
	for _, f := range markdown(t) {
		if path.Dir(f.Name) != "docs/adr" || path.Base(f.Name) == "README.md" {
			continue
		}
		records++
		for _, h := range adrHeadings {
			if !strings.Contains("\n"+string(f.Data), "\n"+h+"\n") {
				t.Errorf("%s has no heading %q", f.Name, h)
			}
		}
		if n := strings.Count(string(f.Data), "\n"); n > 80 {
			t.Errorf("%s has %d lines: a decision is one page", f.Name, n)
		}
	}
	if records == 0 {
		t.Error("docs/adr holds no record: decisions are written down")
	}
}

// fence and span are the parts of a document that are code, where brackets mean no link.
var (
	fence = regexp.MustCompile("(?ms)^```.*?^```")
	span  = regexp.MustCompile("`[^`\n]*`")
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	title = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
)

func TestLinksOfTheDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, f := range markdown(t) {
		text := span.ReplaceAllString(fence.ReplaceAllString(string(f.Data), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			name, anchor, _ := strings.Cut(m[1], "#")
			target := f.Name
			if name != "" {
				target = path.Join(path.Dir(f.Name), name)
			}
			switch {
			case !inTree(target):
				t.Errorf("%s: link to %s leads nowhere", f.Name, m[1])
			case anchor != "" && !anchors(document(t, target))[anchor]:
				t.Errorf("%s: link to %s: no such heading", f.Name, m[1])
			}
		}
	}
}

// anchors gives the names by which the headings of a document can be linked to.
func anchors(f file) map[string]bool {
	names := map[string]bool{}
	for _, m := range title.FindAllStringSubmatch(fence.ReplaceAllString(string(f.Data), ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		names[name] = true
	}
	return names
}

// evidence is the name of a test, a benchmark or a script in docs/claims.md.
var evidence = regexp.MustCompile("`(Test[A-Za-z0-9_]+|Benchmark[A-Za-z0-9_]+|Fuzz[A-Za-z0-9_]+|[a-z0-9-]+\\.txtar)`")

// tests are the names of all tests and scripts.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	exist := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
	for _, f := range checkout(t) {
		switch {
		case strings.HasSuffix(f.Name, ".txtar"):
			exist[path.Base(f.Name)] = true
		case strings.HasSuffix(f.Name, "_test.go"):
			for _, m := range function.FindAllStringSubmatch(string(f.Data), -1) {
				exist[m[1]] = true
			}
		}
	}
	return exist
}

func TestClaimsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	exist := tests(t)
	claims := string(document(t, "docs/claims.md").Data)
	for _, m := range evidence.FindAllStringSubmatch(claims, -1) {
		if !exist[m[1]] {
			t.Errorf("docs/claims.md names %s, which does not exist: a claim without its test is a wish", m[1])
		}
	}
	for n, line := range strings.Split(claims, "\n") {
		if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|--") && !strings.HasPrefix(line, "| claim") && !evidence.MatchString(line) {
			t.Errorf("docs/claims.md:%d: a claim that names no test", n+1)
		}
	}
	for _, name := range []string{"docs/mutations.md", "docs/cases.md"} {
		for _, m := range evidence.FindAllStringSubmatch(string(document(t, name).Data), -1) {
			if !exist[m[1]] {
				t.Errorf("%s names %s, which does not exist", name, m[1])
			}
		}
	}
}

// Each mutant is of a claim and names a test, both of which are there, and replaces a text that is there once; and the table
// of docs/guarantees.md is made from them as they are.
func TestMutantsAndTheirTableAreUpToDate(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "run", "./test/mutants", "-check")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go run ./test/mutants -check: %v\n%s", err, out)
	}
}

// chaosFault is the name of a kind of fault in the source of test/chaos, or in docs/faults.md.
var (
	chaosFault = regexp.MustCompile("\\b(?:kill|stop|term|fault|cut|linked|at)\\(\"([a-z0-9-]+)\"|\\{name: \"([a-z0-9-]+)\"")
	namedFault = regexp.MustCompile("`([a-z0-9]+(?:-[a-z0-9]+)*)`")
	matrixRow  = regexp.MustCompile(`^\| (\d+a?) \|`)
)

// lastRow is the number of the last row of the matrix.
const lastRow = 54

func TestEveryFaultIsCoveredByWhatExists(t *testing.T) {
	t.Parallel()
	exist, faults := tests(t), map[string]bool{}
	for _, f := range checkout(t) {
		if strings.HasPrefix(f.Name, "test/chaos/fault_") {
			for _, m := range chaosFault.FindAllStringSubmatch(string(f.Data), -1) {
				faults[m[1]+m[2]] = false
			}
		}
	}
	doc := string(document(t, "docs/faults.md").Data)
	for _, m := range evidence.FindAllStringSubmatch(doc, -1) {
		if !exist[m[1]] {
			t.Errorf("docs/faults.md names %s, which does not exist", m[1])
		}
	}
	rows := map[string]bool{}
	for line := range strings.Lines(doc) {
		row := matrixRow.FindStringSubmatch(line)
		_, chaos, _ := strings.Cut(line, "chaos: ")
		if row != nil {
			rows[row[1]] = true
			if !evidence.MatchString(line) && chaos == "" && !strings.Contains(line, "| not run: ") {
				t.Errorf("docs/faults.md: row %s names nothing that covers it, and not why", row[1])
			}
		}
		for _, m := range namedFault.FindAllStringSubmatch(chaos, -1) {
			if _, known := faults[m[1]]; !known && row != nil {
				t.Errorf("docs/faults.md: row %s: test/chaos has no fault %s", row[1], m[1])
			}
		}
		for _, m := range namedFault.FindAllStringSubmatch(line, -1) {
			if _, known := faults[m[1]]; known {
				faults[m[1]] = true
			}
		}
	}
	for name, told := range faults {
		if !told {
			t.Errorf("docs/faults.md does not tell of the fault %s of test/chaos", name)
		}
	}
	for n := 1; n <= lastRow; n++ {
		if !rows[strconv.Itoa(n)] {
			t.Errorf("docs/faults.md has no row %d", n)
		}
	}
}

// goBlock is a Go program in a document.
var goBlock = regexp.MustCompile("(?ms)^```go\n(package main\n.*?)^```")

func TestProgramsInTheReadmeCompile(t *testing.T) {
	t.Parallel()
	programs := goBlock.FindAllStringSubmatch(string(document(t, "README.md").Data), -1)
	if len(programs) == 0 {
		t.Fatal("README.md shows no program: it promises the library in ten lines")
	}
	for _, m := range programs {
		name := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(name, []byte(m[1]), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "vet", name)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("a program of README.md does not compile: %v\n%s", err, out)
		}
	}
}
