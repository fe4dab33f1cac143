//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// at makes events of one office, a second apart.
func at(events ...event) []event {
	for i := range events {
		events[i].At = time.Duration(i+1) * time.Second
		if events[i].Name == "" {
			events[i].Name = "o"
		}
	}
	return events
}

// hand is an event of a child.
func hand(what what, token uint64, pid int) event { return event{What: what, Token: token, Pid: pid} }

// The auditor finds what is wrong in histories made by hand, each thing once, and nothing in those of good runs.
func TestTheAuditorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	office := offices{workload: "elect", names: []string{"o"}}
	for name, row := range map[string]struct {
		judge  func([]event) []violation
		events []event
		want   string // empty: nothing
	}{
		"hand-overs": {office.audit, at(
			hand(whatStart, 3, 10), hand(whatTerm, 3, 10), hand(whatStop, 3, 10), hand(whatStart, 7, 11), hand(whatStart, 9, 12)), ""},
		"the lock is taken": {office.audit, at(
			hand(whatStart, 3, 10), hand(whatOverlap, 5, 11)), "two children at once: token 5, process 11"},
		"an end after the next start": {office.audit, at(
			hand(whatStart, 3, 10), hand(whatStart, 5, 11), hand(whatStop, 3, 10)), "token 3, process 10 stops after token 5 has started"},
		"a token that falls":                    {office.audit, at(hand(whatStart, 5, 10), hand(whatStop, 5, 10), hand(whatStart, 4, 11)), "token 4 after 5"},
		"a token used twice":                    {office.audit, at(hand(whatStart, 5, 10), hand(whatStop, 5, 10), hand(whatStart, 5, 11)), "token 5 after 5"},
		"another office":                        {office.audit, at(hand(whatStart, 5, 10), event{What: whatStart, Token: 4, Name: "p"}), ""},
		"slots side by side":                    {(&sema{name: "o"}).audit, at(inSlot("0", 5), inSlot("1", 4)), ""},
		"a slot beyond":                         {(&sema{name: "o"}).audit, at(inSlot("2", 5)), `slot "2" of 2`},
		"no slot":                               {(&sema{name: "o"}).audit, at(inSlot("", 5)), `slot "" of 2`},
		"a slot twice":                          {(&sema{name: "o"}).audit, at(inSlot("1", 5), event{What: whatOverlap, Slot: "1", Token: 6}), "o slot 1: two children at once"},
		"a token of a slot":                     {(&sema{name: "o"}).audit, at(inSlot("1", 5), inSlot("1", 4)), "o slot 1: token 4 after 5"},
		"writes":                                {fencedOffice, at(hand(whatWrite, 3, 10), hand(whatWrite, 3, 10), hand(whatStart, 5, 11), hand(whatWrite, 5, 11), hand(whatRefused, 3, 10)), ""},
		"a stale write":                         {fencedOffice, at(hand(whatWrite, 5, 11), hand(whatWrite, 3, 10)), "stale write: token 3, process 10 writes after token 5"},
		"refused for nobody":                    {fencedOffice, at(hand(whatStart, 5, 11), hand(whatRefused, 5, 11)), "token 5 is refused"},
		"a wrapper's own code":                  {wrapperEnds, []event{{What: whatExit, Part: "w", Code: 70, Target: "self"}, {What: whatExit, Part: "w", Code: 137, Target: "killed"}}, ""},
		"a loss that is told with another code": {wrapperEnds, []event{{What: whatExit, Part: "w", Code: 69, Text: "lost"}}, `outcome "lost": want code 70`},
		"a panic":                               {wrapperEnds, []event{{What: whatExit, Part: "w", Code: 2, Pid: 9}}, "process 9 ended with code 2"},
		"75 to who waits":                       {wrapperEnds, []event{{What: whatExit, Part: "w", Code: 75}}, "ended with code 75"},
		"a daemon that is killed by nobody": {func(e []event) []violation { return ends([]*part{{name: "d", codes: []int{0}}}, e) },
			[]event{{What: whatExit, Part: "d", Code: 137, Target: "self"}}, "ended with code 137"},
		"a part that does not end": {wrapperEnds, []event{{What: whatStuck, Part: "w", Pid: 9}}, "process 9 did not end within"},
		"nobody holds again": {func(e []event) []violation { return office.waits(e, 2*time.Second) },
			at(hand(whatStart, 3, 10), hand(whatTerm, 3, 10), hand(whatStop, 3, 10)), "nobody holds it"},
		"somebody does": {func(e []event) []violation { return office.waits(e, time.Second) }, at(hand(whatTerm, 1, 9), hand(whatStart, 3, 10)), ""},
	} {
		found := row.judge(row.events)
		switch {
		case row.want == "" && len(found) > 0:
			t.Errorf("%s: %v, and nothing is wrong", name, found)
		case row.want != "" && (len(found) != 1 || !strings.Contains(found[0].Text, row.want)):
			t.Errorf("%s: %v, want one with %q", name, found, row.want)
		}
	}
}

func TestWhatIsLeftIsFound(t *testing.T) {
	t.Parallel()
	key := func(name string) []*mvccpb.KeyValue {
		return []*mvccpb.KeyValue{{Key: []byte(name), Value: []byte("x\x1b")}}
	}
	lease := func(granted, left int64) []*clientv3.LeaseTimeToLiveResponse {
		return []*clientv3.LeaseTimeToLiveResponse{{ID: 0x1f, GrantedTTL: granted, TTL: left}}
	}
	for name, row := range map[string]struct {
		there remains
		want  string // empty: nothing
	}{
		"a process":            {remains{processes: []string{"7 conch"}}, "process 7 conch"},
		"a member":             {remains{processes: []string{"7 etcd"}, members: map[string]bool{"7 etcd": true}}, ""},
		"a candidate":          {remains{keys: key("/conch/v1/elect/a/1f")}, `key /conch/v1/elect/a/1f, lease 0, value x\x1b`},
		"an open record":       {remains{keys: key("/conch/v1/open/sema/a/2/0")}, "key /conch/v1/open/sema/a/2/0"},
		"a last record":        {remains{keys: key("/conch/v1/last/elect/a")}, ""},
		"a lock":               {remains{keys: key("/coord/locks/a")}, "key /coord/locks/a"},
		"a host":               {remains{keys: key("/coord/hosts/a")}, "key /coord/hosts/a"},
		"a run":                {remains{keys: key("/conch/v1/cron/run/a/7")}, "key /conch/v1/cron/run/a/7"},
		"a key of nobody":      {remains{keys: key("\xff")}, `key \xff`},
		"a lease":              {remains{leases: lease(10, 3)}, "lease 1f of 10 s"},
		"one that runs out":    {remains{leases: lease(10, -1)}, ""},
		"that of many results": {remains{leases: lease(259200, 250000)}, ""},
	} {
		found := row.there.judge()
		if (row.want == "") != (len(found) == 0) || len(found) == 1 && !strings.HasPrefix(found[0].Text, row.want) || len(found) > 1 {
			t.Errorf("%s: %v, want %q", name, found, row.want)
		}
	}
}

func inSlot(slot string, token uint64) event { return event{What: whatStart, Slot: slot, Token: token} }

func fencedOffice(events []event) []violation { return fenced("store", events) }

func wrapperEnds(events []event) []violation {
	return ends([]*part{{name: "w", codes: wrapperCodes}}, events)
}
