package command

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/go-coord/coord/internal/cron/record"
)

func TestCronRunStartsAJobOnceAndSaysHowItEnded(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("good", `{"schedule":"@manual","cmd":["true"]}`)
	c.add("bad", `{"schedule":"@manual","cmd":["exit","3"],"retry":{"max":1,"delay":"1ms"}}`)
	c.add("everywhere", `{"schedule":"@manual","cmd":["true"],"run_on":"all"}`)
	c.node("node1")
	c.node("node2")

	c.lines(c.says(0, "run", "good", "--wait", "--why", "to see"), "good/....1: success on node...; started ...; asked for by ...@...: to see")
	c.lines(c.says(0, "run", "good", "--follow"), "so it went", "good/...: success on node...")
	c.lines(c.says(1, "run", "bad", "--wait"), "bad/....3: failed on node...: exit code 3;...; attempt 2; asked for by ...")
	c.lines(c.says(0, "run", "everywhere", "--wait"), "everywhere/....1@node1: success on node1;...", "everywhere/....1@node2: success on node2;...")

	var r record.Result
	if err := json.Unmarshal([]byte(c.says(0, "run", "good", "--wait", "--json")), &r); err != nil || r.Kind != record.Manual || r.Status != record.Success {
		t.Errorf("%+v %v", r, err)
	}
	if n := strings.Count(c.says(0, "history", "good", "-o", "json"), `"kind":"manual"`); n != 3 {
		t.Errorf("%d starts, want 3", n)
	}
	schema, err := jsonschema.NewCompiler().Compile("../../../docs/schema/result.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"good", "bad", "everywhere"} {
		for line := range strings.Lines(c.says(0, "history", name, "-o", "json")) {
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
			if err == nil {
				err = schema.Validate(doc)
			}
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// Two requests of the same second have numbers of their own. Red when the number is always 1, or what was claimed already is not looked at.
func TestCronRunTakesTheFirstNumberThatIsFree(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("x", `{"schedule":"@manual","cmd":["true"]}`)
	seen := map[string]bool{}
	for range 20 { // in far less time than 20 s: some share their second
		var l askedLine
		if err := json.Unmarshal([]byte(c.says(0, "run", "x", "-o", "json")), &l); err != nil || seen[l.RunID] {
			t.Fatalf("%+v %v", l, err)
		}
		seen[l.RunID] = true
		if !c.exists(record.Wants + l.RunID) {
			t.Errorf("no request at %s", l.RunID)
		}
	}
	c.lines(strings.SplitAfter(c.says(0, "run", "x", "--within", "5m"), "\n")[0], "x/...: asked for; recorded as missed if nobody starts it until 20...Z")
}

func TestCronRunIsRefusedByAPause(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("x", `{"schedule":"@manual","cmd":["true"]}`)
	c.add("all", `{"schedule":"@manual","cmd":["true"],"run_on":"all","select":{"zone":"a"}}`)
	c.says(0, "pause", "x", "--why", "the disk")
	c.lines(c.refuses(75, "run", "x"), "job x is paused by ...@...: the disk, 20...Z")
	c.says(0, "resume", "x")
	c.says(0, "pause", "--all", "--for", "1h")
	c.lines(c.refuses(75, "run", "x"), "all jobs are paused by ...@..., 20...Z, until 20...Z")
	c.says(0, "resume", "--all")
	c.says(0, "run", "x")
	c.lines(c.refuses(75, "run", "all"), "job all runs on all nodes that it selects, and none is registered")
	c.lines(c.refuses(1, "run", "y"), "there is no job y; did you mean x?")
	c.add("broken", `{"schedule":"* * *"}`)
	c.lines(c.refuses(1, "run", "broken"), "job broken cannot be read, and no node runs it: bad job: ...")
}

// A request that nobody takes is recorded as missed by whoever could have, and did not.
func TestCronRunThatNobodyTakesIsMissed(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("x", `{"schedule":"@manual","cmd":["true"],"select":{"zone":"a"}}`)
	c.node("node1")
	c.lines(c.says(1, "run", "x", "--wait", "--within", "10ms"), "x/....1: missed, says node1: ...; asked for by ...@...")
}

func TestCronRunIsLeftAloneByASignal(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("x", `{"schedule":"@manual","cmd":["hang"]}`)
	c.node("node1")
	s := c.shell()
	code := s.start("cron", "run", "x", "--wait")
	id := c.hung("x")
	s.signals <- syscall.SIGTERM
	if got := wait(t, code); got != 128+15 {
		t.Errorf("code %d", got)
	}
	contains(t, s.stderr.String(), "nobody waits any more: the request stays")
	c.lines(c.says(0, "ps"), "JOB ...", "x ..."+id+"...running...manual...1...node1...")
}
