package command

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
)

func TestPlacesInTheQueueAreToldAtMostEveryTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said text
		p := &progress{log: cli.NewLogger(&said, false, "text"), name: "x", began: time.Now()}
		positions := func() string {
			var all []string
			for _, word := range strings.Fields(said.String()) {
				if n, ok := strings.CutPrefix(word, "position="); ok {
					all = append(all, n)
				}
			}
			return strings.Join(all, " ")
		}
		expect := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := positions(); got != want {
				t.Errorf("after %v: told %q, want %q", time.Since(p.began), got, want)
			}
		}

		p.waiting(coord.Waiting{Position: 9})
		expect("9")
		p.waiting(coord.Waiting{Position: 8})
		p.waiting(coord.Waiting{Position: 7})
		expect("9")
		time.Sleep(progressEvery) // the clock of the bubble
		expect("9 7")
		time.Sleep(time.Hour) // the clock of the bubble
		expect("9 7")
		p.waiting(coord.Waiting{Position: 1})
		expect("9 7 1")

		// What is held back when the wait ends is not told.
		p.waiting(coord.Waiting{Position: 3})
		p.stop()
		time.Sleep(time.Hour) // the clock of the bubble
		expect("9 7 1")
	})
}

// TestTurnsOfAHostAreToldAtMostEveryTenSeconds: a host can have many contenders.
func TestTurnsOfAHostAreToldAtMostEveryTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said text
		p := &progress{log: cli.NewLogger(&said, false, "text"), name: "x", began: time.Now()}
		lines := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := strings.Count(said.String(), "\n"); got != want {
				t.Errorf("after %v: %d lines, want %d: %s", time.Since(p.began), got, want, said.String())
			}
		}
		for turn := 50; turn > 0; turn-- {
			p.spreading(coord.Waiting{Position: turn, Leader: coord.Candidate{Identity: "a"}})
		}
		lines(1)
		time.Sleep(progressEvery) // the clock of the bubble
		lines(2)
		contains(t, said.String(), `msg="waiting for this host's other contenders" name=x position=50 holder=a dur=0s`, "position=1 holder=a dur=10s")

		// What is waited for next counts, when it is time to tell.
		p.spreading(coord.Waiting{Position: 1})
		p.queueing(3)(coord.Waiting{Position: 7})
		lines(2)
		time.Sleep(progressEvery) // the clock of the bubble
		lines(3)
		contains(t, said.String(), "msg=waiting name=x position=7 max=3 dur=20s")
		p.stop()
	})
}

// TestWhoseEndIsWaitedForIsToldOnce: a slot that is settled is looked at again whenever another one changes.
func TestWhoseEndIsWaitedForIsToldOnce(t *testing.T) {
	t.Parallel()
	var said text
	p := &progress{log: cli.NewLogger(&said, false, "text"), name: "x", began: time.Now()}
	queued := p.queueing(2)
	one, other := coord.Record{Lease: 1, Holder: "one"}, coord.Record{Lease: 2, Holder: "other"}
	for left := 5; left > 0; left-- {
		queued(coord.Waiting{Settling: time.Duration(left) * time.Second, Record: one})
	}
	queued(coord.Waiting{Settling: time.Second, Record: other})
	queued(coord.Waiting{Settling: time.Minute, Record: coord.Record{}})
	queued(coord.Waiting{Settling: time.Minute, Record: coord.Record{}})
	if got := strings.Count(said.String(), "msg=settling"); got != 3 {
		t.Errorf("told %d times: %s", got, said.String())
	}
	contains(t, said.String(), "at_most=5s holder=one", "at_most=1s holder=other", `at_most=1m0s holder=""`)
	contains(t, p.unsettled(), "waited out for up to 1m0s more")
}

func TestSettlingIsToldAtOnce(t *testing.T) {
	t.Parallel()
	var said text
	p := &progress{log: cli.NewLogger(&said, false, "text"), name: "x", began: time.Now()}
	p.waiting(coord.Waiting{Position: 1})
	p.waiting(coord.Waiting{Position: 2})
	p.waiting(coord.Waiting{Settling: 3 * time.Second, Record: coord.Record{Holder: "a\nb"}})
	contains(t, said.String(), "msg=settling", "at_most=3s", `holder=a\nb `)
	if strings.Count(said.String(), "\n") != 2 {
		t.Errorf("got %q", said.String())
	}
	if p.later != nil {
		t.Error("a line about the queue is still to come")
	}
}
