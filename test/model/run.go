package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// verdict is how a search ended.
type verdict struct {
	search  search
	outcome outcome
	took    time.Duration
	err     error  // nil: as it should
	details string // for people; where err is not nil
}

// line is the one line that is printed of it.
func (v verdict) line() string {
	word, what := "ok   ", "clean, exhausted"
	switch {
	case v.err != nil:
		word, what = "WRONG", v.err.Error()
	case v.search.broken:
		what = "counterexample: " + v.outcome.what
	case v.search.partial():
		what = "clean, not exhausted"
	}
	o := v.outcome
	return fmt.Sprintf("%s %-20s %9.0f states %6.0f MB %6.1f s  %s", word, v.search.name, o.states, o.memory, v.took.Seconds(), what)
}

// do does one search in a folder of its own.
func (o options) do(ctx context.Context, s search) (v verdict) {
	began := time.Now()
	v.search = s
	defer func() { v.took = time.Since(began) }()
	scratch, err := os.MkdirTemp("", "model-")
	if err != nil {
		v.err = fmt.Errorf("make folder: %w", err)
		return v
	}
	defer func() { _ = os.RemoveAll(scratch) }() // it is ours alone, and small
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()

	var text string
	if err := o.build(ctx, s, scratch); err != nil {
		v.err = err
		return v
	}
	text, err = output(ctx, scratch, "./pan", append([]string{"-m1000000"}, s.pan...)...)
	v.outcome = parsePan(text)
	v.err = s.judge(v.outcome)
	switch {
	case v.err == nil:
	case ctx.Err() != nil:
		v.err = fmt.Errorf("%w after %v", context.Cause(ctx), time.Since(began).Round(time.Second))
	case errors.Is(v.err, errFound):
		v.details = trail(ctx, s, scratch)
	case err != nil:
		v.details = last(text, 20)
	}
	return v
}

// build makes the verifier. A counterexample is found early, so what looks for one is compiled fast; what sees millions of states
// is made to be fast.
func (o options) build(ctx context.Context, s search, scratch string) error {
	model, err := os.ReadFile(filepath.Join(o.folder, s.file))
	if err != nil {
		return fmt.Errorf("read model: %w", err)
	}
	if err := os.WriteFile(filepath.Join(scratch, s.file), model, 0o600); err != nil {
		return fmt.Errorf("copy model: %w", err)
	}
	if text, err := output(ctx, scratch, "spin", append(slices.Clone(s.defines), "-a", s.file)...); err != nil {
		return fmt.Errorf("spin -a %s: %w: %s", s.file, err, last(text, 5))
	}
	args := []string{"-w", "-O2", "-DSAFETY", "-DNOFAIR", fmt.Sprintf("-DMEMLIM=%d", o.memory)}
	if s.broken {
		args[1] = "-O0"
	}
	if !s.partial() {
		args = append(args, "-DCOLLAPSE")
	}
	args = append(args, s.compile...)
	if text, err := output(ctx, scratch, "gcc", append(args, "-o", "pan", "pan.c")...); err != nil {
		return fmt.Errorf("gcc pan.c: %w: %s", err, last(text, 5))
	}
	return nil
}

// trail replays the counterexample that the verifier left.
func trail(ctx context.Context, s search, scratch string) string {
	text, err := output(ctx, scratch, "spin", append(slices.Clone(s.defines), "-t", "-p", s.file)...)
	if err != nil {
		return fmt.Sprintf("spin -t: %v\n", err)
	}
	return last(text, 60)
}

// output runs a program in a folder, and gives all that it printed.
func output(ctx context.Context, folder, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = folder, time.Second
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	return text.String(), err
}

// last is the last n lines of a text.
func last(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n-1):], "")
}
