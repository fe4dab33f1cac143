package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/hold"
)

func TestQuietLeavesOutWhatIsBelowWarnings(t *testing.T) {
	t.Parallel()
	var loud, quiet bytes.Buffer
	for w, q := range map[*bytes.Buffer]bool{&loud: false, &quiet: true} {
		log := NewLogger(w, q, "text")
		log.Info("acquired")
		log.Warn("lost")
	}
	if strings.Count(loud.String(), "\n") != 2 || strings.Count(quiet.String(), "\n") != 1 || !strings.Contains(quiet.String(), "lost") {
		t.Errorf("loud: %q, quiet: %q", loud.String(), quiet.String())
	}
}

func TestHostileTextMakesNoLineAndNoEscapeSequence(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	hostile := "a\nlevel=ERROR msg=forged\x1b[2J\u202e\u200b\xff\r"
	NewLogger(&got, false, "text").Info("acquired", "holder", hostile, "err", errors.New(hostile), "list", []string{hostile})
	line := strings.TrimSuffix(got.String(), "\n")
	if strings.ContainsAny(line, "\n\r\x1b\u202e\u200b") || strings.Contains(line, "\xff") {
		t.Errorf("got %q", line)
	}
}

func TestFailSaysWhyInOneLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		code int
		want string
	}{
		{Usagef("unknown flag %s", Quote("--x")), hold.CodeUsage, "conch: usage: unknown flag \"--x\"\n"},
		{fmt.Errorf("%w: a\nb\x1b", hold.ErrNotAcquired), hold.CodeNotAcquired, "conch: not acquired: a\\nb\\x1b\n"},
		{fmt.Errorf("%w: %s", hold.ErrNotFound, hold.Escape("a\nb")), hold.CodeNotFound, "conch: command not found: a\\nb\n"},
		{errors.New("odd"), hold.CodeUnreachable, "conch: odd\n"},
	} {
		var got bytes.Buffer
		if code := Fail(Env{Stderr: &got}, "text", tt.err); code != tt.code || got.String() != tt.want {
			t.Errorf("Fail(%v) = %d, %q", tt.err, code, got.String())
		}
	}
}
