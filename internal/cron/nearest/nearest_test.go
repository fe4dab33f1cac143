package nearest_test

import (
	"testing"

	"github.com/go-coord/coord/internal/cron/nearest"
)

func TestTheNearestName(t *testing.T) {
	t.Parallel()
	names := []string{"schedule", "script", "shell", "select", "JAN", "SEP", "tz", "retry", "max", "max_delay"}
	for _, tt := range []struct{ typed, want string }{
		{"schedule", "schedule"},
		{"shedule", "schedule"},   // left out
		{"schedulle", "schedule"}, // put in
		{"schedvle", "schedule"},  // replaced
		{"shcedule", "schedule"},  // swapped
		{"sched", ""},             // three are missing
		{"SCRIPT", "script"},
		{"sept", "SEP"},    // what goes on after the name
		{"january", "JAN"}, // however long
		{"xy", ""},         // two slips make any two letters of two
		{"tx", "tz"},
		{"maxdelay", "max_delay"}, // nearer than max, which begins it
		{"maximum", "max"},
		{"", ""},
		{"\xff\xfe", ""},
	} {
		if got := nearest.Name(tt.typed, names); got != tt.want {
			t.Errorf("Name(%q) = %q, want %q", tt.typed, got, tt.want)
		}
	}
}

func TestSlipsAreCounted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b       string
		most, want int
	}{
		{"", "", 9, 0},
		{"", "abc", 9, 3},
		{"abc", "", 9, 3},
		{"abc", "abc", 9, 0},
		{"abc", "acb", 9, 1},
		{"kitten", "sitting", 9, 3},
		{"ca", "abc", 9, 3},
		{"abcdef", "a", 2, 5}, // no less than what the lengths tell
	} {
		if got := nearest.Slips(tt.most, tt.a, tt.b); got != tt.want {
			t.Errorf("Slips(%d, %q, %q) = %d, want %d", tt.most, tt.a, tt.b, got, tt.want)
		}
	}
}

func TestAHintIsTheEndOfAnError(t *testing.T) {
	t.Parallel()
	if got := nearest.Hint("tz"); got != "; did you mean tz?" {
		t.Errorf("Hint: %q", got)
	}
	if got := nearest.Hint(""); got != "" {
		t.Errorf("Hint of nothing: %q", got)
	}
}
