package hold_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/hold"
)

func TestValidName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		ok   bool
	}{
		{"a", true},
		{"7", true},
		{"job", true},
		{"fire", true},
		{"Backup_nightly.v2-eu", true},
		{"694d8a3c1f2e", true},
		{strings.Repeat("a", 200), true},
		{"a-", true},
		{"a.", true},

		{"", false},
		{strings.Repeat("a", 201), false},
		{strings.Repeat("a", 64<<10), false},
		{".", false},
		{"..", false},
		{"a..b", false},
		{".a", false},
		{"-a", false},
		{"_a", false},
		{"/", false},
		{"/a", false},
		{"a/", false},
		{"a/b", false},
		{"a//b", false},
		{"x/3", false},
		{"a b", false},
		{" a", false},
		{"a\n", false},
		{"a\r", false},
		{"a\t", false},
		{"a\x00", false},
		{"\x00", false},
		{"a\x1b[2J", false},
		{"a\x7f", false},
		{"a\xff", false},
		{"a%2f", false},
		{"a'b", false},
		{`a"b`, false},
		{"$(id)", false},
		{"a\u2028", false},
		{"a\u202eb", false},
		{"a\u200b", false},
		{"café", false},
		{"cafe\u0301", false},
		{"\u0430", false}, // a Cyrillic letter that looks like a
	} {
		err := hold.ValidName(tt.name)
		if (err == nil) != tt.ok {
			t.Errorf("ValidName(%.40q) = %v, want ok %v", tt.name, err, tt.ok)
			continue
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, hold.ErrUsage) {
			t.Errorf("ValidName(%.40q) is no usage error: %v", tt.name, err)
		}
		if text := err.Error(); len(text) > 300 || hold.Escape(strings.ReplaceAll(text, `\`, "")) != strings.ReplaceAll(text, `\`, "") {
			t.Errorf("ValidName(%.40q) says %q: not one short, harmless line", tt.name, text)
		}
	}
}
