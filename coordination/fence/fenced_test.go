package fence

import (
	"errors"
	"fmt"
	"testing"
)

func TestTheRule(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name        string
		key         string
		token, seen uint64
		want        error // nil: accepted
	}{
		{"none was seen", "k", 1, 0, nil},
		{"higher", "k", 34, 33, nil},
		{"equal", "k", 34, 34, nil},
		{"lower", "k", 33, 34, &ErrFenced{Key: "k", Have: 33, Seen: 34}},
		{"the largest of all", "k", 1<<64 - 1, 1<<64 - 1, nil},
		{"no token", "k", 0, 0, ErrInvalid},
		{"no token, and none seen is no excuse", "k", 0, 34, ErrInvalid},
		{"no key", "", 1, 0, ErrInvalid},
	} {
		if got := Check(row.key, row.token, row.seen); !errors.Is(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

func TestARefusalIsFoundByIsAndAs(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("save: %w", Check("a\nb", 33, 34))
	var fenced *ErrFenced
	if !errors.As(err, &fenced) || *fenced != (ErrFenced{Key: "a\nb", Have: 33, Seen: 34}) {
		t.Fatalf("%+v", fenced)
	}
	for name, row := range map[string]struct {
		target error
		is     bool
	}{
		"any":           {&ErrFenced{}, true},
		"of that key":   {&ErrFenced{Key: "a\nb"}, true},
		"the very same": {&ErrFenced{Key: "a\nb", Have: 33, Seen: 34}, true},
		"another key":   {&ErrFenced{Key: "b"}, false},
		"another token": {&ErrFenced{Have: 32}, false},
		"other seen":    {&ErrFenced{Seen: 35}, false},
		"another error": {ErrInvalid, false},
	} {
		if errors.Is(err, row.target) != row.is {
			t.Errorf("%s: want %v", name, row.is)
		}
	}
	const want = `save: fence: "a\nb": token 33 is below 34, the highest seen`
	if err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func TestAContextCarriesAToken(t *testing.T) {
	t.Parallel()
	if token, ok := TokenFrom(t.Context()); ok || token != 0 {
		t.Error("a token out of nothing")
	}
	if token, ok := TokenFrom(WithToken(WithToken(t.Context(), 33), 34)); !ok || token != 34 {
		t.Errorf("%d, %v", token, ok)
	}
}
