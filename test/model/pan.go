package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// outcome is what the verifier said.
type outcome struct {
	ended  bool // it printed its report
	errors int
	what   string  // the first error
	states float64 // stored
	memory float64 // in MB
	cut    string  // why it did not see all there is; "" where it did
}

var (
	errorsLine = regexp.MustCompile(`(?m)^State-vector .*, errors: (\d+)`)
	statesLine = regexp.MustCompile(`(?m)^\s*([0-9.e+]+) states, stored`)
	memoryLine = regexp.MustCompile(`(?m)^\s*([0-9.]+)\s+total actual memory usage`)
	firstError = regexp.MustCompile(`(?m)^pan:1: (.*?)(?: \(at depth \d+\))?$`)
)

// cuts are the words by which the verifier says that it did not finish.
var cuts = []string{
	"error: max search depth too small", "Search not completed", "pan: reached -DMEMLIM bound", "pan: out of memory", "Time limit of",
}

// parsePan reads the verifier's report.
func parsePan(text string) outcome {
	var o outcome
	if m := errorsLine.FindStringSubmatch(text); m != nil {
		o.ended = true
		o.errors, _ = strconv.Atoi(m[1]) // digits
	}
	if m := statesLine.FindStringSubmatch(text); m != nil {
		o.states, _ = strconv.ParseFloat(m[1], 64) // 0 where it is no number: it decides nothing
	}
	if m := memoryLine.FindStringSubmatch(text); m != nil {
		o.memory, _ = strconv.ParseFloat(m[1], 64)
	}
	if m := firstError.FindStringSubmatch(text); m != nil {
		o.what = m[1]
	}
	for _, c := range cuts {
		if strings.Contains(text, c) {
			o.cut = c
			break
		}
	}
	return o
}

var (
	errNoReport = errors.New("the verifier did not come to its end")
	errFound    = errors.New("a counterexample")
	errMissing  = errors.New("no counterexample")
	errCut      = errors.New("not exhausted")
)

// judge says whether an outcome is what the search is to have.
func (s search) judge(o outcome) error {
	switch {
	case s.broken && o.errors > 0:
		return nil
	case !s.broken && o.errors > 0:
		return fmt.Errorf("%w: %s", errFound, o.what)
	case !o.ended:
		return errNoReport
	case s.broken:
		return errMissing
	case o.cut != "" && !s.partial():
		return fmt.Errorf("%w: %s", errCut, o.cut)
	}
	return nil
}
