package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestWithoutSpinNothingIsSearched(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := searchAll(t.Context(), options{folder: models, timeout: 10 * time.Minute, memory: 100})
	if err == nil || !strings.Contains(err.Error(), "find spin") || !strings.Contains(err.Error(), "apt-get install") {
		t.Errorf("%v: want it to say what is missing, and how to get it", err)
	}
}

// The smallest model, as it is and with a rule broken, each wanted as it is and as it is not.
func TestSearches(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("find %s: %v: the models are searched with it", tool, err)
		}
	}
	rule := []string{"-DM_FORCE"}
	for _, c := range []struct {
		s    search
		want error
	}{
		{search{name: "clean", file: "evict.pml"}, nil},
		{search{name: "broken", file: "evict.pml", defines: rule, broken: true}, nil},
		{search{name: "not broken", file: "evict.pml", broken: true}, errMissing},
		{search{name: "not clean", file: "evict.pml", defines: rule}, errFound},
		{search{name: "too deep", file: "evict.pml", pan: []string{"-m5"}}, errCut},
	} {
		t.Run(c.s.name, func(t *testing.T) {
			t.Parallel()
			v := options{folder: models, timeout: 10 * time.Minute, memory: 500}.do(t.Context(), c.s)
			if !errors.Is(v.err, c.want) {
				t.Errorf("%s: want %v", v.line(), c.want)
			}
			if trail := strings.Contains(v.details, "spin: trail ends"); trail != (c.want == errFound) {
				t.Errorf("%s: details %q", v.line(), v.details)
			}
		})
	}
	v := options{folder: models, timeout: 10 * time.Minute, memory: 500}.do(t.Context(), search{file: "none.pml"})
	if v.err == nil || !strings.Contains(v.err.Error(), "none.pml") {
		t.Errorf("%v: want it to name the model that is not there", v.err)
	}
}
