package dev

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/embed"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// TestMain lets this test binary be the shared member.
func TestMain(m *testing.M) {
	if code, ok := embed.Role(os.Args); ok {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// output is a buffer that may be read while it is written to.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// shell is a user's shell with a home of its own.
type shell struct {
	t       *testing.T
	home    string
	signals chan os.Signal
	at      string // the default endpoint: one at which nothing answers
	daemon  func(context.Context, cli.Env) int

	// What conch, which this test stands in for, was given.
	ran  bool
	args []string
	env  cli.Env
}

func newShell(t *testing.T) *shell {
	t.Helper()
	home, err := os.MkdirTemp("", "dev")
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, home: home, signals: make(chan os.Signal, 1), at: etcdtest.Refused(t)}
	t.Cleanup(func() {
		s.awaitEnd()
		os.RemoveAll(home)
	})
	return s
}

// awaitEnd waits until the member, which has next to no grace, has ended.
func (s *shell) awaitEnd() {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) { // the member is nobody's child
		if _, err := os.Stat(filepath.Join(s.home, "conch-dev", "member.json")); err != nil {
			return
		}
	}
	s.t.Error("the member did not end")
}

func (s *shell) run(args []string, environ ...string) (code int, stdout, stderr *output) {
	s.t.Helper()
	stdout, stderr = &output{}, &output{}
	return s.runTo(stdout, stderr, args, environ...), stdout, stderr
}

func (s *shell) runTo(stdout, stderr *output, args []string, environ ...string) int {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.ran = false
	d := Dev{Self: self, Default: s.at, Grace: 300 * time.Millisecond, Daemon: s.daemon, Run: func(_ context.Context, env cli.Env) int {
		s.ran, s.args, s.env = true, env.Args, env
		return 7
	}}
	return d.Main(s.t.Context(), cli.Env{
		Args: args, Environ: append([]string{"XDG_STATE_HOME=" + s.home}, environ...),
		Stdout: stdout, Stderr: stderr,
		Signals: func() (<-chan os.Signal, func()) { return s.signals, func() {} },
	})
}

// started reports whether a member was ever started.
func (s *shell) started() bool {
	_, err := os.Stat(filepath.Join(s.home, "conch-dev"))
	return err == nil
}

func TestCommandsThatRunAsTheyAre(t *testing.T) {
	t.Parallel()
	live := etcdtest.One(t).Endpoint()
	dead := etcdtest.Refused(t)
	for name, tt := range map[string]struct{ args, environ []string }{
		"a flag names a live endpoint":    {[]string{"elect", "x", "--endpoints", live, "--", "true"}, nil},
		"a variable names a live one":     {[]string{"elect", "x", "--", "true"}, []string{"CONCH_ENDPOINTS=" + live}},
		"one of two endpoints lives":      {[]string{"elect", "x", "--", "true"}, []string{"CONCH_ENDPOINTS=" + dead + "," + live}},
		"etcdctl's variable does":         {[]string{"elect", "x", "--", "true"}, []string{"ETCDCTL_ENDPOINTS=" + live}},
		"version":                         {[]string{"version"}, nil},
		"help":                            {[]string{"--dial-timeout", "1s", "help"}, nil},
		"a command's help":                {[]string{"elect", "-h"}, nil},
		"an explanation":                  {[]string{"cron", "explain", "@daily"}, nil},
		"completion by the shell":         {[]string{"__complete", "el"}, nil},
		"a flag names a dead one":         {[]string{"elect", "x", "--endpoints", dead, "--", "true"}, nil},
		"the flag in one word":            {[]string{"elect", "--endpoints=" + dead, "x", "--", "true"}, nil},
		"a variable names a dead one":     {[]string{"elect", "x", "--", "true"}, []string{"CONCH_ENDPOINTS=" + dead}},
		"etcdctl's variable does, too":    {[]string{"elect", "x", "--", "true"}, []string{"ETCDCTL_ENDPOINTS=" + dead}},
		"an endpoint with TLS":            {[]string{"elect", "x", "--endpoints=https://" + dead, "--", "true"}, nil},
		"a certificate not checked":       {[]string{"elect", "x", "--insecure-skip-verify", "--", "true"}, nil},
		"a certificate":                   {[]string{"elect", "x", "--cacert", "ca.pem", "--", "true"}, nil},
		"a user, from the environment":    {[]string{"elect", "x", "--", "true"}, []string{"CONCH_USER=root"}},
		"a bad value, conch says what of": {[]string{"elect", "x", "--endpoints=https://user@" + dead, "--", "true"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			code, stdout, stderr := s.run(tt.args, tt.environ...)
			if code != 7 || !s.ran || !slices.Equal(s.args, tt.args) {
				t.Errorf("code %d, conch ran %v with %q", code, s.ran, s.args)
			}
			if s.started() {
				t.Error("a member was started")
			}
			if stdout.String()+stderr.String() != "" {
				t.Errorf("said %q %q", stdout, stderr)
			}
		})
	}
}

func TestCommandsThatGetAMember(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args, environ []string
		quiet         bool
	}{
		"no endpoint is named":        {[]string{"elect", "x", "--", "true"}, nil, false},
		"but one to the command":      {[]string{"elect", "x", "--", "echo", "--endpoints", "a:1"}, nil, false},
		"a variable is empty":         {[]string{"elect", "x", "--who"}, []string{"CONCH_ENDPOINTS=", "ETCDCTL_ENDPOINTS="}, false},
		"and nothing is to be said":   {[]string{"elect", "x", "--quiet", "--", "true"}, nil, true},
		"by variable, nothing either": {[]string{"elect", "x", "--", "true"}, []string{"CONCH_QUIET=1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			code, stdout, stderr := s.run(tt.args, tt.environ...)
			if code != 7 || !s.ran || !slices.Equal(s.args, tt.args) {
				t.Fatalf("code %d, conch got %q, %s", code, s.args, stderr)
			}
			endpoint, _ := s.env.Lookup("CONCH_ENDPOINTS")
			if !strings.HasPrefix(endpoint, "unix:///") {
				t.Fatalf("CONCH_ENDPOINTS=%s", endpoint)
			}
			line := "conch-dev: nothing answers at " + s.at + ": started an etcd member at " + endpoint + "\n"
			if tt.quiet {
				line = ""
			}
			if stdout.String() != "" || stderr.String() != line {
				t.Errorf("said %q %q, want %q", stdout, stderr, line)
			}
		})
	}
}

func TestSecondShellUsesTheSameMember(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	args := []string{"elect", "x", "--", "true"}
	s.run(args)
	first, _ := s.env.Lookup("CONCH_ENDPOINTS")
	s.run(args)
	if second, _ := s.env.Lookup("CONCH_ENDPOINTS"); second != first {
		t.Errorf("at %q, then at %q", first, second)
	}
}

func TestADefaultThatAnswersIsUsed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.at = etcdtest.One(t).Endpoint()
	code, stdout, stderr := s.run([]string{"elect", "x", "--", "true"})
	if code != 7 || s.started() || stdout.String()+stderr.String() != "" {
		t.Errorf("code %d, said %q %q", code, stdout, stderr)
	}
}

func TestOnlyNewsIsAnnounced(t *testing.T) {
	t.Parallel()
	for started, says := range map[bool]string{true: `conch-dev: nothing answers at a\nb: started an etcd member at E` + "\n", false: ""} {
		var stderr output
		line{}.announce(cli.Env{Stderr: &stderr}, "a\nb", "E", started)
		if stderr.String() != says {
			t.Errorf("started %v: said %q", started, &stderr)
		}
	}
}

func TestHelpNamesWhatConchDoesNotHave(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"-h", "--help", "help"} {
		s := newShell(t)
		code, stdout, stderr := s.run([]string{word})
		if code != 7 || !slices.Equal(s.args, []string{word}) || s.started() || stderr.String() != "" {
			t.Errorf("%s: code %d, conch got %q, %s", word, code, s.args, stderr)
		}
		for _, want := range []string{"conch-dev is conch on an etcd member of its own", "  serve  ", "help of conch"} {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%s: %q does not say %q", word, stdout, want)
			}
		}
	}
	for _, args := range [][]string{{"serve", "-h"}, {"serve", "--help"}, {"serve", "x", "--help"}, {"help", "serve"}} {
		s := newShell(t)
		code, stdout, stderr := s.run(args)
		if code != 0 || s.ran || s.started() || stderr.String() != "" || !strings.Contains(stdout.String(), "Usage: conch-dev serve") {
			t.Errorf("%q: code %d, said %q %q", args, code, stdout, stderr)
		}
	}
	s := newShell(t)
	if code, stdout, _ := s.run([]string{"help", "elect"}); code != 7 || stdout.String() != "" {
		t.Errorf("help of a command of conch: code %d, %q", code, stdout)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args  []string
		hints bool
	}{
		"serve":             {[]string{"serve"}, false},
		"without arguments": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			done := make(chan struct{})
			var stdout, stderr output
			go func() {
				defer close(done)
				code := s.runTo(&stdout, &stderr, tt.args)
				if code != 0 || stderr.String() != "" {
					t.Errorf("code %d, %s", code, &stderr)
				}
				if !strings.HasPrefix(stdout.String(), "etcd member at unix:///") {
					t.Errorf("said %q", &stdout)
				}
				if got := strings.Contains(stdout.String(), "conch-dev elect hello"); got != tt.hints {
					t.Errorf("hints: %v", got)
				}
			}()
			// Another shell finds it, whether it comes first or not.
			other := &shell{t: t, home: s.home, signals: make(chan os.Signal, 1), at: etcdtest.Refused(t)}
			other.run([]string{"elect", "x", "--", "true"})
			if endpoint, _ := other.env.Lookup("CONCH_ENDPOINTS"); !strings.HasPrefix(endpoint, "unix:///") {
				t.Errorf("CONCH_ENDPOINTS=%s", endpoint)
			}
			for stdout.String() == "" {
				time.Sleep(time.Millisecond) // a writer that is only written to
			}
			s.signals <- syscall.SIGWINCH // means nothing to it
			s.signals <- syscall.SIGTERM
			<-done
		})
	}
}

// It has results to write: the member is there until it has ended.
func TestADaemonRunsWhileTheMemberIsServed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	began, finish := make(chan cli.Env, 1), make(chan struct{})
	s.daemon = func(_ context.Context, env cli.Env) int {
		signals, stop := env.Signals()
		defer stop()
		began <- env
		for _, want := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
			if got := <-signals; got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		}
		if !embed.Answers(t.Context(), env.Args[1:]) {
			t.Error("the member has gone")
		}
		close(finish)
		return 0
	}
	done := make(chan int)
	var stdout, stderr output
	go func() { done <- s.runTo(&stdout, &stderr, []string{"serve"}) }()
	env := <-began
	if env.Name != "conchd" || env.Args[0] != "--endpoints" || !strings.HasPrefix(env.Args[1], "unix:///") {
		t.Errorf("%s %q", env.Name, env.Args)
	}
	s.signals <- syscall.SIGTERM
	s.signals <- syscall.SIGINT
	<-finish
	if code := <-done; code != 0 {
		t.Errorf("code %d, %s", code, &stderr)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	dead := etcdtest.Refused(t)
	for name, tt := range map[string]struct {
		args    []string
		environ []string
		code    int
	}{
		"serve with arguments":     {[]string{"serve", "x"}, nil, 64},
		"no directory to serve in": {[]string{"serve"}, []string{"XDG_STATE_HOME=/dev/null"}, 69},
		"no directory for state":   {[]string{"elect", "x", "--", "true"}, []string{"XDG_STATE_HOME=/dev/null"}, 69},
		"no home":                  {[]string{"elect", "x", "--", "true"}, []string{"XDG_STATE_HOME="}, 69},
		"no home to serve in":      {nil, []string{"XDG_STATE_HOME="}, 69},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			var stderr output
			d := Dev{Self: "/nonexistent", Default: dead, Run: func(context.Context, cli.Env) int { t.Error("conch ran"); return 0 }}
			code := d.Main(t.Context(), cli.Env{Args: tt.args, Environ: tt.environ, Stderr: &stderr, Stdout: &stderr,
				Signals: func() (<-chan os.Signal, func()) { return s.signals, func() {} }})
			if code != tt.code || strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("code %d, want %d, said %q", code, tt.code, &stderr)
			}
		})
	}
}
