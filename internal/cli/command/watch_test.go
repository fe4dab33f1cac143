package command

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// reader is a stdout of which each write is read on its own.
type reader chan string

func (r reader) Write(p []byte) (int, error) { r <- string(p); return len(p), nil }

// next is the next line, or the end of the test when there is none for very long.
func (r reader) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-r:
		if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
			t.Errorf("one write has %q, want one line", line)
		}
		return strings.TrimSuffix(line, "\n")
	case <-time.After(time.Minute):
		t.Fatal("no line comes")
		return ""
	}
}

// startTo starts a command with a stdout of its own.
func (s *shell) startTo(stdout io.Writer, args ...string) <-chan int {
	return s.startWith(stdout, &s.stderr, args...)
}

// startWith is startTo with a stderr of its own as well.
func (s *shell) startWith(stdout, stderr io.Writer, args ...string) <-chan int {
	code := make(chan int, 1)
	go func() {
		code <- Main(context.Background(), cli.Env{
			Name: "conch", Args: args, Environ: s.environ, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr,
			Signals: func() (<-chan os.Signal, func()) { return s.signals, func() {} },
		})
	}()
	return code
}

func TestWatchPrintsEachChangeUntilASignal(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	s, out := at(t), make(reader)
	code := s.startTo(out, "elect", office, "--watch")
	want := func(pattern string) {
		t.Helper()
		pattern = `^20\S+Z  ` + regexp.QuoteMeta(office) + `  ` + pattern + `$`
		if line := out.next(t); !regexp.MustCompile(pattern).MatchString(line) {
			t.Errorf("got %q, want %s", line, pattern)
		}
	}
	want(`vacant`)
	el := lead(t, office, hold.Holder{Host: "node\u202e2", PID: 42, Cmd: "job"}.Encode())
	want(`held by node\\u202e2 pid 42 \(job\), token \d+`)
	if err := el.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(`vacant; last held by node\\u202e2 pid 42 \(job\), token \d+, released 20\S+Z`)

	// A key that nobody gave up.
	client := etcdtest.Shared(t).Client(t)
	lease := put(t, client, office, "somebody\nelse")
	want(`held by somebody\\nelse, token \d+`)
	id, err := hold.ParseLease(lease)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Delete(t.Context(), hold.ElectKey(office, id).String()); err != nil {
		t.Fatal(err)
	}
	want(`vacant; last held by somebody\\nelse, token \d+, which has not said how it ended`)

	s.signals <- syscall.SIGWINCH // means nothing here
	s.signals <- syscall.SIGTERM
	if c := wait(t, code); c != 143 || s.stderr.String() != "" {
		t.Errorf("code %d, stderr %q", c, s.stderr.String())
	}
}

func TestWatchInJSONHasTheNamesOfWho(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	el := lead(t, office, hold.Holder{Host: "node2", PID: 42, Cmd: "a\u202eb"}.Encode())
	token := float64(el.Term().Token())
	s, out := at(t), make(reader)
	code := s.startTo(out, "elect", office, "--watch", "--json")
	next := func() (line string, got map[string]any) {
		t.Helper()
		line = out.next(t)
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		return line, got
	}
	line, got := next()
	for name, want := range map[string]any{
		"kind": "elect", "name": office, "state": "held", "host": "node2", "pid": 42.0, "cmd": "a\u202eb",
		"rev": token, "position": 0.0, "lease": hold.FormatLease(int64(el.Session().Lease())),
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if _, err := time.Parse(time.RFC3339, got["at"].(string)); err != nil || strings.Contains(line, "\u202e") {
		t.Errorf("got %s", line)
	}
	if err := el.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, got = next()
	last, _ := got["last"].(map[string]any)
	if got["state"] != "vacant" || got["rev"] != 0.0 || last["host"] != "node2" || last["how"] != "released" || last["rev"] != token {
		t.Errorf("got %v", got)
	}
	s.signals <- syscall.SIGINT
	if c := wait(t, code); c != 130 {
		t.Errorf("code %d", c)
	}
}

func TestWatchSaysWhoSettlesAndWhoLeads(t *testing.T) {
	t.Parallel()
	office, cli := etcdtest.Office(t), etcdtest.Shared(t).Client(t)
	if _, err := cli.Put(t.Context(), settle(office).Open, `{"lease":"7b","ttl":10,"holder":{"host":"old\u001b[2J","pid":9,"started":"2026-01-01T00:00:00Z"}}`); err != nil {
		t.Fatal(err)
	}
	put(t, cli, office, hold.NewHolder("next", 1, testTime, nil).Encode())
	s, table, lines := at(t), make(reader), make(reader)
	codes := []<-chan int{s.startTo(table, "elect", office, "--watch"), s.startTo(lines, "elect", office, "--watch", "--json")}
	contains(t, table.next(t), "next is next pid 1, token ", `, which waits for the end of an earlier hold: old\x1b[2J pid 9, lease 7b`)
	contains(t, lines.next(t), `"state":"settling","host":"next"`, `"unsettled":{"host":"old\u001b[2J","pid":9,"cmd":"","lease":"7b","ttl_ms":10000,`)
	if _, err := cli.Delete(t.Context(), settle(office).Open); err != nil {
		t.Fatal(err)
	}
	contains(t, table.next(t), "held by next pid 1, token ")
	contains(t, lines.next(t), `"state":"held","host":"next"`)
	for range codes {
		s.signals <- syscall.SIGTERM
	}
	for _, code := range codes {
		if c := wait(t, code); c != 143 {
			t.Errorf("code %d", c)
		}
	}
}

func TestWatchEndsQuietlyWhenNobodyReads(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s := at(t)
	code := s.startTo(w, "elect", office, "--watch")
	if n, err := r.Read(make([]byte, 1000)); n == 0 || err != nil {
		t.Fatal(err)
	}
	r.Close()
	if c := wait(t, code); c != 0 || s.stderr.String() != "" { // although nothing changes
		t.Errorf("code %d, stderr %q", c, s.stderr.String())
	}
	// Nobody from the start.
	if c := wait(t, s.startTo(w, "elect", office, "--watch")); c != 0 || s.stderr.String() != "" {
		t.Errorf("code %d, stderr %q", c, s.stderr.String())
	}
}

func TestWatchSaysWhatItCannotPrint(t *testing.T) {
	t.Parallel()
	s := at(t)
	if c := wait(t, s.startTo(broken{}, "elect", etcdtest.Office(t), "--watch")); c != hold.CodeUnprinted {
		t.Errorf("code %d", c)
	}
	contains(t, s.stderr.String(), "the answer could not be printed: broken pipe")
}

// stuck is a stdout whose reader has stopped reading.
type stuck struct{ reached, free chan struct{} }

func (s stuck) Write([]byte) (int, error) {
	close(s.reached)
	<-s.free
	return 0, errors.New("freed")
}

func TestAReaderThatHasStoppedHoldsNoSignalUp(t *testing.T) {
	t.Parallel()
	s, out := at(t), stuck{make(chan struct{}), make(chan struct{})}
	code := s.startTo(out, "elect", etcdtest.Office(t), "--watch")
	<-out.reached
	s.signals <- syscall.SIGTERM
	if c := wait(t, code); c != 143 {
		t.Errorf("code %d", c)
	}
	close(out.free)
}

func TestWatchNeedsAnEtcdToStartWith(t *testing.T) {
	t.Parallel()
	s := newShell("CONCH_ENDPOINTS=" + etcdtest.Refused(t))
	if c := s.conch("elect", "x", "--watch", "--dial-timeout", "200ms"); c != hold.CodeUnreachable || s.stdout.String() != "" {
		t.Errorf("code %d, stdout %q", c, s.stdout.String())
	}
	if strings.Count(s.stderr.String(), "\n") != 1 {
		t.Errorf("got %q, want one line", s.stderr.String())
	}

	// A signal ends the search.
	s = newShell("CONCH_ENDPOINTS=" + etcdtest.Silent(t))
	code := s.startTo(make(reader), "elect", "x", "--watch", "--dial-timeout", "10m")
	s.signals <- syscall.SIGINT
	if c := wait(t, code); c != 130 || s.stderr.String() != "" {
		t.Errorf("code %d, stderr %q", c, s.stderr.String())
	}
}

func TestWatchSaysWhenItsViewIsOld(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	proxy := etcdtest.NewProxy(t, etcdtest.Shared(t).Endpoint())
	s, out := newShell("CONCH_ENDPOINTS="+proxy.Addr()), make(reader)
	warned := make(reader, 9)
	code := s.startWith(out, warned, "elect", office, "--watch", "--quiet")
	contains(t, out.next(t), "vacant")
	proxy.Cut()
	contains(t, warned.next(t), "level=WARN", "etcd does not answer", "out of date", office)
	lead(t, office, "somebody")
	proxy.Revive()
	contains(t, out.next(t), "held by somebody")
	contains(t, warned.next(t), "etcd answers again", office)
	s.signals <- syscall.SIGTERM
	if c := wait(t, code); c != 143 || len(warned) != 0 {
		t.Errorf("code %d, and %d more lines", c, len(warned))
	}
}
