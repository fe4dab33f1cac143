package terminal

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

func TestMain(m *testing.M) {
	if code, ok := etcdtest.Role(); ok {
		os.Exit(code)
	}
	run.Unignore()
	code := m.Run()
	etcdtest.CloseShared()
	run.Cleanup()
	os.Exit(code)
}

// Keys.
const (
	enter = "\r"
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlZ = "\x1a"
)

// prompt is what the shells of these tests print when they wait for a line. No line that is typed holds it.
const prompt = "<ready>"

// shell is a window with a shell in it, and an office to hold from there: $OFFICE, and conch in the PATH.
type shell struct {
	*run.Terminal
	t      *testing.T
	office string
}

// inShell starts an interactive shell and waits for its prompt.
func inShell(t *testing.T, argv ...string) *shell {
	t.Helper()
	s := window(t, argv...)
	s.Await(prompt)
	return s
}

// window starts any program on a terminal.
func window(t *testing.T, argv ...string) *shell {
	t.Helper()
	office := etcdtest.Office(t)
	w := run.OnTerminal(t, run.Options{Path: program(t, argv[0]), Args: argv[1:], Dir: t.TempDir(), Env: []string{
		"CONCH_ENDPOINTS=" + etcdtest.Shared(t).Endpoint(), "CONCH_TTL=60s", // so that a busy machine loses no hold
		"PATH=" + run.Build(t).Dir + ":" + os.Getenv("PATH"),
		"OFFICE=" + office, "PS1=" + prompt, "HISTFILE=", "TERM=xterm", "ENV=", "LC_ALL=C.UTF-8",
	}})
	return &shell{w, t, office}
}

// program finds one of several names of a program, or says what to install.
func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not there: install it", strings.Join(names, " or "))
	return ""
}

var (
	bash = []string{"bash", "--norc", "--noprofile", "-i"}
	sh   = []string{"/bin/sh", "-i"}
)

// do types a line and waits until the shell is back; it returns what the terminal showed, the line itself included.
func (s *shell) do(line string) string {
	s.t.Helper()
	s.Type(line + enter)
	return s.Await(prompt)
}

// code asks the shell for the exit code of the last command.
func (s *shell) code() string {
	s.t.Helper()
	s.Type("echo code=$?." + enter)
	s.Await("code=$?.") // as it was typed
	s.Await("code=")
	code := s.Await(".")
	s.Await(prompt)
	return code
}

// free asserts that nothing is left of any hold: a newcomer has the office at once, and settles nothing.
func (s *shell) free() {
	s.t.Helper()
	p := run.Start(s.t, []string{"CONCH_ENDPOINTS=" + etcdtest.Shared(s.t).Endpoint()}, "elect", s.office, "--nonblock", "--", "true")
	if code := p.Wait(); code != 0 || strings.Contains(p.Stderr(), "settling") {
		s.t.Errorf("the office is not free: %d; %s", code, p.Stderr())
	}
}
