package house

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
)

// row is a table row whose cells are all durations, as Go writes them.
var row = regexp.MustCompile(`(?m)^\|((?: [0-9.]+(?:ms|s) \|){6,7})$`)

// TestTheArithmeticTableIsComputed holds the printed sums of the documents against the two formulas: that
// of the library and that of the commands, which know nothing of each other and have to agree.
func TestTheArithmeticTableIsComputed(t *testing.T) {
	t.Parallel()
	if n := checkRows(t, "docs/guarantees.md", true); n < 5 {
		t.Errorf("docs/guarantees.md: %d rows of arithmetic found, want at least 5", n)
	}
	if n := checkRows(t, "README.md", false); n != 1 {
		t.Errorf("README.md: %d rows of arithmetic found, want 1", n)
	}
}

// checkRows compares each row; where kill-after is no column it is the default.
func checkRows(t *testing.T, name string, withKillAfter bool) int {
	t.Helper()
	rows := row.FindAllStringSubmatch(string(document(t, name).Data), -1)
	for _, m := range rows {
		var cells []time.Duration
		for _, text := range strings.Fields(strings.ReplaceAll(m[1], "|", " ")) {
			d, err := time.ParseDuration(text)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			cells = append(cells, d)
		}
		ttl, killAfter, rest := cells[0], coord.DefaultGrace, cells[1:]
		if withKillAfter {
			killAfter, rest = cells[1], cells[2:]
		}

		b, err := coord.NewBounds(ttl, coord.DefaultMargin, killAfter)
		if err != nil {
			t.Errorf("%s: %s: %v", name, m[0], err)
			continue
		}
		want := [5]time.Duration{b.Renew, b.Term, b.Kill, b.TTL, b.Silence}
		if [5]time.Duration(rest) != want {
			t.Errorf("%s: %s: computed are renew, SIGTERM, SIGKILL, expiry, silence = %v", name, m[0], want)
		}
		h := hold.BoundsOf(ttl, killAfter, coord.DefaultMargin)
		if got := [5]time.Duration{h.Renew, h.Term, h.Kill, h.TTL, h.Silence}; got != want {
			t.Errorf("ttl %v: hold computes %v, coord %v", ttl, got, want)
		}
	}
	return len(rows)
}
