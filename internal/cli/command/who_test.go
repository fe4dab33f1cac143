package command

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// put puts a candidate's key as a client does that knows nothing of us, and gives the lease in hex.
func put(t *testing.T, cli *clientv3.Client, office, value string) (lease string) {
	t.Helper()
	granted, err := cli.Grant(t.Context(), 3600) // longer than any test waits for its turn
	if err != nil {
		t.Fatal(err)
	}
	key := hold.ElectKey(office, int64(granted.ID)).String()
	if _, err := cli.Put(t.Context(), key, value, clientv3.WithLease(granted.ID)); err != nil {
		t.Fatal(err)
	}
	return hold.FormatLease(int64(granted.ID))
}

func TestWhoTellsTheLeaderAndTheQueue(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	cli := etcdtest.Shared(t).Client(t)
	el := lead(t, office, hold.Holder{Host: "node2", PID: 42, Cmd: "job\x1b[2J --fast"}.Encode())
	foreign := put(t, cli, office, "a foreign client\n\x1b")

	s := at(t)
	if code := s.conch("elect", office, "--who"); code != 0 || s.stderr.String() != "" {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(s.stdout.String()), "\n")
	if len(lines) != 3 || strings.Contains(s.stdout.String(), "\x1b") {
		t.Fatalf("got %q", s.stdout.String())
	}
	contains(t, lines[0], "STATE", "HOST", "TTL LEFT")
	contains(t, lines[1], "held", "node2", "42", hold.FormatLease(int64(el.Session().Lease())), `job\x1b[2J --fast`)
	contains(t, lines[2], "waiting", foreign, `a foreign client\n\x1b`)

	for _, flag := range []string{"--json", "-ojson", "--output=json"} {
		s := at(t)
		if code := s.conch("elect", office, "--who", flag); code != 0 {
			t.Errorf("code %d, stderr %q", code, s.stderr.String())
		}
		lines := strings.Split(strings.TrimSpace(s.stdout.String()), "\n")
		if len(lines) != 2 {
			t.Fatalf("got %q, want one object a line", s.stdout.String())
		}
		var first, second map[string]any
		if err := errors.Join(json.Unmarshal([]byte(lines[0]), &first), json.Unmarshal([]byte(lines[1]), &second)); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]any{
			"kind": "elect", "name": office, "max": nil, "slot": nil, "state": "held", "host": "node2", "pid": 42.0,
			"cmd": "job\x1b[2J --fast", "rev": float64(el.Term().Token()), "position": 0.0,
		} {
			if got, there := first[name]; !there || got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if left := first["ttl_left_ms"].(float64); left <= 0 || left > 60000 {
			t.Errorf("ttl_left_ms is %v", left)
		}
		if second["state"] != "waiting" || second["position"] != 1.0 || second["lease"] != foreign || second["host"] != "" {
			t.Errorf("got %v", second)
		}
	}
}

func TestWhoTellsAVacancyAndHowTheLastHoldEnded(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	s := at(t)
	if code := s.conch("elect", office, "--who"); code != hold.CodeNo || s.stdout.String() != office+" is vacant\n" {
		t.Errorf("code %d, %q", code, s.stdout.String())
	}
	el := lead(t, office, hold.Holder{Host: "node2", PID: 42}.Encode())
	if err := el.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = at(t)
	if code := s.conch("elect", office, "--who"); code != hold.CodeNo {
		t.Errorf("code %d", code)
	}
	contains(t, s.stdout.String(), office+" is vacant; last held by node2 pid 42, token", "released 20")
	s = at(t)
	if code := s.conch("elect", office, "--who", "--json"); code != hold.CodeNo || s.stderr.String() != "" {
		t.Errorf("code %d, %q", code, s.stderr.String())
	}
	contains(t, s.stdout.String(), `"state":"vacant"`, `"last":{"host":"node2","pid":42,"cmd":"","rev":`, `"how":"released"`)

	// Of one that is held it is told as well.
	lead(t, office, hold.Holder{Host: "node3", PID: 43}.Encode())
	s = at(t)
	if code := s.conch("elect", office, "--who"); code != 0 {
		t.Errorf("code %d", code)
	}
	contains(t, s.stdout.String(), "held", "node3", "\nended last: node2 pid 42, token", "released 20")
	s = at(t)
	s.conch("elect", office, "--who", "--json")
	contains(t, s.stdout.String(), `"state":"held"`, `"last":{"host":"node2"`, `"since":"20`)
}

func TestWhoTellsASettlerFromAHolder(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	cli := etcdtest.Shared(t).Client(t)
	lease := put(t, cli, office, hold.Holder{Host: "node3", PID: 1}.Encode())
	for record, settling := range map[string]bool{`{"lease":"` + lease + `","ttl":10}`: false, `{"lease":"50","ttl":10}`: true, `broken`: true} {
		if _, err := cli.Put(t.Context(), settle(office).Open, record); err != nil {
			t.Fatal(err)
		}
		s := at(t)
		if code := s.conch("elect", office, "--who"); code != 0 || strings.Contains(s.stdout.String(), "settling") != settling {
			t.Errorf("record %s: code %d, %q", record, code, s.stdout.String())
		}
	}
}

// testTime is when holders of tests began.
var testTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestWhoInJSONIsSafeOnATerminal(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	cli := etcdtest.Shared(t).Client(t)
	hostile := "\u202egpj.exe\u2066\u200b\u009b31m\x7f\x1b[2J\u2028"
	put(t, cli, office, hold.NewHolder("a"+hostile, 1, testTime, []string{hostile}).Encode())
	put(t, cli, office, hostile+"\xff")
	if _, err := cli.Put(t.Context(), settle(office).Open, `{"lease":"50","ttl":10,"holder":{"host":"\u202e","pid":7,"started":"2026-01-01T00:00:00Z"}}`); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"-ojson", "-otable"} {
		s := at(t)
		if code := s.conch("elect", office, "--who", flag); code != 0 {
			t.Errorf("code %d", code)
		}
		for line := range strings.Lines(s.stdout.String()) {
			if bad := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !strconv.IsPrint(r) }); bad >= 0 {
				t.Errorf("%s lets something through at %d: %q", flag, bad, line)
			}
		}
		contains(t, s.stdout.String(), `\u202e`)
	}
}

func TestWhoSaysWhenTheNextHolderWouldSettle(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	for name, tt := range map[string]struct {
		record      string
		text        string
		lease, host string
		ttl         float64
		value       string
	}{
		"a holder": {
			`{"lease":"7b","ttl":10,"holder":{"host":"gone\u202e","pid":9,"started":"2026-01-01T00:00:00Z"},"at":"2026-01-01T00:00:00Z"}`,
			`unsettled: gone\u202e pid 9, lease 7b, has not said that nothing of it is left; the next holder waits for that, 10s at most`,
			"7b", "gone\u202e", 10000, "",
		},
		"a foreign one": {
			`{"lease":"7b","ttl":10,"holder":"just text"}`,
			`unsettled: just text, lease 7b, has`, "7b", "", 10000, "just text",
		},
		"not JSON":      {`broken`, `unsettled: an earlier hold left a record that cannot be read`, "", "", 0, ""},
		"no ttl":        {`{"lease":"7b"}`, `cannot be read`, "", "", 0, ""},
		"no lease":      {`{"ttl":10}`, `cannot be read`, "", "", 0, ""},
		"a ttl of ages": {`{"lease":"7b","ttl":9000000000}`, `cannot be read`, "", "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			office := etcdtest.Office(t)
			if _, err := cli.Put(t.Context(), settle(office).Open, tt.record); err != nil {
				t.Fatal(err)
			}
			s := at(t)
			if code := s.conch("elect", office, "--who"); code != hold.CodeNo || !strings.HasPrefix(s.stdout.String(), office+" is vacant\n") {
				t.Errorf("code %d, %q", code, s.stdout.String())
			}
			contains(t, s.stdout.String(), tt.text)
			s = at(t)
			if code := s.conch("elect", office, "--who", "--json"); code != hold.CodeNo {
				t.Errorf("code %d", code)
			}
			var got struct {
				State     string
				Unsettled map[string]any
			}
			if err := json.Unmarshal([]byte(s.stdout.String()), &got); err != nil {
				t.Fatal(err)
			}
			u := got.Unsettled
			value, _ := u["value"].(string)
			if got.State != "vacant" || u["lease"] != tt.lease || u["host"] != tt.host || u["ttl_ms"] != tt.ttl || (u["at"] == "") == strings.Contains(tt.record, `"at"`) || value != tt.value {
				t.Errorf("got %s", s.stdout.String())
			}

			// With somebody first in the queue it is told as well; the end of a hold is the end of it.
			put(t, cli, office, hold.NewHolder("next", 1, testTime, nil).Encode())
			s = at(t)
			if code := s.conch("elect", office, "--who"); code != 0 {
				t.Errorf("code %d", code)
			}
			contains(t, s.stdout.String(), "0         settling  next", tt.text)
			s = at(t)
			s.conch("elect", office, "--who", "--json")
			contains(t, s.stdout.String(), `"state":"settling"`, `"unsettled":{`)
			if _, err := cli.Delete(t.Context(), settle(office).Open); err != nil {
				t.Fatal(err)
			}
			s = at(t)
			s.conch("elect", office, "--who", "--json")
			if strings.Contains(s.stdout.String(), "settl") {
				t.Errorf("got %s", s.stdout.String())
			}
		})
	}
}

// broken is a stdout that nobody reads.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestAnAnswerThatCannotBePrintedIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"elect x --who", "elect x --who --json", "status", "status --json", "doctor", "version", "version -o json", "--version", "--help", "help", "help elect",
		"elect --help", "help environment", "help exit-codes", "completion bash", "completion zsh", "completion fish",
	} {
		s := at(t)
		env := cli.Env{Name: "conch", Args: strings.Fields(line), Environ: s.environ, Stdout: broken{}, Stderr: &s.stderr}
		if code := Main(t.Context(), env); code != hold.CodeUnprinted {
			t.Errorf("%s: code %d, want %d", line, code, hold.CodeUnprinted)
		}
		if s.stderr.String() != "conch: the answer could not be printed: broken pipe\n" {
			t.Errorf("%s: said %q", line, s.stderr.String())
		}
	}
}

func TestWhoSeesNoOtherOffice(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	cli := etcdtest.Shared(t).Client(t)
	put(t, cli, office+"b", "x")
	s := at(t)
	if code := s.conch("elect", office, "--who"); code != hold.CodeNo {
		t.Errorf("code %d, %q", code, s.stdout.String())
	}
}
