package terminal

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

// rowOf is the beginning of a row that is drawn, and where it stands.
var rowOf = regexp.MustCompile(`\x1b\[(\d+);1H`)

// fits asserts that what was drawn since the last look stands within a window of that size.
func fits(t *testing.T, drawn string, rows, columns int) {
	t.Helper()
	frames := strings.Split(drawn, "\x1b[?7l")
	if len(frames) < 3 {
		t.Fatalf("no whole picture was drawn: %q", drawn)
	}
	for _, frame := range frames[1 : len(frames)-1] { // whole ones
		at := rowOf.FindAllStringSubmatchIndex(frame, -1)
		for i, m := range at {
			end := len(frame)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			text := frame[m[1]:end]
			for _, escape := range []string{"\x1b[2K", "\x1b[J", "\x1b[?7h"} {
				text = strings.ReplaceAll(text, escape, "")
			}
			row, _ := strconv.Atoi(frame[m[2]:m[3]])
			if len([]rune(text)) > columns || row > rows || strings.ContainsAny(text, "\x1b\n") {
				t.Errorf("row %d of a window of %dx%d: %q", row, rows, columns, text)
			}
		}
	}
}

// Each was broken on purpose and turned this red: a size that is read once; lines that are not cut; a clock that stands still.
func TestStatusWatchRedrawsInPlaceAndLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	s := inShell(t, bash...)
	proxy := etcdtest.NewProxy(t, etcdtest.Shared(t).Endpoint())
	s.Resize(12, 100)
	modes, group := s.Modes(), s.Group()
	s.Type("echo 'be''fore'; CONCH_ENDPOINTS=" + proxy.Addr() + " conch status --watch $OFFICE" + enter)
	s.Await("before")
	s.Await("\r\n\x1b[?7l") // what stood there went up, and stays in the history
	s.Await("nothing is held, no job runs, and no host is up")

	// It shows who holds, and since when.
	p := run.Start(t, []string{"CONCH_ENDPOINTS=" + etcdtest.Shared(t).Endpoint(), "CONCH_TTL=60s"}, "elect", s.office, "--", "sleep", "600")
	p.WaitLog("child-start")
	s.Await("held")
	drawn := s.Await("  2s  ")
	fits(t, drawn, 12, 100)

	// The window becomes smaller.
	s.Resize(4, 20)
	s.Await("... and 2 lines more")
	from := len(s.Stdout())
	for range 3 {
		s.Await("... and 2 lines more")
	}
	fits(t, s.Stdout()[from:], 4, 20)
	s.Resize(12, 90)

	// An etcd that is away is told of.
	proxy.Cut()
	s.Await("etcd does not answer since 20")
	proxy.Revive()
	s.Await("as of 20")

	s.Type(ctrlC)
	end := s.Await(prompt)
	if drawings := strings.Count(s.Stdout(), "\x1b[?7l"); drawings < 5 || drawings != strings.Count(s.Stdout(), "\x1b[?7h") {
		t.Errorf("%d pictures were begun; %q", drawings, s.Stdout())
	}
	_, after, _ := strings.Cut(end[strings.LastIndex(end, "\x1b[?7"):], "h")
	if after = strings.ReplaceAll(strings.ReplaceAll(after, "^C", ""), "\x1b[?2004h", ""); after != "\r\n" { // the latter is bash's
		t.Errorf("the prompt does not stand on the line below the last picture: %q", end)
	}
	if code := s.code(); code != "130" {
		t.Errorf("code %s", code)
	}
	if s.Modes() != modes || s.Group() != group {
		t.Error("the terminal is not as it was")
	}
}
