//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// report is what there is to say of a run.
type report struct {
	Seed       uint64         `json:"seed"`
	Seconds    float64        `json:"seconds"`
	Faults     int            `json:"faults"`
	Missed     int            `json:"missed"`
	Kinds      map[string]int `json:"kinds"`
	Numbers    map[string]int `json:"numbers"`
	Outcomes   map[string]int `json:"outcomes"` // of wrappers, as their status files say it
	Violations []violation    `json:"violations"`
}

func summarize(events []event, numbers map[string]int, found []violation) report {
	r := report{Kinds: map[string]int{}, Numbers: numbers, Outcomes: map[string]int{}, Violations: found}
	for _, e := range events {
		switch {
		case e.What == whatFault:
			r.Faults++
			r.Kinds[e.Fault]++
		case e.What == whatMiss:
			r.Missed++
		case e.What == whatExit && e.Text != "":
			r.Outcomes[e.Text]++
		}
	}
	return r
}

// mostTold is how many violations are printed: they come in swarms.
const mostTold = 20

// tell prints the report, and says how the run is to end.
func (r report) tell(c config, stdout, stderr io.Writer) int {
	r.Seed, r.Seconds = c.Seed, c.Span.Seconds()
	for i, v := range r.Violations {
		if i == mostTold {
			fmt.Fprintf(stderr, "chaos: and %d more: see history.jsonl\n", len(r.Violations)-i)
			break
		}
		fmt.Fprintf(stderr, "chaos: VIOLATION: %s: %s\n", v.Workload, v.Text)
	}
	if c.JSON {
		r.Violations = append([]violation{}, r.Violations...) // a list also where it is empty
		if err := json.NewEncoder(stdout).Encode(r); err != nil {
			return trouble(c, err)
		}
	} else {
		r.print(stdout)
	}
	if len(r.Violations) > 0 {
		return codeViolation
	}
	return codeFine
}

func (r report) print(w io.Writer) {
	fmt.Fprintf(w, "seed %d: %d faults in %.0f s (%d more found nobody), %d violations\n", r.Seed, r.Faults, r.Seconds, r.Missed, len(r.Violations))
	for _, list := range []struct {
		title string
		of    map[string]int
	}{{"faults", r.Kinds}, {"done", r.Numbers}, {"wrappers ended", r.Outcomes}} {
		var words []string
		for _, name := range slices.Sorted(maps.Keys(list.of)) {
			words = append(words, fmt.Sprintf("%s %d", name, list.of[name]))
		}
		fmt.Fprintf(w, "%s: %s\n", list.title, strings.Join(words, ", "))
	}
}
