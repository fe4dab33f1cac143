package view

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

func TestWhatHasChanged(t *testing.T) {
	t.Parallel()
	a, aOpen := candidate("a", 7, 10), opened("a", 7, 10)
	b := candidate("b", 8, 11)
	moved := a
	moved.Lease, moved.Mod = 9, 20
	more := a
	more.Holder, more.Mod = who("more"), 20
	s0, s0Open := slot(2, 0, 7, 11), openedSlot(2, 0, "a", 7, 11)
	sa, sb := contender("a", 2, 7, 10, 11), contender("b", 2, 8, 12, 12)
	for name, tt := range map[string]struct {
		of      Name
		was, is []Entry
		first   bool // there is no earlier standing
		want    []string
	}{
		"at first, vacant":          {of: office, first: true, want: []string{"vacant"}},
		"at first, long vacant":     {of: office, first: true, is: []Entry{ended("z", 3, 4)}, want: []string{"vacant after z@3r"}},
		"at first, held":            {of: office, first: true, is: []Entry{a, aOpen, b}, want: []string{"held a@10 since"}},
		"nothing":                   {of: office, was: []Entry{a}, is: []Entry{a}},
		"still vacant":              {of: office},
		"somebody queues":           {of: office, was: []Entry{a, aOpen}, is: []Entry{a, aOpen, b}},
		"it says more":              {of: office, was: []Entry{a, aOpen}, is: []Entry{more, aOpen}, want: []string{"held more@10 since"}},
		"another lease":             {of: office, was: []Entry{a}, is: []Entry{moved}, want: []string{"held a@10"}},
		"taken":                     {of: office, is: []Entry{a, aOpen}, want: []string{"held a@10 since"}},
		"given up":                  {of: office, was: []Entry{a, aOpen}, is: []Entry{ended("a", 10, 12)}, want: []string{"vacant after a@10r"}},
		"given up without a word":   {of: office, was: []Entry{a}, is: []Entry{ended("z", 3, 4)}, want: []string{"vacant after a@10"}},
		"lost":                      {of: office, was: []Entry{a, aOpen}, is: []Entry{aOpen}, want: []string{"vacant for a after a@10"}},
		"and closed":                {of: office, was: []Entry{aOpen}, is: []Entry{ended("a", 10, 14)}, want: []string{"vacant after a@10r"}},
		"handed over":               {of: office, was: []Entry{a, aOpen, b}, is: []Entry{b, ended("a", 10, 12)}, want: []string{"held b@11 after a@10r"}},
		"handed over unsettled":     {of: office, was: []Entry{a, aOpen, b}, is: []Entry{b, aOpen}, want: []string{"settling b@11 for a after a@10"}},
		"settled":                   {of: office, was: []Entry{b, aOpen}, is: []Entry{b, opened("b", 8, 30)}, want: []string{"held b@11 since"}},
		"a settler held nothing":    {of: office, was: []Entry{b, aOpen}, is: []Entry{aOpen}, want: []string{"vacant for a"}},
		"another hold is unsettled": {of: office, was: []Entry{b, aOpen}, is: []Entry{b, opened("a", 7, 20)}, want: []string{"settling b@11 for a"}},

		"at first, free":              {of: sema, first: true, want: []string{"vacant"}},
		"at first, long free":         {of: sema, first: true, is: []Entry{endedSlot(2, 1, "z", 3, 4)}, want: []string{"vacant after z@3r"}},
		"at first, a queue":           {of: sema, first: true, is: []Entry{sb}, want: []string{"vacant"}},
		"at first, slots":             {of: sema, first: true, is: []Entry{sa, s0, openedSlot(2, 1, "z", 3, 4)}, want: []string{"vacant 1/2 for z", "held 0/2 a@11"}},
		"a slot is taken":             {of: sema, was: []Entry{contender("a", 2, 7, 10, 10)}, is: []Entry{sa, s0, s0Open}, want: []string{"held 0/2 a@11 since"}},
		"a slot is given up":          {of: sema, was: []Entry{sa, s0, s0Open, sb}, is: []Entry{sb, endedSlot(2, 0, "a", 11, 14)}, want: []string{"vacant 0/2 after a@11r"}},
		"one goes as another comes":   {of: sema, was: []Entry{sa, s0, s0Open, sb}, is: []Entry{endedSlot(2, 0, "a", 11, 14), contender("b", 2, 8, 12, 14), slot(2, 1, 8, 14)}, want: []string{"vacant 0/2 after a@11r", "held 1/2 b@14"}},
		"its key was deleted":         {of: sema, was: []Entry{sa, s0, s0Open}, is: []Entry{s0, s0Open}, want: []string{"leaving 0/2 a@11 since"}},
		"its lease ran out":           {of: sema, was: []Entry{sa, s0, s0Open}, is: []Entry{s0Open}, want: []string{"vacant 0/2 for a after a@11"}},
		"and then it was closed":      {of: sema, was: []Entry{s0Open}, is: []Entry{endedSlot(2, 0, "a", 11, 14)}, want: []string{"vacant 0/2 after a@11r"}},
		"who settles is no change":    {of: sema, was: []Entry{s0Open}, is: []Entry{s0Open, sb, openedSlot(2, 1, "z", 3, 4)}, want: []string{"vacant 1/2 for z"}},
		"taken once more":             {of: sema, was: []Entry{sa, s0}, is: []Entry{sa, slot(2, 0, 7, 15)}, want: []string{"held 0/2 a@15 after a@11"}},
		"the slot changed hands":      {of: sema, was: []Entry{sa, s0}, is: []Entry{contender("b", 2, 8, 12, 14), slot(2, 0, 8, 14)}, want: []string{"held 0/2 b@14 after a@11"}},
		"under another max, the same": {of: sema, was: []Entry{sa, s0}, is: []Entry{contender("a", 3, 7, 20, 20), slot(3, 0, 7, 20)}, want: []string{"vacant 0/2 after a@11", "held 0/3 a@20"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was := Stand(tt.of, tt.was, 50)
			from := &was
			if tt.first {
				from = nil
			}
			if got := tellAll(Changes(from, Stand(tt.of, tt.is, 51))); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLinesHaveTheNamesThatArePublic(t *testing.T) {
	t.Parallel()
	lines := func(of Name, entries ...Entry) (all []string) {
		for _, l := range Stand(of, entries, 99).Lines() {
			raw, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(raw))
		}
		return all
	}
	foreign := candidate("x", 0x1f, 12)
	foreign.Holder = text("foreign\x1b")
	unheld := openedSlot(2, 1, "z", 3, 4)
	unheld.Open.Holder = text("z\n")
	long := ended("a", 9, 11)
	long.Last.How = hold.End(strings.Repeat("\x1b", 21))
	for name, tt := range map[string]struct{ got, want []string }{
		"an office": {lines(office, candidate("a", 7, 10), opened("a", 7, 10), ended("z", 3, 4), foreign), []string{
			`{"kind":"elect","name":"o","max":null,"slot":null,"state":"held","host":"a","pid":1,"started":"2026-01-01T00:00:00Z","cmd":"","rev":10,"lease":"7","ttl_left_ms":-1,"position":0,"since":"2026-01-01T00:00:00Z","last":{"host":"z","pid":1,"cmd":"","rev":3,"how":"released","at":"2026-01-01T00:00:00Z"}}`,
			`{"kind":"elect","name":"o","max":null,"slot":null,"state":"waiting","host":"","pid":0,"started":"","cmd":"","rev":12,"lease":"1f","ttl_left_ms":-1,"position":1,"value":"foreign\\x1b"}`,
		}},
		"a semaphore": {lines(sema, contender("a", 2, 7, 10, 11), slot(2, 0, 7, 11), unheld, contender("b", 2, 8, 12, 12), odd(hold.Root+"sema/s/\x1b", 5)), []string{
			`{"kind":"sema","name":"s","max":2,"slot":0,"state":"held","host":"a","pid":1,"started":"2026-01-01T00:00:00Z","cmd":"","rev":11,"lease":"7","ttl_left_ms":-1,"position":0}`,
			`{"kind":"sema","name":"s","max":2,"slot":null,"state":"settling","host":"b","pid":1,"started":"2026-01-01T00:00:00Z","cmd":"","rev":12,"lease":"8","ttl_left_ms":-1,"position":1,"unsettled":{"host":"","pid":0,"cmd":"","lease":"3","ttl_ms":10000,"at":"2026-01-01T00:00:00Z","value":"z\\n"}}`,
			`{"kind":"sema","name":"s","max":null,"slot":null,"state":"odd","host":"","pid":0,"started":"","cmd":"","rev":5,"lease":"","ttl_left_ms":-1,"position":-1,"value":"/conch/v1/sema/s/\\x1b"}`,
		}},
		"a vacancy": {lines(office, unreadable(opened("a", 7, 10)), long), []string{
			`{"kind":"elect","name":"o","max":null,"slot":null,"state":"vacant","host":"","pid":0,"started":"","cmd":"","rev":0,"lease":"","ttl_left_ms":-1,"position":0,"unsettled":{"host":"","pid":0,"cmd":"","lease":"","ttl_ms":0,"at":""},"last":{"host":"a","pid":1,"cmd":"","rev":9,"how":"` +
				strings.Repeat(`\\x1b`, 20) + `...","at":"2026-01-01T00:00:00Z"}}`,
		}},
		"nobody": {lines(office), nil},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, strings.Join(tt.got, "\n     "), strings.Join(tt.want, "\n     "))
		}
	}
	h := Host{State: Up, UUID: "u\x1b", Hostname: "h", Since: began, Rev: 4, Lease: 7, Left: 1500 * time.Millisecond}.Line()
	raw, _ := json.Marshal(h)
	want := `{"kind":"host","name":"u\u001b","max":null,"slot":null,"state":"up","host":"h","pid":0,"started":"2026-01-01T00:00:00Z","cmd":"","rev":4,"lease":"7","ttl_left_ms":1500,"position":0,"since":"2026-01-01T00:00:00Z"}`
	if string(raw) != want {
		t.Errorf("got %s, want %s", raw, want)
	}
}
