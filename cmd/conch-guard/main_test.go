package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/hold/guard"
)

func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), guard.Name)
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func TestHoldguardServesARunAndEnds(t *testing.T) {
	c, err := guard.Start(guard.Options{Path: build(t)})
	if err != nil {
		t.Fatal(err)
	}
	spec := &guard.Spec{Path: "/bin/sh", Argv: []string{"sh", "-c", "exit 3"}}
	if err := c.Send(guard.Request{Op: guard.OpStart, Run: "1", Spec: spec}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []guard.Kind{guard.KindReady, guard.KindStarted, guard.KindExited, guard.KindGone} {
		e, ok := <-c.Events()
		if !ok || e.Kind != want || want == guard.KindExited && e.Code != 3 {
			t.Fatalf("%+v, want %s", e, want)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestHoldguardByHandIsAUsageError(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(build(t))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != 64 || strings.Count(stderr.String(), "\n") != 1 {
		t.Fatalf("%v: %q", err, stderr.String())
	}
}

// What it links is what it costs to start.
func TestHoldguardLinksNeitherEtcdNorALogger(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		for _, heavy := range []string{"go.etcd.io", "google.golang.org", "github.com/spf13", "log/slog", "net"} {
			if path == heavy || strings.HasPrefix(path, heavy+"/") && strings.Contains(heavy, ".") {
				t.Errorf("links %s", path)
			}
		}
	}
}
