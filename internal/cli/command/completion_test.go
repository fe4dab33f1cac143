package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// completed asks as a shell's script does, and gives the words and the directive.
func (s *shell) completed(t *testing.T, words ...string) (offered []string, directive string) {
	t.Helper()
	s.stdout.buf.Reset()
	if code := s.conch(append([]string{"__complete"}, words...)...); code != 0 {
		t.Errorf("%q: code %d", words, code)
	}
	for line := range strings.Lines(s.stdout.String()) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		offered = append(offered, word)
	}
	return offered[:len(offered)-1], offered[len(offered)-1]
}

const (
	anyFile = ":0"
	noFile  = ":4"
)

func TestOfficesAreCompletedFromEtcd(t *testing.T) {
	t.Parallel()
	server := etcdtest.One(t)
	client := server.Client(t)
	put(t, client, "reports", "x")
	put(t, client, "reports", "y")
	put(t, client, "relay", "x")
	put(t, client, "other", "x")
	for _, key := range []string{settle("retired").Last, hold.AreaRange(hold.AreaElect) + "re\x1b/1", hold.AreaRange(hold.AreaElect) + "re"} {
		if _, err := client.Put(t.Context(), key, "{}"); err != nil {
			t.Fatal(err)
		}
	}
	s := newShell("CONCH_ENDPOINTS=" + server.Endpoint())
	for begun, want := range map[string][]string{
		"":    {"other", "relay", "reports", "retired"},
		"re":  {"relay", "reports", "retired"},
		"rel": {"relay"},
		"no":  nil,
		"a/b": nil,
	} {
		// A machine that is busy may take longer than a user waits for.
		var got []string
		for range 20 {
			var directive string
			if got, directive = s.completed(t, "elect", begun); directive != noFile {
				t.Errorf("%q: directive %s", begun, directive)
			}
			if slices.Equal(got, want) {
				break
			}
		}
		equal(t, got, want)
	}
	if got, directive := s.completed(t, "elect", "reports", "--", ""); len(got) != 0 || directive != anyFile {
		t.Errorf("a command: %q %s", got, directive)
	}
	got, _ := s.completed(t, "elect", "--endpoints", server.Endpoint(), "--wa")
	equal(t, got, []string{"--wait", "--watch"})
}

func TestNothingIsCompletedNorSaidWhereEtcdIsAway(t *testing.T) {
	t.Parallel()
	for name, environ := range map[string]string{
		"refused": "CONCH_ENDPOINTS=" + etcdtest.Refused(t),
		"silent":  "CONCH_ENDPOINTS=" + etcdtest.Silent(t),
		"bad":     "CONCH_ENDPOINTS=nowhere",
	} {
		s := newShell(environ)
		began := time.Now()
		if got, directive := s.completed(t, "elect", ""); len(got) != 0 || directive != noFile {
			t.Errorf("%s: offered %q %s", name, got, directive)
		}
		// What a shell's script throws away, and no more.
		if said := s.stderr.String(); said != "Completion ended with directive: ShellCompDirectiveNoFileComp\n" {
			t.Errorf("%s: said %q", name, said)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func TestCommandsTopicsAndWordsAreCompleted(t *testing.T) {
	t.Parallel()
	s := newShell()
	for line, want := range map[string][]string{
		"ve":                      {"version"},
		"help e":                  {"elect", "environment", "exit-codes"},
		"help elect ":             nil,
		"completion ":             {"bash", "zsh", "fish"},
		"elect x --settle ":       {"auto", "off"},
		"version --output ":       {"table", "json"},
		"elect x --who --output ": {"table", "json"},
	} {
		got, directive := s.completed(t, strings.Split(line, " ")...)
		equal(t, got, want)
		if directive != noFile {
			t.Errorf("%q: directive %s", line, directive)
		}
	}
	all, _ := s.completed(t, "")
	if !slices.Contains(all, "elect") || slices.ContainsFunc(all, func(word string) bool { return strings.HasPrefix(word, "_") }) {
		t.Errorf("commands: %q", all)
	}
}

func TestCompletionIsPrintedForEachShell(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{"bash": "complete -o default", "zsh": "#compdef conch", "fish": "complete -c conch"} {
		s := newShell()
		if code := s.conch("completion", shell); code != 0 || s.stderr.String() != "" {
			t.Errorf("code %d, stderr %q", code, s.stderr.String())
		}
		contains(t, s.stdout.String(), want, fmt.Sprintf("%s completion", shell), "conch")
	}
}

func TestCompletionIsForTheProgramThatPrintsIt(t *testing.T) {
	t.Parallel()
	var out, stderr text
	code := Main(t.Context(), cli.Env{Name: "/usr/bin/conch-dev", Args: []string{"completion", "bash"}, Stdout: &out, Stderr: &stderr})
	if code != 0 || !strings.Contains(out.String(), "__start_conch-dev conch-dev") {
		t.Errorf("code %d, %s", code, stderr.String())
	}
}
