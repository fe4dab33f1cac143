package cli

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/internal/hold"
)

// parsed is what a command with the flags of a connection makes of args and environ.
func parsed(t *testing.T, environ, args []string) (c Connection, ttl time.Duration, err error) {
	t.Helper()
	cmd := &cobra.Command{
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.Bind(cmd.Flags(), Env{Environ: environ}) },
	}
	c.AddFlags(cmd.Flags())
	AddTTL(cmd.Flags(), &ttl)
	cmd.SetFlagErrorFunc(FlagError)
	cmd.SetOut(io.Discard)
	cmd.SetArgs(args)
	return c, ttl, cmd.Execute()
}

func TestAFlagOutweighsAVariableAndThatADefault(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, environ, args string
		endpoints           string
		dial, ttl           time.Duration
		quiet               bool
	}{
		{"nothing given", "", "", "localhost:2379", 5 * time.Second, 10 * time.Second, false},
		{"variables", "CONCH_ENDPOINTS=a:1,b:2 CONCH_DIAL_TIMEOUT=1s CONCH_TTL=20s CONCH_QUIET=true", "", "a:1,b:2", time.Second, 20 * time.Second, true},
		{"etcdctl's variables", "ETCDCTL_ENDPOINTS=http://e:1 ETCDCTL_DIAL_TIMEOUT=2s", "", "http://e:1", 2 * time.Second, 10 * time.Second, false},
		{"ours before etcdctl's", "ETCDCTL_ENDPOINTS=e:1 CONCH_ENDPOINTS=c:1", "", "c:1", 5 * time.Second, 10 * time.Second, false},
		{"flags before all", "CONCH_ENDPOINTS=c:1 ETCDCTL_ENDPOINTS=e:1 CONCH_TTL=20s CONCH_QUIET=1", "--endpoints f:1 --ttl 5s --quiet=false", "f:1", 5 * time.Second, 5 * time.Second, false},
		{"set and empty is not set", "CONCH_ENDPOINTS= ETCDCTL_ENDPOINTS=e:1 CONCH_TTL=", "", "e:1", 5 * time.Second, 10 * time.Second, false},
		{"a bad variable that a flag outweighs", "CONCH_TTL=never", "--ttl 5s", "localhost:2379", 5 * time.Second, 5 * time.Second, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, ttl, err := parsed(t, strings.Fields(tt.environ), strings.Fields(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(c.Endpoints, ","); got != tt.endpoints || c.DialTimeout != tt.dial || ttl != tt.ttl || c.Quiet != tt.quiet {
				t.Errorf("got %s %v %v %v", got, c.DialTimeout, ttl, c.Quiet)
			}
		})
	}
}

func TestBadValuesNameThemselvesAndWhatIsAccepted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		environ, args string
		want          []string
	}{
		{"CONCH_TTL=1500ms", "", []string{"CONCH_TTL", "1500ms", "whole seconds"}},
		{"CONCH_QUIET=maybe", "", []string{"CONCH_QUIET", "maybe", "true or false"}},
		{"ETCDCTL_ENDPOINTS=nowhere", "", []string{"ETCDCTL_ENDPOINTS", "nowhere", "host:port"}},
		{"", "--dial-timeout 0", []string{"--dial-timeout", `"0"`, "above 0"}},
		{"", "--ttl", []string{"--ttl", "missing", "whole seconds"}},
		{"", "--quiet=x", []string{"--quiet", `"x"`, "true or false"}},
		{"", "--endpoint a:1", []string{"--endpoint", "did you mean --endpoints?"}},
		{"", "--dial a:1", []string{"--dial", "did you mean --dial-timeout?"}},
		{"", "--nothing-like-it", []string{"unknown flag", "--nothing-like-it"}},
		{"", "-n", []string{"unknown flag", "-n", "after --"}},
		{"", "--=x", []string{"bad flag", "--=x"}},
		{"", "--ttl=\x1b[31m", []string{`\x1b[31m`}},
	}
	for _, tt := range tests {
		_, _, err := parsed(t, strings.Fields(tt.environ), strings.Fields(tt.args))
		if !errors.Is(err, hold.ErrUsage) {
			t.Errorf("%s %s: got %v, want a usage error", tt.environ, tt.args, err)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %q does not say %q", tt.environ, tt.args, err, want)
			}
		}
		if strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%s %s: %q is not one safe line", tt.environ, tt.args, err)
		}
	}
	if _, _, err := parsed(t, []string{"CONCH_ENDPOINTS=http://root:geheim@a:1"}, nil); err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("got %v, want an error without the password", err)
	}
}

func TestValuesShowThemselvesInHelp(t *testing.T) {
	t.Parallel()
	d := 90 * time.Minute
	var none time.Duration
	var count int
	word := ""
	pick := Choice(&word, "auto", "off")
	many := Number(&count, 99)
	for got, want := range map[string]string{
		Duration(&d, "", Positive).String():       "1h30m",
		Duration(&none, "", NotNegative).String(): "0", // help leaves it out
		duration{}.String():                       "",
		many.String():                             "0",
		number[int]{}.String():                    "",
		many.Type():                               "number",
		endpointList{&[]string{"a:1"}}.String():   "a:1",
		endpointList{}.String():                   "",
		pick.String():                             "auto",
		pick.Type():                               "auto|off",
		choice{}.String():                         "",
		short(time.Hour):                          "1h",
		short(5 * time.Second):                    "5s",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := pick.Set("on"); err == nil || word != "auto" {
		t.Errorf("a word that is none of the choices was taken: %v, %q", err, word)
	}
	for text, ok := range map[string]bool{"99": true, "1": true, "0": false, "-1": false, "100": false, "1.5": false, "1e1": false, "": false} {
		if err := many.Set(text); (err == nil) != ok {
			t.Errorf("a number %q: %v", text, err)
		}
	}
	for text, ok := range map[string]bool{"98": true, "0": true, "-1": false, "99": false} {
		if err := Index(&count, 98).Set(text); (err == nil) != ok {
			t.Errorf("an index %q: %v", text, err)
		}
	}
	if err := pick.Set("off"); err != nil || word != "off" {
		t.Errorf("got %v, %q, want off", err, word)
	}
}
