package record

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// docs/keys.md shows every area, and every field that is written there.
func TestTheDocumentHasAllKeysAndFields(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Distributed cron\n")
	if !ok {
		t.Fatal("docs/keys.md has no such section")
	}
	for _, area := range []string{Jobs, Fires, Runs, Results, Cursors, Nodes, Opens, Wants, Kills, Cards, Drains} {
		if row := "`" + strings.TrimPrefix(area, Root) + "<"; !strings.Contains(section, row) {
			t.Errorf("docs/keys.md has no row of %s", area)
		}
	}
	if !strings.Contains(section, "`"+strings.TrimPrefix(Pause, Root)+"`") {
		t.Errorf("docs/keys.md has no row of %s", Pause)
	}
	for _, v := range []any{Fire{}, Open{}, Cursor{}, Want{}, Kill{}, Stop{}, Card{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !strings.Contains(section, `"`+name+`"`) && !strings.Contains(section, "`"+name+"`") {
				t.Errorf("docs/keys.md does not show %s of a %T", name, v)
			}
		}
	}
	for _, kind := range []Kind{Scheduled, Late, CatchUp, Retry, Manual, Backfill, Queued, Replace} {
		if !strings.Contains(section, "`"+string(kind)+"`") {
			t.Errorf("docs/keys.md does not name the kind %s", kind)
		}
	}
	for _, d := range []Decision{DecideRun, DecideSkip, DecideMiss, DecideQueue} {
		if !strings.Contains(section, "`"+string(d)+"`") {
			t.Errorf("docs/keys.md does not name the decision %s", d)
		}
	}
}
