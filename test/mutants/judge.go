package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// verdict is what became of a mutant.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "survived"
	broken   verdict = "broken"
	hung     verdict = "hung"
)

// testWithin is how long the test of a mutant may take: those of the core take seconds at most.
const testWithin = 60 * time.Second

// judgement is a verdict, and how it came about.
type judgement struct {
	mutant  *mutant
	verdict verdict
	took    time.Duration
	red     string // the test that failed
	detail  string // what was printed, where it is of interest
}

// ok tells what has to be from an error.
func (j judgement) ok() bool { return j.verdict == killed }

func (j judgement) String() string {
	line := fmt.Sprintf("%-44s %-8s %5.1f s  %s", j.mutant.name, j.verdict, j.took.Seconds(), j.red)
	if !j.ok() {
		line += "\n    " + j.mutant.at + ": " + j.mutant.breaks + "\n" + j.detail
	}
	return line
}

// ran is how one run of a test binary ended.
type ran struct {
	passed, hung bool
	took         time.Duration
	out          []byte
}

// runTests runs some tests of a binary in the folder of their package. A run that takes longer than within is ended.
func runTests(ctx context.Context, root, pkg, binary, pattern string, within time.Duration) (ran, error) {
	self, err := os.Executable()
	if err != nil {
		return ran{}, fmt.Errorf("find own program: %w", err)
	}
	// The binary ends itself, with the stacks of what hangs; it is ended where it does not.
	ctx, cancel := context.WithTimeout(ctx, within+5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, keepWord, binary, "-test.run", pattern, "-test.count=1", "-test.v", "-test.timeout", within.String())
	cmd.Dir = filepath.Join(root, filepath.FromSlash(pkg))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // its keeper ends it, and what it left
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	err = cmd.Run()
	r := ran{passed: err == nil, took: time.Since(began), out: out.Bytes()}
	r.hung = errors.Is(ctx.Err(), context.DeadlineExceeded) || bytes.Contains(r.out, []byte("\npanic: test timed out after"))
	var exit *exec.ExitError
	switch {
	case err == nil || r.hung || errors.As(err, &exit):
		return r, nil
	default:
		return r, fmt.Errorf("run tests: %w", err)
	}
}

var (
	ranTest  = regexp.MustCompile(`(?m)^=== RUN `)
	failed   = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	panicked = regexp.MustCompile(`(?m)^(?:panic|fatal error): .*$`)
)

// judge runs a mutant's test, for so long at most, and says what became of it.
func judge(ctx context.Context, root, binary string, m *mutant, within time.Duration) judgement {
	if m.hangs > 0 {
		within = m.hangs
	}
	r, err := runTests(ctx, root, m.pkg, binary, m.pattern(), within)
	j := judgement{mutant: m, took: r.took, red: m.test}
	switch {
	case err != nil:
		j.verdict, j.detail = broken, err.Error()
	case r.hung && m.hangs > 0:
		j.verdict, j.red = killed, m.test+" (hangs)"
	case r.hung:
		j.verdict, j.detail = hung, string(tail(r.out))
	case !ranTest.Match(r.out):
		j.verdict, j.detail = broken, "no test is named "+m.test
	case r.passed:
		j.verdict, j.detail = survived, string(tail(r.out))
	case failed.Match(r.out):
		j.verdict = killed
	case panicked.Match(r.out):
		j.verdict, j.red = killed, m.test+" (panics)"
	default:
		j.verdict, j.detail = broken, string(tail(r.out))
	}
	return j
}

// tail is the end of what was printed.
func tail(out []byte) []byte {
	const most = 1000
	if len(out) > most {
		out = out[len(out)-most:]
	}
	return out
}
