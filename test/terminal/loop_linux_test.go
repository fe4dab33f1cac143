package terminal

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

// A shell ends a loop at a Ctrl-C only if what it ran was killed by it: an exit with 130 looks as if the program had dealt
// with it. Red when the wrapper exits: the loop starts the next one and there is no prompt.
func TestCtrlCEndsALoopOfTheShell(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"plain":   "conch elect $OFFICE -- sleep 600",
		"restart": "conch elect $OFFICE --restart -- sleep 600",
		"nested":  "conch elect $OFFICE.outer --quiet -- conch elect $OFFICE -- sleep 600",
		"hook":    "conch elect $OFFICE --on-lose true -- sleep 600",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := inShell(t, bash...)
			s.Type("while :; do " + body + "; done" + enter)
			s.Await("msg=child-start")
			s.Type(ctrlC)
			shown := s.Await(prompt)
			if !strings.Contains(shown, "msg=released") || strings.Contains(shown, "msg=acquired") {
				t.Errorf("the terminal shows %q, want a release and no second hold", shown)
			}
			if code := s.code(); code != "130" {
				t.Errorf("code %s; %s", code, s.Stdout())
			}
			s.free()
		})
	}
}

// While the wrapper waits it has the terminal itself. A script, which has no job control, gets the Ctrl-C too, and ends if
// the wrapper was killed by it.
func TestCtrlCEndsALoopWhoseWrapperWaits(t *testing.T) {
	t.Parallel()
	const loop = `while :; do conch elect $OFFICE -- true; done`
	hold := func(t *testing.T, s *shell) {
		p := run.Start(t, []string{"CONCH_ENDPOINTS=" + etcdtest.Shared(t).Endpoint(), "CONCH_TTL=60s"},
			"elect", s.office, "--", "sleep", "600")
		p.WaitLog("msg=child-start")
	}
	t.Run("interactive", func(t *testing.T) {
		t.Parallel()
		s := inShell(t, bash...)
		hold(t, s)
		s.Type(loop + enter)
		s.Await("msg=waiting")
		s.Type(ctrlC)
		s.Await(prompt)
		if code := s.code(); code != "130" {
			t.Errorf("code %s; %s", code, s.Stdout())
		}
	})
	t.Run("script", func(t *testing.T) {
		t.Parallel()
		s := window(t, "bash", "-c", "read go; "+loop)
		hold(t, s)
		s.Type(enter)
		s.Await("msg=waiting")
		s.Type(ctrlC)
		if code := s.Wait(); code != 130 {
			t.Errorf("code %d; %s", code, s.Stdout())
		}
	})
}

// A script has no job control: the Ctrl-C of a child that has the terminal does not come to it, and it has to look at the code.
func TestAScriptSeesTheCtrlCOfAChildAsACode(t *testing.T) {
	t.Parallel()
	s := window(t, "bash", "-c", "while :; do conch elect $OFFICE -- sleep 600 || exit; done")
	s.Await("msg=child-start")
	s.Type(ctrlC)
	if code := s.Wait(); code != 130 {
		t.Errorf("code %d; %s", code, s.Stdout())
	}
	s.free()
}

// The Ctrl-C is passed on when all else is done: the status file is there, and says what it said before.
func TestAnInterruptedWrapperHasWrittenItsStatusFile(t *testing.T) {
	t.Parallel()
	s := inShell(t, bash...)
	s.Type("conch elect $OFFICE --status-file state -- sleep 600" + enter)
	s.Await("msg=child-start")
	s.Type(ctrlC)
	s.Await(prompt)
	if shown := s.do("cat state"); !strings.Contains(shown, `"outcome":"child-signal","code":130`) {
		t.Errorf("the status file says %q", shown)
	}
}

// What only looks like a Ctrl-C ends no loop: a child that exits with 130 has dealt with it.
func TestAChildThatDealsWithCtrlCEndsNoLoop(t *testing.T) {
	t.Parallel()
	s := inShell(t, bash...)
	s.Type(`for i in 1 2; do conch elect $OFFICE -- sh -c 'trap "exit 130" INT; echo "[u""p]"; while :; do sleep 0.01; done'; done` + enter)
	for range 2 {
		s.Await("[up]")
		s.Type(ctrlC)
	}
	s.Await(prompt)
	if code := s.code(); code != "130" {
		t.Errorf("code %s; %s", code, s.Stdout())
	}
}

// Where the child has no terminal from the wrapper its SIGINT came from elsewhere, and the wrapper exits with the number.
func TestASIGINTFromElsewhereIsANumber(t *testing.T) {
	t.Parallel()
	const child = "kill -INT $$"
	t.Run("no terminal", func(t *testing.T) {
		t.Parallel()
		cmd := exec.Command(run.Build(t).Conch, "elect", etcdtest.Office(t), "--endpoints", etcdtest.Shared(t).Endpoint(), "--", "sh", "-c", child)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
			t.Errorf("it ended with %v, want an exit with 130", err)
		}
	})
	t.Run("no standard file is the terminal", func(t *testing.T) {
		t.Parallel()
		s := inShell(t, bash...)
		s.Type(`for i in 1 2; do conch elect $OFFICE -- sh -c '` + child + `' </dev/null >log 2>&1; echo "ro""und $i: $?."; done` + enter)
		s.Await("round 1: 130.")
		s.Await("round 2: 130.")
		s.Await(prompt)
	})
}
