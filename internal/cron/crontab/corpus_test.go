package crontab_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/go-coord/coord/internal/cron/crontab"
)

var update = flag.Bool("update", false, "write the reports of testdata anew")

// TestCrontabs reads crontabs that packages ship and that people write, and compares the whole report. The comment of each
// archive says where the crontab comes from; "options" are those it is read with.
func TestCrontabs(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 15 {
		t.Fatalf("%d archives in testdata, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Files) != 3 || a.Files[0].Name != "options" || a.Files[1].Name != "crontab" || a.Files[2].Name != "report" {
				t.Fatal("want options, crontab and report")
			}
			r, err := crontab.Parse(bytes.NewReader(a.Files[1].Data), options(t, string(a.Files[0].Data)))
			if err != nil {
				t.Fatal(err)
			}
			got := show(r)
			if *update {
				a.Files[2].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(a.Files[2].Data), got); diff != "" {
				t.Errorf("-want +got (go test -update writes it):\n%s", diff)
			}
		})
	}
}

func options(t *testing.T, text string) (o crontab.Options) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		switch key, value, _ := strings.Cut(line, " "); key {
		case "system":
			o.System = true
		case "user":
			o.User = value
		case "tz":
			o.TZ = value
		case "taken":
			o.Taken = strings.Fields(value)
		case "":
		default:
			t.Fatalf("option %q", line)
		}
	}
	return o
}

// show writes a report as text.
func show(r crontab.Report) string {
	var b strings.Builder
	for _, l := range r.Lines {
		switch l.Kind {
		case crontab.KindBlank, crontab.KindComment:
			continue
		case crontab.KindVariable:
			fmt.Fprintf(&b, "%d: variable %s = %q\n", l.Number, l.Variable, l.Value)
		case crontab.KindJob:
			fmt.Fprintf(&b, "%d: job %s %s\n", l.Number, l.Name, l.Job.Encode())
		case crontab.KindRefused:
			fmt.Fprintf(&b, "%d: refused: %s\n", l.Number, l.Reason)
		}
		for _, note := range l.Notes {
			fmt.Fprintf(&b, "    %s\n", note)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "* %s\n", note)
	}
	return b.String()
}
