//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"
)

// seen are events of one watcher, a second apart.
func seen(events ...event) []event {
	for i := range events {
		events[i].At, events[i].Pid = time.Duration(i+1)*time.Second, 1
		if events[i].Slot == "" {
			events[i].Slot = "eye"
		}
	}
	return events
}

// told is of a host that has a key for each life.
func told(what what, host string, life uint64) event { return rekeyed(what, host, life, life) }

// rekeyed is of a host that has lost its key and is back.
func rekeyed(what what, host string, life, key uint64) event {
	return event{What: what, Name: host, Token: key, Value: fmt.Sprint(life)}
}

func begin() event { return event{What: whatWatch} }

func eyes() *presence {
	return &presence{
		hosts:    []*part{{argv: []string{"host", "a"}}},
		watchers: []*part{{argv: []string{"watcher", "eye"}}, {argv: []string{"watcher", "ear"}}},
	}
}

func TestWhatWatchersMayNotTellIsFound(t *testing.T) {
	t.Parallel()
	ear := func(e event) event { e.Slot = "ear"; return e }
	for name, row := range map[string]struct {
		events []event
		want   []string
	}{
		"up and down alternate": {seen(begin(), told(whatUp, "a", 3), told(whatListed, "", 0), told(whatUp, "b", 4), told(whatUpdate, "a", 3),
			told(whatDown, "a", 3), told(whatUp, "a", 9), told(whatStale, "", 0), told(whatFresh, "", 0)), nil},
		"up twice":                              {seen(begin(), told(whatUp, "a", 3), told(whatUp, "a", 9)), []string{"a up, key 9, life 9: it was up already, with the life 3"}},
		"down twice":                            {seen(begin(), told(whatUp, "a", 3), told(whatDown, "a", 3), told(whatDown, "a", 3)), []string{"a down, key 3, life 3: it was not up with that, but with 0"}},
		"down of another life":                  {seen(begin(), told(whatUp, "a", 3), told(whatDown, "a", 2)), []string{"it was not up with that, but with 3"}},
		"the same life again":                   {seen(begin(), told(whatUp, "a", 3), told(whatDown, "a", 3), told(whatUp, "a", 3)), []string{"after key 3, life 3"}},
		"an update of who is not":               {seen(begin(), told(whatUpdate, "a", 3)), []string{"it was not up with that, but with 0"}},
		"it lost its key":                       {seen(begin(), told(whatUp, "a", 3), told(whatDown, "a", 3), rekeyed(whatUp, "a", 3, 5), rekeyed(whatDown, "a", 3, 7)), nil},
		"an older life":                         {seen(begin(), told(whatUp, "a", 5), told(whatDown, "a", 5), rekeyed(whatUp, "a", 3, 7)), []string{"after key 5, life 5"}},
		"a host of no life":                     {seen(begin(), event{What: whatUp, Name: "a", Token: 3, Value: "?"}, told(whatUpdate, "a", 0)), []string{"it was not up with that, but with -1"}},
		"several lives that it was not told of": {seen(begin(), told(whatUp, "a", 3), told(whatDown, "a", 9), told(whatUp, "a", 10)), nil},
		"listed twice":                          {seen(begin(), told(whatListed, "", 0), told(whatListed, "", 0)), []string{"a second time"}},
		"it ended by itself":                    {seen(begin(), event{What: whatEnded, Text: "why not"}), []string{"nobody has ended it: why not"}},
		"a new watcher begins anew":             {seen(begin(), told(whatUp, "a", 3), begin(), told(whatUp, "a", 3), told(whatListed, "", 0)), nil},
		"watchers are late, each by itself":     {seen(begin(), ear(begin()), told(whatUp, "a", 3), told(whatDown, "a", 3), ear(told(whatUp, "a", 3))), nil},
		"it begins with what is over": {seen(begin(), told(whatUp, "a", 3), told(whatDown, "a", 3), ear(begin()), ear(told(whatUp, "a", 3))),
			[]string{"ear is told that a is up by the key 3, which was gone before it looked"}},
	} {
		says(t, name, eyes().audit(row.events), row.want...)
	}
}

// book is a registry in memory.
type book struct {
	up   map[string]int64
	fail error
}

func (b *book) standing() (map[string]int64, error) { return maps.Clone(b.up), b.fail }

func (b *book) put(host string) error { b.up[host] = 100; return nil }

func (b *book) remove(host string) error { delete(b.up, host); return nil }

func TestHostsHaveToBeUpAndKnownInTheEnd(t *testing.T) {
	t.Parallel()
	p, b := eyes(), &book{up: map[string]int64{}}
	p.registry = b
	events := []event{}
	hear := func(watcher string, what what, host string, life uint64) {
		e := told(what, host, life)
		e.Slot = watcher
		events = append(events, e)
	}
	step := func(name string, want ...string) {
		t.Helper()
		says(t, name, p.waits(events, 0), want...)
	}
	b.fail = errors.New("away")
	step("etcd is away", "nobody knows which hosts are up: away")
	b.fail = nil
	step("a is not up", "a lives and is not up")
	b.up["a"] = 3
	step("nobody has heard", "eye knows of map[], and etcd has map[a:3]", "ear knows of")
	hear("eye", whatUp, "a", 3)
	hear("ear", whatUp, "a", 2)
	step("one knows of an old life", "ear knows of map[a:2]")
	hear("ear", whatDown, "a", 2)
	hear("ear", whatUp, "a", 3)
	step("all know", "nobody has heard yet that the visitor")
	step("the visitor is there", "eye knows of map[a:3], and etcd has map[a:3 visitor:100]")
	delete(b.up, visitor)
	step("the visitor went by itself", "gone before everybody has heard")
	b.up[visitor] = 100
	hear("eye", whatUp, visitor, 100)
	step("one is deaf", "ear knows of map[a:3]")
	hear("ear", whatUp, visitor, 100)
	step("all have heard", "nobody has heard yet that the visitor")
	step("it goes", "eye knows of map[a:3 visitor:100], and etcd has map[a:3]")
	hear("eye", whatDown, visitor, 100)
	hear("ear", whatWatch, "", 0)
	hear("ear", whatUp, "a", 3)
	step("that is all")
	b.up["a"] = 9
	step("and it is not asked again")
	numbers := map[string]int{}
	p.tally(append(events, told(whatStale, "", 0)), numbers)
	if want := (map[string]int{"hosts told up": 6, "hosts told down": 2, "views told stale": 1}); !maps.Equal(numbers, want) {
		t.Errorf("%v, want %v", numbers, want)
	}
}
