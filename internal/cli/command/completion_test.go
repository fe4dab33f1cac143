package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordtest"
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

// offers waits for what is offered: a machine that is busy may take longer than a user waits.
func (s *shell) offers(t *testing.T, want []string, words ...string) {
	t.Helper()
	var got []string
	for range 20 {
		var directive string
		if got, directive = s.completed(t, words...); directive != noFile {
			t.Errorf("%q: directive %s", words, directive)
		}
		if slices.Equal(got, want) {
			return
		}
	}
	t.Errorf("%q: offered %q, want %q", words, got, want)
}

func TestNamesAreCompletedFromEtcd(t *testing.T) {
	t.Parallel()
	server := etcdtest.One(t)
	client := server.Client(t)
	elect, sema := hold.AreaRange(hold.AreaElect), hold.AreaRange(hold.AreaSema)
	for _, key := range []string{
		elect + "reports/1", elect + "reports/2", elect + "relay/1", elect + "other/1", settle("retired").Last,
		elect + "re\x1b/1", elect + "re", elect + "re/x",
		sema + "uploads/2/1", sema + "uploads/2/2", sema + "up/3/1", sema + "reindex/1/1", sema + "up.none/0/1", sema + "up.none/2", sema + "up/2/1/1",
		hold.AreaRange(hold.AreaLast) + "sema/upgrade/3/0", hold.SlotKey("up.slot", 2, 0).String(),
	} {
		if _, err := client.Put(t.Context(), key, "{}"); err != nil {
			t.Fatal(err)
		}
	}
	s := newShell("CONCH_ENDPOINTS=" + server.Endpoint())
	for _, row := range []struct {
		kind, begun string
		want        []string
	}{
		{"elect", "", []string{"other", "relay", "reports", "retired"}},
		{"elect", "re", []string{"relay", "reports", "retired"}},
		{"elect", "rel", []string{"relay"}},
		{"elect", "no", nil},
		{"elect", "a/b", nil},
		{"sema", "", []string{"reindex", "up", "upgrade", "uploads"}},
		{"sema", "up", []string{"up", "upgrade", "uploads"}},
		{"sema", "upl", []string{"uploads"}},
		{"sema", "reports", nil},
		{"sema", "a/b", nil},
	} {
		s.offers(t, row.want, row.kind, row.begun)
	}
	for _, words := range [][]string{{"elect", "reports", "--", ""}, {"sema", "uploads", "--max", "2", "--", ""}} {
		if got, directive := s.completed(t, words...); len(got) != 0 || directive != anyFile {
			t.Errorf("a command: %q %s", got, directive)
		}
	}
	got, _ := s.completed(t, "elect", "--endpoints", server.Endpoint(), "--wa")
	equal(t, got, []string{"--wait", "--watch"})
	got, _ = s.completed(t, "sema", "x", "--ma")
	equal(t, got, []string{"--max"})
	s.offers(t, []string{"2"}, "sema", "uploads", "--max", "")
	s.offers(t, []string{"3"}, "sema", "upgrade", "--max", "")
	s.offers(t, nil, "sema", "uploads", "--max", "3")
	s.offers(t, nil, "sema", "up.none", "--max", "")
	s.offers(t, nil, "sema", "a/b", "--max", "")
	s.offers(t, nil, "sema", "--max", "")
	s.offers(t, []string{"relay", "reports", "retired"}, "evict", "elect", "re")
	s.offers(t, []string{"uploads"}, "evict", "sema", "upl")
	s.offers(t, nil, "evict", "sema", "uploads", "up")
	s.offers(t, nil, "evict", "host", "re")
}

// TestNoNameHidesOthersFromCompletion: of one there can be more keys than are read at once.
func TestNoNameHidesOthersFromCompletion(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	put := func(key string) {
		if _, err := m.Put(key, "", 0); err != nil {
			t.Fatal(err)
		}
	}
	for slot := range completePage*completeMost + 1 {
		put(hold.SemaKey("many", 1000, int64(slot)+1).String())
	}
	for slot := range completePage + 1 {
		_, last := hold.SlotKeys("many", 1000, slot)
		put(last.String())
	}
	for _, name := range []string{"a", "many-more", "many.more", "manyx", "z"} {
		put(hold.SemaKey(name, 1, 1).String())
	}
	client := m.Client(t)
	for begun, want := range map[string][]string{
		"": {"a", "many", "many-more", "many.more", "manyx", "z"}, "many": {"many", "many-more", "many.more", "manyx"}, "manyx": {"manyx"},
	} {
		got := namesIn(t.Context(), client, hold.AreaRange(hold.AreaSema), begun)
		slices.Sort(got)
		equal(t, slices.Compact(got), want)
	}
	equal(t, namesIn(t.Context(), client, hold.AreaRange(hold.AreaLast)+"sema/", ""), []string{"many"})
}

// TestNamesOfSeveralKindsAreCompleted is what a command that takes any of them offers.
func TestNamesOfSeveralKindsAreCompleted(t *testing.T) {
	t.Parallel()
	server := etcdtest.One(t)
	client := server.Client(t)
	for _, key := range []string{
		hold.ElectKey("reports", 1).String(), hold.ElectKey("both", 1).String(), hold.SemaKey("both", 2, 2).String(),
		coord.HostsPrefix + "h1", coord.HostsPrefix + "h1/x", coord.HostsPrefix + "\x1b",
	} {
		if _, err := client.Put(t.Context(), key, ""); err != nil {
			t.Fatal(err)
		}
	}
	for kinds, want := range map[string][]string{
		"elect": {"both", "reports"}, "sema": {"both"}, "host": {"h1"}, "elect sema host": {"both", "h1", "reports"}, "cron": nil,
	} {
		var got []string
		for range 20 { // a machine that is busy may take longer than a user waits
			cmd, conn := &cobra.Command{}, &cli.Connection{}
			conn.AddFlags(cmd.Flags())
			cmd.SetContext(t.Context())
			c := &call{env: newShell("CONCH_ENDPOINTS=" + server.Endpoint()).env()}
			if got, _ = c.completeNames(cmd, conn, "", strings.Fields(kinds)...); slices.Equal(got, want) {
				break
			}
		}
		equal(t, got, want)
	}
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
		for _, kind := range []string{"elect", "sema"} {
			if got, directive := s.completed(t, kind, ""); len(got) != 0 || directive != noFile {
				t.Errorf("%s: offered %q %s", name, got, directive)
			}
		}
		// What a shell's script throws away, and no more.
		if said := s.stderr.String(); said != strings.Repeat("Completion ended with directive: ShellCompDirectiveNoFileComp\n", 2) {
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
		"help e":                  {"elect", "environment", "evict", "exit-codes"},
		"evict ":                  {"elect", "sema"},
		"evict s":                 {"sema"},
		"evict sema x":            nil,
		"evict sema x --output ":  {"table", "json"},
		"help elect ":             nil,
		"completion ":             {"bash", "zsh", "fish"},
		"elect x --settle ":       {"auto", "off"},
		"version --output ":       {"table", "json"},
		"elect x --who --output ": {"table", "json"},
		"sema x --settle ":        {"auto", "off"},
		"doctor --output ":        {"table", "json"},
		"sema x --guard ":         {"auto", "off"},
		"fence --guard ":          {"auto", "off"},
		"fence check ":            nil,
		"fence sql --dialect ":    {"postgres", "sqlite"},
		"sema x --log-format ":    {"text", "json"},
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
