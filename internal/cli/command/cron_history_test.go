package command

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
)

func ended(status record.Status, why record.Reason) record.Result {
	at := record.StampOf(time.Unix(1805007603, 0))
	r := record.Result{
		Job: "x", Tick: 1805007600, Kind: record.Scheduled, Attempt: 1, Status: status, Reason: why, Host: "node1", Rev: 7, SpecRev: 3,
		ClaimedAt: at, EndedAt: at, RunID: "x/1805007600",
	}
	if status.Started() {
		r.StartedAt, r.LateMS, r.WallMS = at, 120, 2500
		r.Output = record.Output{Tail: "one\ttwo\r\nthree\x1b[2J", Bytes: 100_000, Truncated: true}
	}
	return r
}

func TestCronHistoryPrintsTheNewestLast(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.lines(c.says(1, "history", "x"), "no such result of x is kept")
	c.result("x", "1805007600", ended(record.Success, record.ReasonNone))
	failed := ended(record.Failed, record.ReasonExit)
	failed.ExitCode = 3
	c.result("x", "1805011200", failed)
	signalled := ended(record.Failed, record.ReasonSignal)
	signalled.Signal = "SIGSEGV"
	c.result("x", "1805014800", signalled)
	missed := ended(record.Skipped, record.ReasonPaused)
	missed.From, missed.Ticks = 1805018400, 3
	c.result("x", "1805025600", missed)
	c.result("x_all", "1805007600", ended(record.Lost, record.ReasonNode)) // a name that begins so is another job
	c.put(record.Results+"x/nonsense", "{}")
	c.put(record.Results+"x/1805036000", "no result")

	c.lines(c.says(0, "history", "x"),
		"ID TICK KIND ATTEMPT STATUS REASON HOST LATE TOOK CODE TICKS",
		"1805007600 2027-03-14T07:00:00Z scheduled 1 success - node1 120ms 2.5s 0 -",
		"1805011200 2027-03-14T08:00:00Z scheduled 1 failed exit_code node1 120ms 2.5s 3 -",
		"1805014800 2027-03-14T09:00:00Z scheduled 1 failed signal node1 120ms 2.5s SIGSEGV -",
		"1805025600 2027-03-14T12:00:00Z scheduled 1 skipped paused node1 - - - 3 from 2027-03-14T10:00:00Z",
	)
	c.lines(c.says(0, "history", "x", "-n", "1", "--status", "failed,lost"), "ID ...", "1805014800 ...")
	c.lines(c.refuses(64, "history", "x", "--status", "ok"), `usage: --status "ok": want success, failed, ...`)
	c.lines(c.refuses(64, "history"), "usage: no job given: conch cron history NAME [flags]")
	c.lines(c.refuses(64, "history", "x", "y"), `usage: one job is accepted, got "y" too`)
	c.lines(c.refuses(64, "history", "x/y"), `usage: name "x/y" ...`)

	// What a program reads is the result as it stands, and safe on a terminal.
	text := c.says(0, "history", "x", "-o", "json", "-n", "4")
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var r record.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Job != "x" {
			t.Errorf("%d: %v", i, err)
		}
		if i == 0 && r.Output.Tail != "one\ttwo\r\nthree\x1b[2J" {
			t.Errorf("%q", r.Output.Tail)
		}
	}
	if err := harmless(text, true); err != nil {
		t.Error(err)
	}
}

func TestCronLogPrintsTheOutputAndNothingElseOnStdout(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.lines(c.refuses(1, "log", "x"), "no such run of x is kept; conch cron history x lists what is")
	c.result("x", "1805007600", ended(record.Success, record.ReasonNone))
	c.result("x", "1805007600.1", ended(record.Failed, record.ReasonExit))
	c.result("x", "1805011200", ended(record.Missed, record.ReasonDeadline)) // which has none
	s := c.shell()
	if code := s.conch("cron", "log", "x"); code != 0 {
		t.Error(code)
	}
	if got, want := s.stdout.String(), "... (of 100000 bytes the last 18 are kept)\none\ttwo\nthree\\x1b[2J\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	c.lines(s.stderr.String(), "== x/1805007600.1: failed on node1: exit code 0; started 120ms after it was due, ran 2.5s")
	c.lines(c.says(0, "log", "x", "1805007600"), "...", "one two", "three...", "...", "one two", "three...")
	c.lines(c.says(0, "log", "x", "1805007600.1"), "...", "one two", "three...")
	if text := c.says(0, "log", "x", "1805011200"); text != "" {
		t.Errorf("%q of what never ran", text)
	}
	c.refuses(1, "log", "x", "1805007600.2")
	c.lines(c.refuses(64, "log", "x", "yesterday"), `usage: "yesterday": want an id as ps and history print it: ...`)
	c.lines(c.refuses(64, "log", "x", "1805007600", "-f"), "usage: -f: goes without TICK, ...")
	c.lines(c.refuses(64, "log", "x", "1", "2"), `usage: one more argument is accepted behind the job, got "2" too`)
}

func TestCronLogFollowsWhatEnds(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	quick := func(text string) record.Result {
		r := ended(record.Success, record.ReasonNone)
		r.Output = record.Output{Tail: text}
		return r
	}
	c.result("x", "1805007600", quick("old"))
	c.result("x", "1805007601", quick("latest"))
	s := c.shell()
	code := s.start("cron", "log", "x", "-f")
	said := func(n int) func() bool {
		return func() bool { return strings.Count(s.stderr.String(), "== x/") == n }
	}
	awaits(t, said(1))
	c.result("x", "1805007602", ended(record.Skipped, record.ReasonOverlap))
	c.result("x_all", "1805007602", quick("of another job"))
	c.result("x", "1805007603", quick("next"))
	awaits(t, said(2))
	s.signals <- syscall.SIGTERM
	if got := wait(t, code); got != 128+15 {
		t.Errorf("code %d", got)
	}
	if got := s.stdout.String(); got != "latest\nnext\n" {
		t.Errorf("%q", got)
	}
}

// Each reason has words of its own, so that none is shown as its code.
func TestEachReasonHasItsWords(t *testing.T) {
	t.Parallel()
	seen := map[string]record.Reason{}
	for _, why := range []record.Reason{
		record.ReasonNone, record.ReasonExit, record.ReasonSignal, record.ReasonRunTTL, record.ReasonKill, record.ReasonReplaced,
		record.ReasonShutdown, record.ReasonSession, record.ReasonDaemon, record.ReasonNode, record.ReasonGuard, record.ReasonOverlap,
		record.ReasonPaused, record.ReasonNoNode, record.ReasonDeadline, record.ReasonCapacity, record.ReasonLateClaim, record.ReasonNotStarted,
		record.ReasonSpec, record.ReasonUnconfirmed,
	} {
		text := reasonText(&record.Result{Reason: why})
		if other, twice := seen[text]; twice || text == string(why) && why != "" {
			t.Errorf("%q: %q, as %q", why, text, other)
		}
		seen[text] = why
	}
	if got := reasonText(&record.Result{Reason: "\x1b[2J"}); got != `\x1b[2J` {
		t.Errorf("%q", got)
	}
	r := ended("of\x1bsomebody", "else")
	r.Detail, r.By, r.Attempt, r.Ticks, r.Host = nasty, nasty, 2, record.MaxTicks, ""
	text := endingText(&r) + "\n"
	if err := harmless(text, false); err != nil {
		t.Error(err)
	}
	contains(t, text, "100000 or more ticks", "attempt 2")
}
