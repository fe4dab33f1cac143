package faults

import (
	"strings"
	"syscall"
	"testing"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/test/run"
)

// TestAWatchSurvivesTheLossOfAnyMember has each member of a cluster stopped and then killed, in turn: whichever it
// is that the watch stands on, the changes come, each once and in order.
func TestAWatchSurvivesTheLossOfAnyMember(t *testing.T) {
	t.Parallel()
	c := etcdtest.Cluster(t, 3)
	office := etcdtest.Office(t)
	p := run.Start(t, []string{"CONCH_ENDPOINTS=" + strings.Join(c.Endpoints(), ",")}, "elect", office, "--watch")
	p.WaitOut("vacant")

	// lead has somebody lead, and gives up again, through the other members.
	var want []string
	lead := func(who string, members ...int) {
		t.Helper()
		el, err := coord.NewElection(t.Context(), c.Client(t, members...), coord.ElectionOptions{Key: hold.ElectPrefix(office)})
		if err != nil {
			t.Fatal(err)
		}
		defer el.Close()
		if err := el.Campaign(t.Context(), who); err != nil {
			t.Fatal(err)
		}
		p.WaitOut("held by " + who)
		if err := el.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.WaitOut("vacant; last held by " + who)
		want = append(want, "held by "+who, "vacant; last held by "+who)
	}
	for i, name := range []string{"one", "two", "three"} {
		others := []int{(i + 1) % 3, (i + 2) % 3}
		c.Stop(i)
		lead("stopped-"+name, others...)
		c.Cont(i)
		c.Ready()
		c.Kill(i)
		lead("killed-"+name, others...)
		c.Restart(i)
		c.Ready()
	}
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(); code != 143 {
		t.Errorf("code %d; %s", code, p.Stderr())
	}
	lines := strings.Split(strings.TrimSpace(p.Stdout()), "\n")[1:]
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), p.Stdout())
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) {
			t.Errorf("line %d is %q, want %s", i, line, want[i])
		}
	}
}
