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
