package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// What a broken program leaves behind is ended with it: the keeper waits for nothing, so this ends long before the sleep.
func TestWhatARunLeavesIsEnded(t *testing.T) {
	t.Parallel()
	root := tree(t, entry("leaves", "TestLeaves", "-n + step\n+n"))
	b := builder{root: root, scratch: t.TempDir()}
	binary, err := b.build(t.Context(), "p", overlay{"p/p.go": "package p\n\nfunc Next(n int) int { return n }\n"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runTests(t.Context(), root, "p", binary, "^TestLeaves$", time.Minute)
	if err != nil || r.passed {
		t.Fatalf("%+v %v", r, err)
	}
	_, pid, ok := strings.Cut(string(r.out), "left: ")
	if !ok {
		t.Fatal(string(r.out))
	}
	pid, _, _ = strings.Cut(pid, "\n")
	if _, err := os.Stat("/proc/" + pid); err == nil {
		t.Errorf("process %s is still there", pid)
	}
}
