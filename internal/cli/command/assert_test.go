package command

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

func TestAssertSaysWhetherThisHolderLeads(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	ask := func(want int, why string, flags ...string) {
		t.Helper()
		s := at(t)
		if code := s.conch(append([]string{"elect", office, "--assert"}, flags...)...); code != want || s.stdout.String() != "" {
			t.Errorf("%q: code %d, want %d; stdout %q", flags, code, want, s.stdout.String())
		}
		line := s.stderr.String()
		if why == "" && line != "" || why != "" && (strings.Count(line, "\n") != 1 || strings.ContainsAny(line, "\x1b")) {
			t.Errorf("%q: said %q", flags, line)
		}
		contains(t, line, why)
	}
	ask(1, "conch: "+office+": nobody leads\n")
	ask(1, "", "--quiet")

	// This host, in this process.
	el := lead(t, office, hold.NewHolder(hostname(), os.Getpid(), testTime, nil).Encode())
	token := el.Term().Token()
	rev := func(n uint64) string { return strconv.FormatUint(n, 10) }
	ask(0, "")
	ask(0, "", "--pid", strconv.Itoa(os.Getpid()), "--min-rev", rev(token))
	ask(0, "", "--min-rev", rev(token-1))
	ask(1, "token "+rev(token)+", which is below "+rev(token+1), "--min-rev", rev(token+1))
	ask(1, "pid "+strconv.Itoa(os.Getpid()), "--pid", "1")
	ask(1, "", "--pid", "1", "--quiet")
	if err := el.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}

	// Somebody else, whoever waits behind.
	other := lead(t, office, hold.Holder{Host: "node\x1b2", PID: os.Getpid()}.Encode())
	put(t, etcdtest.Shared(t).Client(t), office, hold.NewHolder(hostname(), os.Getpid(), testTime, nil).Encode())
	ask(1, `held by node\x1b2 pid `)
	if err := other.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask(0, "")
}

func TestAHolderThatSettlesDoesNotLeadYet(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	cli := etcdtest.Shared(t).Client(t)
	if _, err := cli.Put(t.Context(), settle(office).Open, `{"lease":"7b","ttl":10}`); err != nil {
		t.Fatal(err)
	}
	put(t, cli, office, hold.NewHolder(hostname(), 1, testTime, nil).Encode())
	s := at(t)
	if code := s.conch("elect", office, "--assert"); code != hold.CodeNo {
		t.Errorf("code %d", code)
	}
	contains(t, s.stderr.String(), "waits for the end of an earlier hold")
}

func TestAssertDoesNotAnswerWithoutEtcd(t *testing.T) {
	t.Parallel()
	s := newShell("CONCH_ENDPOINTS=" + etcdtest.Refused(t))
	if code := s.conch("elect", "x", "--assert", "--dial-timeout", "200ms"); code != hold.CodeUnreachable {
		t.Errorf("code %d", code)
	}
}
