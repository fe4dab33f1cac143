package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/supervise"
)

func TestPausesGrowAndBeginAnew(t *testing.T) {
	t.Parallel()
	short := supervise.Outcome{Clean: true, Status: hold.Status{Outcome: hold.ResultChildExit, Held: goodAfter - 1}}
	good := short
	good.Status.Held = goodAfter
	longest := time.Duration(0)
	for range 200 {
		var p pauses
		last := pauseLeast
		for range 30 {
			if p.over(short) {
				t.Fatal("the end of a child is not the end")
			}
			next := p.next()
			if next < pauseLeast || next > min(pauseMost, 3*last) {
				t.Fatalf("%v after %v", next, last)
			}
			last = next
			longest = max(longest, next)
		}
		if p.over(good); p.next() > 3*pauseLeast {
			t.Fatalf("%v after a good run", p.last)
		}
	}
	if longest < pauseMost/2 {
		t.Errorf("200 times 30 pauses, and none longer than %v", longest)
	}
}

func TestWhatIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		out  supervise.Outcome
		over bool
	}{
		"not acquired":           {notBegun(hold.ErrNotAcquired), false},
		"lost":                   {supervise.Outcome{Clean: true, Started: true, Status: hold.Status{Outcome: hold.ResultLost}}, false},
		"signalled":              {supervise.Outcome{Clean: true, Signalled: true}, true},
		"a Ctrl-C":               {supervise.Outcome{Clean: true, Started: true, Interrupted: true}, true},
		"something is alive":     {supervise.Outcome{Started: true}, true},
		"on-lose did not do it":  {supervise.Outcome{Clean: true, Status: hold.Status{Outcome: hold.ResultHookFailed}}, true},
		"a command that is gone": {supervise.Outcome{Clean: true, Status: hold.Status{Outcome: hold.ResultNotStarted}}, false},
	} {
		if got := new(pauses).over(tt.out); got != tt.over {
			t.Errorf("%s: over is %v", name, got)
		}
	}
}

func TestTheReasonOfARestart(t *testing.T) {
	t.Parallel()
	for want, out := range map[string]supervise.Outcome{
		"exited 3":         {Status: hold.Status{Outcome: hold.ResultChildExit, Code: 3}},
		"ended by SIGSEGV": {Status: hold.Status{Outcome: hold.ResultChildSignal, Reason: "SIGSEGV"}},
		"hold lost":        {Err: hold.ErrLost, Status: hold.Status{Outcome: hold.ResultLost}},
	} {
		if got := reason(out); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestARoundFollowsARoundUntilASignalComes(t *testing.T) {
	t.Parallel()
	s, office := at(t), etcdtest.Office(t)
	status := filepath.Join(t.TempDir(), "status")
	code := s.start("elect", office, "--restart", "--nonblock", "--status-file", status, "--",
		"sh", "-c", `[ ! -e "$1" ] || exec sleep 600; touch "$1"; exit 3`, "sh", filepath.Join(t.TempDir(), "first"))
	until(t, &s.stderr, `msg=restarting`, `reason="exited 3"`)
	wanted(t, func() bool { return strings.Count(s.stderr.String(), "msg=child-start") == 2 })
	s.signals <- syscall.SIGTERM
	if c := wait(t, code); c != 143 {
		t.Errorf("code %d, %s", c, s.stderr.String())
	}
	queue(t, etcdtest.Shared(t).Client(t), office, 0)
	equal(t, s.messages(), []string{
		"acquired", "child-start", "child-exit", "released", "restarting",
		"acquired", "child-start", "term-sent", "child-exit", "released",
	})
}

func TestASignalEndsThePauseBetweenTwoRounds(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	lead(t, office, "somebody")
	s, status := at(t), filepath.Join(t.TempDir(), "status")
	code := s.start("elect", office, "--restart", "--nonblock", "--status-file", status, "--", "true")
	until(t, &s.stderr, "msg=restarting")
	s.signals <- syscall.SIGUSR1 // means nothing here
	s.signals <- syscall.SIGHUP
	if c := wait(t, code); c != 129 {
		t.Errorf("code %d, %s", c, s.stderr.String())
	}
	raw, err := os.ReadFile(status)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(raw), `"outcome":"signalled","code":129`)
}

func TestHooksRunAroundTheChild(t *testing.T) {
	t.Parallel()
	s, office, out := at(t), etcdtest.Office(t), filepath.Join(t.TempDir(), "out")
	note := func(what string) string { return "echo " + what + " >>" + out }
	code := s.conch("elect", office, "--on-acquire", note("one"), "--on-lose", note("three"), "--", "sh", "-c", note("two"))
	if code != 0 {
		t.Errorf("code %d, %s", code, s.stderr.String())
	}
	code = s.conch("elect", office, "--on-acquire", "exit 1", "--on-lose", "exit 1", "--fence-on-lose", "--", "sh", "-c", note("never"))
	if code != hold.CodeHookFailed {
		t.Errorf("code %d, %s", code, s.stderr.String())
	}
	raw, err := os.ReadFile(out)
	if err != nil || string(raw) != "one\ntwo\nthree\n" {
		t.Errorf("%q, %v", raw, err)
	}
	queue(t, etcdtest.Shared(t).Client(t), office, 1)
}

func TestWhoStepsInLateWaitsForAVacancy(t *testing.T) {
	t.Parallel()
	s, office := at(t), etcdtest.Office(t)
	el := lead(t, office, "somebody")
	code := s.start("elect", office, "--campaign-after", "50ms", "--", "true")
	until(t, &s.stderr, "waiting until the office is vacant", "holder=somebody")
	queue(t, etcdtest.Shared(t).Client(t), office, 1)
	if err := el.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := wait(t, code); c != 0 {
		t.Errorf("code %d, %s", c, s.stderr.String())
	}
}

func TestAWaitBoundsTheVacancyToo(t *testing.T) {
	t.Parallel()
	s, office := at(t), etcdtest.Office(t)
	lead(t, office, "somebody")
	if code := s.conch("elect", office, "--campaign-after", "10ms", "--wait", "20ms", "--", "true"); code != hold.CodeNotAcquired {
		t.Errorf("code %d, %s", code, s.stderr.String())
	}
	queue(t, etcdtest.Shared(t).Client(t), office, 1)
}

// until waits until everything that was asked for has been written.
func until(t *testing.T, b *text, want ...string) {
	t.Helper()
	wanted(t, func() bool {
		said := b.String()
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(said, w) })
	})
}

// wanted waits until something is so that nothing tells of.
func wanted(t *testing.T, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if so() {
			return
		}
		time.Sleep(time.Millisecond) // a buffer that is written to is no event
	}
	t.Fatal("it does not come about")
}
