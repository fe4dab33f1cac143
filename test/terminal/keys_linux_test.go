package terminal

import (
	"strings"
	"testing"
)

func TestCtrlCReachesTheChild(t *testing.T) {
	t.Parallel()
	s := inShell(t, sh...)
	s.Type(`conch elect $OFFICE -- sh -c 'trap "echo cau""ght; exit 7" INT; echo "[u""p]"; while :; do sleep 0.01; done'` + enter)
	s.Await("[up]")
	s.Type(ctrlC)
	s.Await("caught")
	s.Await(prompt)
	if code := s.code(); code != "7" {
		t.Errorf("code %s; %s", code, s.Stdout())
	}
	s.free()
}

// Red when the guard leaves a stopped child alone.
func TestCtrlZIsUndoneWithOneWarning(t *testing.T) {
	t.Parallel()
	s := inShell(t, bash...)
	// The child says that it goes on: it is stopped in its read, and reads on.
	s.Type(`conch elect $OFFICE -- sh -c 'echo "[u""p]"; read line; echo "r""ead $line"; exit 5'` + enter)
	s.Await("[up]")
	s.Type(ctrlZ)
	s.Await("child was stopped by job control")
	s.Type("on it goes" + enter)
	s.Await("read on it goes")
	s.Await(prompt)
	if code := s.code(); code != "5" {
		t.Errorf("code %s; %s", code, s.Stdout())
	}
	if n := strings.Count(s.Stdout(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings, want 1: %s", n, s.Stdout())
	}
	s.free()
}

// A shell as the child has job control as it would have without the wrapper.
func TestAShellBelowTheWrapperHasJobControl(t *testing.T) {
	t.Parallel()
	for name, inner := range map[string]string{"bash": "bash --norc --noprofile -i", "sh": "sh -i"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := inShell(t, sh...)
			modes, group := s.Modes(), s.Group()
			s.do("conch elect $OFFICE -- " + inner)

			// A job is stopped, goes on in the background, comes back, and is interrupted; the shell lives on.
			s.Type("sh -c 'echo \"[u\"\"p]\"; exec sleep 600'" + enter)
			s.Await("[up]")
			job := s.Group()
			s.Type(ctrlZ)
			s.Await("Stopped")
			s.Await(prompt)
			s.do("bg")
			if jobs := s.do("jobs"); !strings.Contains(jobs, "Running") {
				t.Errorf("the job does not run: %q", jobs)
			}
			s.Type("fg" + enter)
			s.AwaitGroup(job)
			s.Type(ctrlC)
			s.Await(prompt)
			if code := s.code(); code != "130" {
				t.Errorf("code %s of an interrupted job; %s", code, s.Stdout())
			}
			s.do("exit 3")
			if code := s.code(); code != "3" {
				t.Errorf("code %s of the shell; %s", code, s.Stdout())
			}
			if s.Modes() != modes || s.Group() != group {
				t.Error("the terminal is not as it was")
			}
			s.free()
		})
	}
}
