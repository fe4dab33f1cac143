//go:build linux

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A picture is well-formed whatever text is in it, has a bar for each hold and fault, and a line where something is wrong.
func TestAPicture(t *testing.T) {
	t.Parallel()
	events := at(
		hand(whatStart, 3, 10), hand(whatStop, 3, 10), hand(whatStart, 5, 11), hand(whatOverlap, 7, 12),
		event{What: whatFault, Fault: "cut-host", Target: "<&>", ID: 1}, event{What: whatHeal, Fault: "cut-host", ID: 1},
	)
	path := filepath.Join(t.TempDir(), "picture")
	if err := draw(path, events, []violation{violationf("elect", 4*time.Second, "a < b"), violationf("leak", 0, "a key")}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if start, ok := token.(xml.StartElement); ok {
			for _, a := range start.Attr {
				if a.Name.Local == "class" {
					shapes[a.Value]++
				}
				if strings.Contains(a.Value, "%!") {
					t.Errorf("%s: %s", a.Name.Local, a.Value)
				}
			}
		}
	}
	for class, want := range map[string]int{"ended": 1, "killed": 1, "overlap": 1, "fault": 1, "wrong": 1} {
		if shapes[class] != want {
			t.Errorf("%d of %s, want %d: %s", shapes[class], class, want, text)
		}
	}
}

// Of a long run the picture shows what is near the first thing that is wrong.
func TestAPictureOfALongRun(t *testing.T) {
	t.Parallel()
	var events []event
	for i := range 1000 {
		events = append(events, hand(whatStart, uint64(i+1), i))
	}
	path := filepath.Join(t.TempDir(), "picture")
	if err := draw(path, at(events...), []violation{violationf("elect", 500*time.Second, "x")}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bars := strings.Count(string(text), `class="killed"`); bars != 61 {
		t.Errorf("%d bars, want those of 30 s before and after", bars)
	}
}
