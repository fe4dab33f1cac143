package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

func TestBadCommandLinesNeverReachEtcd(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 201)
	tests := []struct {
		name string
		args []string
		want []string // in the one line
	}{
		{"nothing", nil, []string{"no command", "--help"}},
		{"unknown command", []string{"lock", "x", "--", "true"}, []string{`"lock"`, "--help"}},
		{"nearly a command", []string{"elct", "x"}, []string{`"elct"`, "did you mean elect?"}},
		{"flag before the command", []string{"--quiet", "elect", "x", "--", "true"}, []string{"--quiet"}},
		{"unknown flag", []string{"elect", "x", "--blah", "--", "true"}, []string{"--blah"}},
		{"nearly a flag", []string{"elect", "x", "--nonblok", "--", "true"}, []string{"--nonblok", "did you mean --nonblock?"}},
		{"short flag", []string{"elect", "x", "-n", "--", "true"}, []string{"-n"}},
		{"ttl 0", []string{"elect", "x", "--ttl", "0", "--", "true"}, []string{"--ttl", `"0"`, "whole seconds"}},
		{"ttl negative", []string{"elect", "x", "--ttl", "-1s", "--", "true"}, []string{"--ttl", `"-1s"`}},
		{"ttl half a second", []string{"elect", "x", "--ttl=500ms", "--", "true"}, []string{"--ttl", `"500ms"`}},
		{"ttl and a half", []string{"elect", "x", "--ttl=1500ms", "--", "true"}, []string{"--ttl", `"1500ms"`}},
		{"ttl without unit", []string{"elect", "x", "--ttl=10", "--", "true"}, []string{"--ttl", `"10"`}},
		{"ttl with exponent", []string{"elect", "x", "--ttl=1e9h", "--", "true"}, []string{"--ttl", `"1e9h"`}},
		{"ttl of years", []string{"elect", "x", "--ttl=99999h", "--", "true"}, []string{"--ttl", "24h"}},
		{"ttl without value", []string{"elect", "x", "--ttl"}, []string{"--ttl", "missing"}},
		{"kill-after negative", []string{"elect", "x", "--kill-after", "-1s", "--", "true"}, []string{"--kill-after", `"-1s"`, "above 0"}},
		{"kill-after 0", []string{"elect", "x", "--kill-after", "0", "--", "true"}, []string{"--kill-after", `"0"`}},
		{"kill-after not a number", []string{"elect", "x", "--kill-after", "NaN", "--", "true"}, []string{"--kill-after", `"NaN"`}},
		{"kill-margin 0", []string{"elect", "x", "--kill-margin", "0s", "--", "true"}, []string{"--kill-margin", `"0s"`}},
		{"kill-margin beyond the ttl", []string{"elect", "x", "--kill-margin", "6s", "--", "true"}, []string{"--kill-margin", "6s", "less than 5.5s", "10s"}},
		{"wait with nonblock", []string{"elect", "x", "--wait", "1s", "--nonblock", "--", "true"}, []string{"--wait", "1s", "--nonblock"}},
		{"wait negative", []string{"elect", "x", "--wait", "-1s", "--", "true"}, []string{"--wait", `"-1s"`}},
		{"settle maybe", []string{"elect", "x", "--settle", "maybe", "--", "true"}, []string{"--settle", `"maybe"`, "auto or off"}},
		{"guard on", []string{"elect", "x", "--guard=on", "--", "true"}, []string{"--guard", `"on"`, "auto or off"}},
		{"endpoints empty", []string{"elect", "x", "--endpoints", "", "--", "true"}, []string{"--endpoints", `""`}},
		{"endpoints with a comma too many", []string{"elect", "x", "--endpoints", "a:1,", "--", "true"}, []string{"--endpoints", "empty"}},
		{"status file without name", []string{"elect", "x", "--status-file", "", "--", "true"}, []string{"--status-file"}},
		{"ttl empty", []string{"elect", "x", "--ttl", "", "--", "true"}, []string{`--ttl ""`, "whole seconds"}},
		{"ttl beyond what can be counted", []string{"elect", "x", "--ttl", "9223372036854775808ns", "--", "true"}, []string{"--ttl", "24h"}},
		{"ttl of more than 9e9 s", []string{"elect", "x", "--ttl", "9000000001s", "--", "true"}, []string{"--ttl", "24h"}},
		{"ttl with a space", []string{"elect", "x", "--ttl", "1 s", "--", "true"}, []string{`--ttl "1 s"`}},
		{"kill-after empty", []string{"elect", "x", "--kill-after", "", "--", "true"}, []string{`--kill-after ""`, "above 0"}},
		{"kill-after for ever", []string{"elect", "x", "--kill-after", "inf", "--", "true"}, []string{`--kill-after "inf"`, "above 0"}},
		{"wait empty", []string{"elect", "x", "--wait", "", "--", "true"}, []string{`--wait ""`, "--nonblock"}},
		{"wait 0 with nonblock", []string{"elect", "x", "--wait", "0", "--nonblock", "--", "true"}, []string{"--wait 0s", "--nonblock"}},
		{"nonblock maybe", []string{"elect", "x", "--nonblock=maybe", "--", "true"}, []string{`--nonblock "maybe"`, "true or false"}},
		{"dial-timeout 0", []string{"elect", "x", "--dial-timeout", "0", "--", "true"}, []string{`--dial-timeout "0"`, "above 0"}},
		{"a flag of dashes", []string{"elect", "x", "---", "--", "true"}, []string{`"---"`}},
		{"a flag without a name", []string{"elect", "x", "--=x", "--", "true"}, []string{`"--=x"`}},
		{"endpoints of nothing but commas", []string{"elect", "x", "--endpoints", ",", "--", "true"}, []string{`--endpoints ","`, "empty", "host:port"}},
		{"endpoints of two schemes", []string{"elect", "x", "--endpoints", "http://a:1,https://b:2", "--", "true"}, []string{"--endpoints", "mixed"}},
		{"endpoint without brackets", []string{"elect", "x", "--endpoints", "::1:2379", "--", "true"}, []string{`"::1:2379"`, "host:port"}},
		{"endpoint with half of them", []string{"elect", "x", "--endpoints", "[::1", "--", "true"}, []string{`"[::1"`, "host:port"}},
		{"endpoint with port 0", []string{"elect", "x", "--endpoints", "a:0", "--", "true"}, []string{`"a:0"`, "1 to 65535"}},
		{"endpoint with port 70000", []string{"elect", "x", "--endpoints", "a:70000", "--", "true"}, []string{`"a:70000"`, "1 to 65535"}},
		{"endpoint without a port", []string{"elect", "x", "--endpoints", "a", "--", "true"}, []string{`"a"`, "host:port"}},
		{"endpoint of another scheme", []string{"elect", "x", "--endpoints", "ftp://a:1", "--", "true"}, []string{`"ftp://a:1"`, "http(s)://"}},
		{"endpoint with a path", []string{"elect", "x", "--endpoints", "http://a:1/v3", "--", "true"}, []string{`"http://a:1/v3"`, "path"}},
		{"endpoint with a fragment", []string{"elect", "x", "--endpoints", "a:1#f", "--", "true"}, []string{`"a:1#f"`, "fragment"}},
		{"endpoint with an escape", []string{"elect", "x", "--endpoints", "http://h%zz:1", "--", "true"}, []string{`"http://h%zz:1"`, "host:port"}},
		{"endpoint of a socket without a path", []string{"elect", "x", "--endpoints", "unix:", "--", "true"}, []string{`"unix:"`, "unix:///path"}},
		{"endpoint with a line end", []string{"elect", "x", "--endpoints", "a\nb:1", "--", "true"}, []string{`"a\nb:1"`, "host:port"}},
		{"no office", []string{"elect"}, []string{"no office"}},
		{"no office but a command", []string{"elect", "--", "true"}, []string{"no office"}},
		{"empty office", []string{"elect", "", "--", "true"}, []string{"name is empty"}},
		{"office with a slash", []string{"elect", "a/b", "--", "true"}, []string{`"a/b"`}},
		{"office of dots", []string{"elect", "..", "--", "true"}, []string{`".."`}},
		{"office with a line end", []string{"elect", "a\nb", "--", "true"}, []string{`"a\nb"`}},
		{"office with an escape sequence", []string{"elect", "a\x1b[31m", "--", "true"}, []string{`a\x1b[31m`}},
		{"office too long", []string{"elect", long, "--", "true"}, []string{"201 bytes"}},
		{"two offices", []string{"elect", "a", "b", "--", "true"}, []string{`"b"`}},
		{"no command", []string{"elect", "x"}, []string{"no command"}},
		{"no command after --", []string{"elect", "x", "--"}, []string{"no command"}},
		{"no --", []string{"elect", "x", "ls"}, []string{"--", `"ls"`}},
		{"no -- and a flag", []string{"elect", "x", "ls", "-n"}, []string{"-n", "--"}},
		{"who with a command", []string{"elect", "x", "--who", "--", "true"}, []string{"--who", `"true"`}},
		{"who with nonblock", []string{"elect", "x", "--who", "--nonblock"}, []string{"--who", "--nonblock"}},
		{"who in an unknown format", []string{"elect", "x", "--who", "-o", "xml"}, []string{"output", `"xml"`, "table or json"}},
		{"json without who", []string{"elect", "x", "--json", "--", "true"}, []string{"--json", "--who"}},
		{"campaign after nothing", []string{"elect", "x", "--campaign-after", "0", "--", "true"}, []string{"campaign-after", `"0"`, "above 0"}},
		{"campaign after without waiting", []string{"elect", "x", "--campaign-after", "1s", "--nonblock", "--", "true"}, []string{"--campaign-after 1s", "--nonblock"}},
		{"empty hook", []string{"elect", "x", "--on-acquire", "", "--", "true"}, []string{`--on-acquire ""`, "script"}},
		{"fence without hook", []string{"elect", "x", "--fence-on-lose", "--", "true"}, []string{"--fence-on-lose", "--on-lose"}},
		{"time for no hook", []string{"elect", "x", "--hook-timeout", "5s", "--", "true"}, []string{"--hook-timeout 5s", "--on-acquire or --on-lose"}},
		{"hooks in next to no time", []string{"elect", "x", "--hook-timeout", "1ns", "--on-lose", "x", "--", "true"}, []string{`--hook-timeout "1ns"`, "from 10ms"}},
		{"a hook that no shell gets", []string{"elect", "x", "--on-lose", strings.Repeat("#", max(0, hold.ArgLimit()-10)), "--", "true"}, []string{`--on-lose "####`, strconv.Itoa(hold.ArgLimit()-10) + " bytes", "at most " + strconv.Itoa(hold.ArgLimit()-20)}},
		{"campaign after the wait", []string{"elect", "x", "--campaign-after", "10s", "--wait", "10s", "--", "true"}, []string{"--campaign-after 10s", "--wait 10s"}},
		{"hooks in no time", []string{"elect", "x", "--hook-timeout", "-1s", "--on-lose", "x", "--", "true"}, []string{"hook-timeout", `"-1s"`}},
		{"log in an unknown format", []string{"elect", "x", "--log-format", "xml", "--", "true"}, []string{"log-format", `"xml"`, "text or json"}},
		{"status file nowhere", []string{"elect", "x", "--status-file", "/nonexistent/s", "--", "true"}, []string{"--status-file", `"/nonexistent/s"`, "no such file"}},
		{"status file on a folder", []string{"elect", "x", "--status-file", "/tmp", "--", "true"}, []string{"--status-file", `"/tmp"`, "not a regular file"}},
		{"who with a hook", []string{"elect", "x", "--who", "--on-lose", "true"}, []string{"--who", "--on-lose"}},
		{"doctor of what", []string{"doctor", "etcd"}, []string{`"etcd"`}},
		{"doctor of a hold that cannot be", []string{"doctor", "--ttl", "2s", "--kill-margin", "2s"}, []string{"--kill-margin 2s", "--ttl 2s"}},
		{"doctor in an unknown format", []string{"doctor", "-o", "xml"}, []string{"output", `"xml"`}},
		{"two questions", []string{"elect", "x", "--who", "--watch"}, []string{"--who and --watch", "one"}},
		{"watch with a command", []string{"elect", "x", "--watch", "--", "true"}, []string{"--watch", `"true"`}},
		{"watch with ttl", []string{"elect", "x", "--watch", "--ttl", "5s"}, []string{"--watch", "--ttl"}},
		{"assert in json", []string{"elect", "x", "--assert", "--json"}, []string{"--json", "--who"}},
		{"assert with a token of 0", []string{"elect", "x", "--assert", "--min-rev", "0"}, []string{"--min-rev", `"0"`, "from 1"}},
		{"assert without its token", []string{"elect", "x", "--assert", "--min-rev", ""}, []string{"--min-rev", `""`}},
		{"assert with a token that is none", []string{"elect", "x", "--assert", "--min-rev=-3"}, []string{"--min-rev", `"-3"`}},
		{"assert with a token beyond all", []string{"elect", "x", "--assert", "--min-rev", "9223372036854775808"}, []string{"--min-rev"}},
		{"assert with a pid of 0", []string{"elect", "x", "--assert", "--pid", "0"}, []string{"--pid", `"0"`}},
		{"min-rev without assert", []string{"elect", "x", "--min-rev", "1", "--", "true"}, []string{"--min-rev", "--assert"}},
		{"pid without assert", []string{"elect", "x", "--who", "--pid", "1"}, []string{"--pid", "--assert"}},
		{"nearly a question", []string{"elect", "x", "--asert"}, []string{`"--asert"`, "did you mean --assert?"}},
		{"version in an unknown format", []string{"version", "-o", "xml"}, []string{"--output", `"xml"`, "table or json"}},
		{"nearly version", []string{"--verson"}, []string{`"--verson"`, "did you mean --version?"}},
		{"help about nothing", []string{"help", "everything"}, []string{`"everything"`, "--help"}},
		{"help about nearly something", []string{"help", "elct"}, []string{`"elct"`, "did you mean elect?"}},
		{"help about part of a command", []string{"help", "elect", "x"}, []string{`"x"`}},
		{"help about the role of a guard", []string{"help", "__complete"}, []string{`"__complete"`}},
		{"completion for no shell", []string{"completion"}, []string{"no shell", "bash, zsh, fish"}},
		{"completion for an unknown shell", []string{"completion", "tcsh"}, []string{`"tcsh"`, "bash, zsh, fish"}},
		{"completion for two shells", []string{"completion", "bash", "zsh"}, []string{`"zsh"`, "one shell"}},
		{"host with a bad uuid", []string{"hosts", "register", "--uuid", "a/b"}, []string{`"a/b"`}},
		{"host without a uuid", []string{"hosts", "register", "--uuid", ""}, []string{`--uuid ""`}},
		{"label without a value", []string{"hosts", "register", "--uuid", "h", "--label", "rack"}, []string{"--label", `"rack"`, "KEY=VALUE"}},
		{"label without a key", []string{"hosts", "register", "--uuid", "h", "--label", "=r1"}, []string{"--label", `"=r1"`}},
		{"label twice", []string{"hosts", "register", "--uuid", "h", "--label", "a=b", "--label", "a=c"}, []string{"--label", `"a=c"`, "twice"}},
		{"label with a comma", []string{"hosts", "register", "--uuid", "h", "--label", "a=b,c=d"}, []string{"label", "comma"}},
		{"host and a command without --", []string{"hosts", "register", "--uuid", "h", "true"}, []string{"-- is missing", `"true"`}},
		{"host and a word before --", []string{"hosts", "register", "h", "--", "true"}, []string{`"h"`}},
		{"host without a command after --", []string{"hosts", "register", "--uuid", "h", "--"}, []string{"no command given after --"}},
		{"guard without a command", []string{"hosts", "register", "--uuid", "h", "--guard", "off"}, []string{"--guard", "a command only"}},
		{"host with a margin beyond its ttl", []string{"hosts", "register", "--uuid", "h", "--kill-margin", "6s", "--", "true"}, []string{"--kill-margin 6s"}},
		{"version of what", []string{"version", "etcd"}, []string{`"etcd"`}},
		{"no semaphore", []string{"sema", "--max", "3", "--", "true"}, []string{"no semaphore", "conch sema NAME --max N"}},
		{"two semaphores", []string{"sema", "a", "b", "--max", "3", "--", "true"}, []string{`"b"`, "one semaphore"}},
		{"semaphore with a slash", []string{"sema", "a/b", "--max", "3", "--", "true"}, []string{`"a/b"`}},
		{"no max", []string{"sema", "x", "--", "true"}, []string{"--max is missing", "a whole number from 1 to 1000"}},
		{"max where the command should be", []string{"sema", "x", "3", "--", "true"}, []string{`"3"`, "one semaphore"}},
		{"a semaphore without a command", []string{"sema", "x", "--max", "3"}, []string{"no command"}},
		{"max with campaign-after", []string{"sema", "x", "--max", "3", "--campaign-after", "1s", "--", "true"}, []string{`unknown flag "--campaign-after"`}},
		{"evict what", []string{"evict"}, []string{"no kind given", "elect or sema", "conch evict KIND NAME"}},
		{"evict of another kind", []string{"evict", "electt", "x"}, []string{`kind "electt"`, "elect or sema"}},
		{"evict of hosts", []string{"evict", "host", "x"}, []string{`kind "host"`, "elect or sema"}},
		{"evict nobody", []string{"evict", "elect"}, []string{"no name given"}},
		{"evict two", []string{"evict", "elect", "x", "y"}, []string{"one name", `"y"`}},
		{"evict by a bad name", []string{"evict", "sema", "a/b"}, []string{`"a/b"`}},
		{"evict a slot of an office", []string{"evict", "elect", "x", "--slot", "0"}, []string{"--slot 0", "sema only"}},
		{"evict slot -1", []string{"evict", "sema", "x", "--slot=-1"}, []string{`--slot "-1"`, "from 0 to 999"}},
		{"evict slot 1000", []string{"evict", "sema", "x", "--slot", "1000"}, []string{`--slot "1000"`, "from 0 to 999"}},
		{"evict slot and holder", []string{"evict", "sema", "x", "--slot", "0", "--holder", "h:1"}, []string{"--slot 0", "--holder", "one of them"}},
		{"evict a holder without a pid", []string{"evict", "elect", "x", "--holder", "node2"}, []string{`--holder "node2"`, "HOST:PID"}},
		{"evict a holder without a host", []string{"evict", "elect", "x", "--holder", ":42"}, []string{`--holder ":42"`, "HOST:PID"}},
		{"evict a holder with pid 0", []string{"evict", "elect", "x", "--holder", "h:0"}, []string{`--holder "h:0"`, "HOST:PID"}},
		{"evict a holder with a signed pid", []string{"evict", "elect", "x", "--holder", "h:+1"}, []string{`--holder "h:+1"`, "HOST:PID"}},
		{"evict a holder with a pid of none", []string{"evict", "elect", "x", "--holder", "h:"}, []string{`--holder "h:"`, "HOST:PID"}},
		{"evict a holder with a pid beyond all", []string{"evict", "elect", "x", "--holder", "h:2147483648"}, []string{"HOST:PID"}},
		{"evict with force alone", []string{"evict", "elect", "x", "--force"}, []string{"--force", "--rev"}},
		{"evict by a token without force", []string{"evict", "elect", "x", "--rev", "7"}, []string{"--rev 7", "--force"}},
		{"evict by token 0", []string{"evict", "elect", "x", "--force", "--rev", "0"}, []string{`--rev "0"`, "from 1"}},
		{"evict by token and slot", []string{"evict", "sema", "x", "--force", "--rev", "7", "--slot", "1"}, []string{"--force", "--slot"}},
		{"evict by token and holder", []string{"evict", "elect", "x", "--force", "--rev", "7", "--holder", "h:1"}, []string{"--force", "--holder"}},
		{"evict by force and a pause", []string{"evict", "elect", "x", "--force", "--rev", "7", "--cooldown", "1m"}, []string{"--cooldown 1m0s", "--force"}},
		{"evict for no time", []string{"evict", "elect", "x", "--cooldown", "0"}, []string{`--cooldown "0"`, "from 1ms to 24h"}},
		{"evict for more than a day", []string{"evict", "elect", "x", "--cooldown", "25h"}, []string{`--cooldown "25h"`, "from 1ms to 24h"}},
		{"evict for less than can be told", []string{"evict", "elect", "x", "--cooldown", "999us"}, []string{`--cooldown "999us"`}},
		{"evict and wait for less than nothing", []string{"evict", "elect", "x", "--wait", "-1s"}, []string{`--wait "-1s"`, "0 does not wait"}},
		{"evict in an unknown format", []string{"evict", "elect", "x", "-o", "xml"}, []string{"--output", `"xml"`, "table or json"}},
		{"a wait that does not wait", []string{"sema", "x", "--max", "3", "--nonblock", "--wait", "1s", "--", "true"}, []string{"--wait 1s", "--nonblock"}},
	}
	for _, max := range []string{"", "0", "-1", "1e9", "2.5", "1001", "99999999999999999999", "three", "0x3", "+3"} {
		tests = append(tests, struct {
			name string
			args []string
			want []string
		}{"max " + max, []string{"sema", "x", "--max=" + max, "--", "true"}, []string{"--max", `"` + max + `"`, "a whole number from 1 to 1000"}})
	}
	for what, name := range badNames() {
		tests = append(tests, struct {
			name string
			args []string
			want []string
		}{"office: " + what, []string{"elect", "--quiet", name, "--", "true"}, []string{"name"}})
	}
	endpoint := etcdtest.Untouched(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newShell("CONCH_ENDPOINTS=" + endpoint)
			if code := s.conch(tt.args...); code != hold.CodeUsage {
				t.Errorf("code %d, want 64", code)
			}
			line := s.stderr.String()
			if strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, "conch: usage: ") || len(line) > 300 || harmless(line, false) != nil {
				t.Errorf("got %q, want one safe line", line)
			}
			contains(t, line, tt.want...)
			if s.stdout.String() != "" {
				t.Errorf("stdout has %q", s.stdout.String())
			}
		})
	}
}

// Whoever collects JSON meets nothing else, whatever is wrong.
func TestUnderJSONEveryLineIsAnObject(t *testing.T) {
	t.Parallel()
	office, dead := etcdtest.Office(t), etcdtest.Refused(t)
	lead(t, office, hold.Holder{Host: "node2", PID: 42}.Encode())
	for _, tt := range []struct {
		name    string
		environ []string
		args    []string
		code    int
	}{
		{"a bad value behind the flag", nil, []string{"elect", "x", "--log-format", "json", "--ttl", "0", "--", "true"}, 64},
		{"an unknown flag behind the flag", nil, []string{"elect", "x", "--log-format=json", "--nope", "--", "true"}, 64},
		{"what is found out later", nil, []string{"elect", "x", "--wait", "1s", "--nonblock", "--log-format", "json", "--", "true"}, 64},
		{"a bad name", nil, []string{"elect", "a/b\x1b", "--log-format", "json", "--", "true"}, 64},
		{"by the variable", []string{"CONCH_LOG_FORMAT=json"}, []string{"elect", "x", "--ttl", "0", "--", "true"}, 64},
		{"by the variable, where there is no such flag", []string{"CONCH_LOG_FORMAT=json"}, []string{"completion", "tcsh"}, 64},
		{"by the variable, of no command", []string{"CONCH_LOG_FORMAT=json"}, []string{"elct"}, 64},
		{"no such command", nil, []string{"elect", "x", "--log-format", "json", "--", "no-such-command"}, 127},
		{"no etcd", nil, []string{"elect", "x", "--log-format", "json", "--endpoints", dead, "--dial-timeout", "200ms", "--", "true"}, 69},
		{"taken", nil, []string{"elect", office, "--log-format", "json", "--nonblock", "--", "true"}, 75},
		{"taken after a wait", nil, []string{"elect", office, "--log-format", "json", "--wait", "50ms", "--", "true"}, 75},
		{"an assertion that does not hold", nil, []string{"elect", office, "--log-format", "json", "--assert"}, 1},
		{"an on-acquire that fails", nil, []string{"elect", office + ".2", "--log-format", "json", "--on-acquire", "exit 3", "--", "true"}, 75},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := at(t)
			s.environ = append(s.environ, tt.environ...)
			if code := s.conch(tt.args...); code != tt.code {
				t.Errorf("code %d, want %d", code, tt.code)
			}
			var last map[string]any
			for line := range strings.Lines(s.stderr.String()) {
				last = nil
				if err := json.Unmarshal([]byte(line), &last); err != nil {
					t.Errorf("got %q: %v", line, err)
				}
			}
			if tt.code != 1 && (last["level"] != "ERROR" || last["code"] != float64(tt.code)) || last["msg"] == "" {
				t.Errorf("the last line is %v", last)
			}
		})
	}
}

// badNames are names that no office can have.
func badNames() map[string]string {
	return map[string]string{
		"one dot": ".", "only a slash": "/", "a slash at the end": "a/", "a slash in front": "/a", "two slashes": "//", "a semaphore's key": "x/3",
		"a zero byte": "a\x00b", "the end of all keys": "\x00", "a line end": "a\nb", "a return": "a\rb", "a tab": "a\tb", "a delete": "a\x7f",
		"a line separator": "a\u2028", "a direction": "a\u202eb", "nothing to see": "a\u200bb", "composed": "\u00e9", "decomposed": "e\u0301",
		"a letter that looks like another": "\u0430", "no UTF-8": "a\xff", "the end of a range": "\xff", "an escape of a slash": "a%2fb",
		"a space": "a b", "a quote": "a'b", "a double quote": `a"b`, "a command": "a$(id)", "64 KiB": strings.Repeat("a", 64<<10),
		"an underscore in front": "_a", "two dots inside": "a..b", "a pattern": "*", "a home": "~",
	}
}

func TestBadVariablesAreUsageErrorsToo(t *testing.T) {
	t.Parallel()
	for _, variable := range []string{"CONCH_TTL=1500ms", "CONCH_ENDPOINTS=nowhere", "CONCH_DIAL_TIMEOUT=-1s", "CONCH_QUIET=x", "CONCH_LOG_FORMAT=xml"} {
		s := newShell(variable)
		if code := s.conch("elect", "x", "--", "true"); code != hold.CodeUsage {
			t.Errorf("%s: code %d, want 64", variable, code)
		}
		name, value, _ := strings.Cut(variable, "=")
		contains(t, s.stderr.String(), name, value)
	}
}

func TestFlagsThatActHaveNoVariable(t *testing.T) {
	t.Parallel()
	// Each of these would be refused if it were read.
	s := newShell("CONCH_WAIT=x", "CONCH_NONBLOCK=x", "CONCH_STATUS_FILE=", "CONCH_SETTLE=x", "CONCH_GUARD=x", "CONCH_KILL_AFTER=x", "CONCH_HOOK_TIMEOUT=x", "CONCH_RESTART=x", "CONCH_ON_LOSE=exit 1", "CONCH_CAMPAIGN_AFTER=x")
	if code := s.conch("elect", "x", "--", "no-such-command"); code != hold.CodeNotFound {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
}

func TestACommandThatCannotRunNeverTakesAnOffice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	endpoint := etcdtest.Untouched(t)
	for name, tt := range map[string]struct {
		command string
		code    int
	}{
		"not in PATH":           {"no-such-command", hold.CodeNotFound},
		"no such file":          {"/nonexistent/x", hold.CodeNotFound},
		"empty":                 {"", hold.CodeNotFound},
		"folder":                {dir, hold.CodeNotExecutable},
		"no permission":         {write("plain", "#!/bin/sh\n", 0o644), hold.CodeNotExecutable},
		"interpreter not there": {write("bad", "#!/nonexistent\n", 0o755), hold.CodeNotFound},
		"neither":               {write("text", "echo\n", 0o755), hold.CodeNotExecutable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell("CONCH_ENDPOINTS=" + endpoint)
			status := filepath.Join(t.TempDir(), "status")
			if code := s.conch("elect", "x", "--status-file", status, "--", tt.command); code != tt.code {
				t.Errorf("code %d, want %d", code, tt.code)
			}
			if strings.Count(s.stderr.String(), "\n") != 1 {
				t.Errorf("got %q, want one line", s.stderr.String())
			}
			raw, err := os.ReadFile(status)
			if err != nil {
				t.Fatal(err)
			}
			contains(t, string(raw), `"outcome":"not-started"`, `"rev":0`)
		})
	}
}

func TestHelpShowsExamplesFirst(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"-h"}, {"elect", "-h"}, {"help", "elect"}, {"elect", "x", "--help"}, {"help"}} {
		s := newShell()
		if code := s.conch(args...); code != 0 || s.stderr.String() != "" {
			t.Errorf("%q: code %d, stderr %q", args, code, s.stderr.String())
		}
		out := s.stdout.String()
		contains(t, out, "Usage: conch", "--help")
		if example := strings.Index(out, "conch elect reports"); example > strings.Index(out, "Usage:") {
			t.Errorf("%q: the example comes after the usage", args)
		}
	}
	s := newShell()
	s.conch("elect", "--help")
	contains(t, s.stdout.String(), "conch elect OFFICE [flags] -- CMD", "--kill-after", "(default 5s)", "127", "conch help environment")
	if strings.Contains(s.stdout.String(), "(default 0") {
		t.Errorf("a wait for ever has the default 0s: %s", s.stdout.String())
	}
}

func TestVersionSaysWhatWasBuilt(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"--version"}, {"--version=true"}} {
		s := newShell()
		if code := s.conch(args...); code != 0 || s.stderr.String() != "" {
			t.Errorf("%q: code %d, %s", args, code, s.stderr.String())
		}
		contains(t, s.stdout.String(), "conch dev", "commit", "go1.", "etcd client 3.")
	}
	for _, args := range [][]string{{"version", "-ojson"}, {"version", "--json"}, {"--version", "-o", "json"}} {
		s := newShell()
		if code := s.conch(args...); code != 0 {
			t.Errorf("%q: code %d, %s", args, code, s.stderr.String())
		}
		var b cli.Build
		if err := json.Unmarshal([]byte(s.stdout.String()), &b); err != nil || b != cli.ThisBuild() {
			t.Errorf("%q: got %s", args, s.stdout.String())
		}
	}
	var stderr text
	if code := Main(t.Context(), cli.Env{Args: []string{"version"}, Stdout: broken{}, Stderr: &stderr}); code == 0 {
		t.Error("code 0 although nothing was printed")
	}
}

func TestHelpTopicsAreWhole(t *testing.T) {
	t.Parallel()
	s := newShell()
	if code := s.conch("help", "exit-codes"); code != 0 {
		t.Errorf("code %d", code)
	}
	for _, err := range []error{
		hold.ErrUsage, hold.ErrUnreachable, hold.ErrLost, hold.ErrNotAcquired, hold.ErrPermission, hold.ErrNotExecutable, hold.ErrNotFound,
	} {
		contains(t, s.stdout.String(), "  "+strconv.Itoa(hold.ExitCode(err)))
	}
	contains(t, s.stdout.String(), "  "+strconv.Itoa(hold.CodeHookFailed))
	s = newShell()
	if code := s.conch("help", "environment"); code != 0 {
		t.Errorf("code %d", code)
	}
	contains(t, s.stdout.String(), "CONCH_ENDPOINTS, else ETCDCTL_ENDPOINTS  ", "--ttl", "CONCH_QUIET", "CONCH_REV", "CONCH_RUN", "CONCH_HOOK", "NO_COLOR")
	for _, variable := range []string{"CONCH_WAIT", "\x1b"} {
		if strings.Contains(s.stdout.String(), variable) {
			t.Errorf("help speaks of %q", variable)
		}
	}
	s = newShell()
	s.conch("help")
	contains(t, s.stdout.String(), "exit-codes", "environment", "completion")
	if strings.Contains(s.stdout.String(), "__") || strings.Contains(s.stdout.String(), "guard") {
		t.Errorf("help lists a role: %s", s.stdout.String())
	}
}
