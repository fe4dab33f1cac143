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
	s := &shell{t: t, home: home, signals: make(chan os.Signal, 1)}
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
	d := Dev{Self: self, Grace: 300 * time.Millisecond, Run: func(_ context.Context, env cli.Env) int {
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
		"version":                         {[]string{"version"}, []string{"CONCH_ENDPOINTS=" + dead}},
		"help":                            {[]string{"--endpoints", dead, "help"}, nil},
		"a command's help":                {[]string{"elect", "-h"}, []string{"CONCH_ENDPOINTS=" + dead}},
		"completion by the shell":         {[]string{"__complete", "el"}, []string{"CONCH_ENDPOINTS=" + dead}},
		"an endpoint with TLS":            {[]string{"elect", "x", "--endpoints=https://" + dead, "--", "true"}, nil},
		"a certificate":                   {[]string{"elect", "x", "--cacert", "ca.pem", "--", "true"}, []string{"CONCH_ENDPOINTS=" + dead}},
		"a user, from the environment":    {[]string{"elect", "x", "--", "true"}, []string{"CONCH_USER=root", "CONCH_ENDPOINTS=" + dead}},
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
	dead := etcdtest.Refused(t)
	for name, tt := range map[string]struct {
		args, environ []string
		want          []string // E stands for the member's endpoint
		quiet         bool
	}{
		"a flag names a dead endpoint": {
			args: []string{"elect", "x", "--endpoints", dead, "--", "echo", "--endpoints", dead},
			want: []string{"elect", "x", "--endpoints", "E", "--", "echo", "--endpoints", dead},
		},
		"the flag in one word": {
			args: []string{"elect", "--endpoints=" + dead, "x", "--", "true"},
			want: []string{"elect", "--endpoints=E", "x", "--", "true"},
		},
		"the last flag counts": {
			args: []string{"elect", "x", "--endpoints=https://127.0.0.1:1", "--endpoints", dead, "--", "true"},
			want: []string{"elect", "x", "--endpoints=E", "--endpoints", "E", "--", "true"},
		},
		"a variable does": {
			args: []string{"elect", "x", "--", "true"}, environ: []string{"CONCH_ENDPOINTS=" + dead},
			want: []string{"elect", "x", "--", "true"},
		},
		"and nothing is to be said": {
			args: []string{"elect", "x", "--quiet", "--", "true"}, environ: []string{"CONCH_ENDPOINTS=" + dead},
			want: []string{"elect", "x", "--quiet", "--", "true"}, quiet: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			code, stdout, stderr := s.run(tt.args, tt.environ...)
			if code != 7 || !s.ran {
				t.Fatalf("code %d, %s", code, stderr)
			}
			endpoint, _ := s.env.Lookup("CONCH_ENDPOINTS")
			if !strings.HasPrefix(endpoint, "unix:///") {
				t.Fatalf("CONCH_ENDPOINTS=%s", endpoint)
			}
			for i := range s.args {
				s.args[i] = strings.ReplaceAll(s.args[i], endpoint, "E")
			}
			if !slices.Equal(s.args, tt.want) {
				t.Errorf("conch got %q, want %q", s.args, tt.want)
			}
			line := "conch-dev: nothing answers at " + dead + ": started an etcd member at " + endpoint + "\n"
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
	s, dead := newShell(t), etcdtest.Refused(t)
	args := []string{"elect", "x", "--endpoints", dead, "--", "true"}
	s.run(args)
	_, _, stderr := s.run(args)
	if !strings.Contains(stderr.String(), "using the etcd member") && !strings.Contains(stderr.String(), "started") {
		t.Errorf("said %q", stderr)
	}
}

func TestOnlyNewsIsAnnounced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want    string
		started bool
		says    string
	}{
		{fallback, true, "conch-dev: nothing answers at localhost:2379: started an etcd member at E\n"},
		{fallback, false, ""},
		{"prod:2379", false, "conch-dev: nothing answers at prod:2379: using the etcd member at E\n"},
		{"a\nb", true, `conch-dev: nothing answers at a\nb: started an etcd member at E` + "\n"},
	} {
		var stderr output
		line{}.announce(cli.Env{Stderr: &stderr}, tt.want, "E", tt.started)
		if stderr.String() != tt.says {
			t.Errorf("%+v: said %q", tt, &stderr)
		}
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
			other := &shell{t: t, home: s.home, signals: make(chan os.Signal, 1)}
			other.run([]string{"elect", "x", "--endpoints", etcdtest.Refused(t), "--", "true"})
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
		"no directory for state":   {[]string{"elect", "x", "--", "true"}, []string{"XDG_STATE_HOME=/dev/null", "CONCH_ENDPOINTS=" + dead}, 69},
		"no home":                  {[]string{"elect", "x", "--", "true"}, []string{"XDG_STATE_HOME=", "CONCH_ENDPOINTS=" + dead}, 69},
		"no home to serve in":      {nil, []string{"XDG_STATE_HOME="}, 69},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			var stderr output
			d := Dev{Self: "/nonexistent", Run: func(context.Context, cli.Env) int { t.Error("conch ran"); return 0 }}
			code := d.Main(t.Context(), cli.Env{Args: tt.args, Environ: tt.environ, Stderr: &stderr, Stdout: &stderr,
				Signals: func() (<-chan os.Signal, func()) { return s.signals, func() {} }})
			if code != tt.code || strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("code %d, want %d, said %q", code, tt.code, &stderr)
			}
		})
	}
}
