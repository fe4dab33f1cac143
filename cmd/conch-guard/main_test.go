package main

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/hold/guard"
)

// The test binary is holdguard too, when it is called like it or told so.
func TestMain(m *testing.M) {
	if guard.IsRole(os.Args) || os.Getenv("HOLDGUARD_BY_HAND") != "" {
		main()
	}
	flag.Parse()
	os.Exit(m.Run())
}

// covered lets what a process of holdguard runs through count.
func covered() []string {
	if f := flag.Lookup("test.gocoverdir"); f != nil && f.Value.String() != "" {
		return []string{"GOCOVERDIR=" + f.Value.String()}
	}
	return nil
}

func TestHoldguardServesARunAndEnds(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := guard.Start(guard.Options{Path: self, Env: covered()})
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
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(covered(), "HOLDGUARD_BY_HAND=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != 64 || strings.Count(stderr.String(), "\n") != 1 {
		t.Fatalf("%v: %q", err, stderr.String())
	}
}

// What it links is what it costs to start.
func TestHoldguardLinksTheStandardLibraryAndLittleElse(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		switch {
		case strings.HasPrefix(path, "golang.org/x/sys/"), strings.HasPrefix(path, "github.com/go-coord/coord/internal/hold"):
		case path == "github.com/go-coord/coord/cmd/conch-guard":
		default:
			t.Errorf("links %s", path)
		}
	}
}
