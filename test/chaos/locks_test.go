//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/linear"
)

// talk is a history of calls, made by hand: each begins at a second, and is answered half a second later.
type talk struct {
	events []event
	n      int
}

// at makes one call at a second: of a process, with the token of its lease, and what it was told: a word, and a token or a value.
func (t *talk) at(second, pid int, kind string, token uint64, value, word string, told uint64, heard string) *talk {
	t.n++
	begin := time.Duration(second) * time.Second
	t.events = append(t.events, event{At: begin, What: whatCall, Name: "orders.1", Pid: pid, ID: t.n, Text: kind, Token: token, Value: value})
	if word != "" {
		a := event{At: begin + time.Second/2, What: whatReturn, Name: "orders.1", Pid: pid, ID: t.n, Text: word, Token: told, Value: heard}
		if word == wordYes && kind != callRelease {
			a.Until = begin + 3*time.Second
		}
		t.events = append(t.events, a)
	}
	return t
}

func (t *talk) granted(second, pid int, token uint64) *talk {
	return t.at(second, pid, callAcquire, 0, "", wordYes, token, "")
}

func (t *talk) wrote(second, pid int, token uint64, value string) *talk {
	return t.at(second, pid, callWrite, token, value, wordYes, 0, "")
}

func (t *talk) read(second, pid int, value string) *talk {
	return t.at(second, pid, callRead, 0, "", wordYes, 0, value)
}

// fault lets one last from a second to another.
func (t *talk) fault(from, to int, name string) *talk {
	t.events = append(t.events, event{At: time.Duration(from) * time.Second, What: whatFault, Fault: name, ID: 1},
		event{At: time.Duration(to) * time.Second, What: whatHeal, Fault: name, ID: 1})
	return t
}

// says fails unless the violations are those that are wanted, one word for each.
func says(t *testing.T, name string, found []violation, want ...string) {
	t.Helper()
	for _, w := range want {
		ok := false
		for _, v := range found {
			ok = ok || strings.Contains(v.Text, w)
		}
		if !ok {
			t.Errorf("%s: found %v, want %q", name, found, w)
		}
	}
	if len(want) == 0 && len(found) > 0 {
		t.Errorf("%s: found %v, want nothing", name, found)
	}
}

func TestWhatIsWrongWithLocksIsFound(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		talk *talk
		want []string
	}{
		"held, written, read": {new(talk).granted(1, 1, 10).wrote(2, 1, 10, "a").read(3, 2, "a"), nil},
		"a stale write lands": {
			new(talk).granted(1, 1, 10).granted(9, 2, 20).wrote(10, 2, 20, "b").wrote(11, 1, 10, "a"),
			[]string{"stale write: token 10, process 1 writes after token 20, process 2", "no order of 2 calls"},
		},
		"a stale write is refused": {
			new(talk).granted(1, 1, 10).granted(9, 2, 20).wrote(10, 2, 20, "b").at(11, 1, callWrite, 10, "a", wordNo, 20, ""), nil,
		},
		"a stale write lands, and its writer is killed": {
			new(talk).granted(1, 1, 10).granted(9, 2, 20).wrote(10, 2, 20, "b").at(11, 1, callWrite, 10, "a", "", 0, "").read(12, 3, "a"),
			[]string{"no order of 3 calls"},
		},
		"what a killed process wrote is read":    {new(talk).granted(1, 1, 10).at(2, 1, callWrite, 10, "a", "", 0, "").read(3, 3, "a"), nil},
		"what it wrote is not read":              {new(talk).granted(1, 1, 10).at(2, 1, callWrite, 10, "a", "", 0, "").read(3, 3, ""), nil},
		"what was written is lost":               {new(talk).granted(1, 1, 10).wrote(2, 1, 10, "a").read(3, 3, ""), []string{"no order of 2 calls"}},
		"refused, and nobody came with more":     {new(talk).granted(1, 1, 10).wrote(2, 1, 10, "a").at(3, 1, callWrite, 10, "b", wordNo, 30, ""), []string{"no order"}},
		"a token falls":                          {new(talk).granted(1, 1, 20).granted(9, 2, 10), []string{"token 10 is granted to process 2 after token 20 to process 1", "no order"}},
		"a token comes twice":                    {new(talk).granted(1, 1, 20).granted(9, 2, 20), []string{"token 20 is granted to process 2 after token 20"}},
		"two hold it":                            {new(talk).granted(1, 1, 10).granted(2, 2, 20), []string{"no order of 2 calls"}},
		"two hold it, since a member was paused": {new(talk).granted(1, 1, 10).granted(3, 2, 20).fault(0, 2, "stop-leader-long"), nil},
		"two hold it, since a process was":       {new(talk).granted(1, 1, 10).granted(3, 2, 20).fault(0, 2, "stop-program"), []string{"no order of 2 calls"}},
		"refused, and nobody holds it":           {new(talk).at(1, 1, callAcquire, 0, "", wordNo, 0, ""), []string{"no order of 1 calls"}},
		"refused because of who got no answer":   {new(talk).at(1, 1, callAcquire, 0, "", wordUnknown, 0, "").at(2, 2, callAcquire, 0, "", wordNo, 0, ""), nil},
		"released, and granted":                  {new(talk).granted(1, 1, 10).at(2, 1, callRelease, 10, "", wordYes, 0, "").granted(3, 2, 20), nil},
		"released without an answer":             {new(talk).granted(1, 1, 10).at(2, 1, callRelease, 10, "", wordUnknown, 0, "").granted(3, 2, 20), nil},
	} {
		l := &locks{}
		says(t, name, l.audit(row.talk.events), row.want...)
		if l.decided != 2 || l.undecided != 0 {
			t.Errorf("%s: %d orders decided, %d not, want 2, 0", name, l.decided, l.undecided)
		}
	}
}

func TestASearchThatWasGivenUpIsNoVerdict(t *testing.T) {
	t.Parallel()
	l := &locks{}
	says(t, "given up", l.verdict(0, fmt.Errorf("orders: %w", linear.ErrUndecided)))
	numbers := map[string]int{}
	l.tally(new(talk).granted(1, 1, 10).wrote(2, 1, 10, "a").at(3, 1, callWrite, 10, "b", wordNo, 30, "").at(4, 1, callRead, 0, "", "", 0, "").events, numbers)
	for what, want := range map[string]int{
		"orders of calls not decided in 20s": 1, "orders of calls decided": 0, "calls of locks checked": 4, "calls of locks without an answer": 1,
		"locks granted": 1, "writes": 1, "writes refused": 1,
	} {
		if numbers[what] != want {
			t.Errorf("%s: %d, want %d", what, numbers[what], want)
		}
	}
}

func TestLocksHaveToGoOn(t *testing.T) {
	t.Parallel()
	l, events := &locks{}, new(talk).granted(5, 1, 10).wrote(6, 1, 10, "a").events
	says(t, "they go on", l.waits(events, 4*time.Second))
	says(t, "nothing is written", l.waits(events[:2], 4*time.Second), "no write succeeds")
	says(t, "that was before", l.waits(events, 7*time.Second), "no acquire succeeds", "no write succeeds")
}
