package daemon

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/go-coord/coord/internal/cli"
)

func TestADaemonTakesOneProcessorUnlessItIsToldHowMany(t *testing.T) {
	was := runtime.GOMAXPROCS(2)
	t.Cleanup(func() { runtime.GOMAXPROCS(was) })
	Frugal(cli.Env{Environ: []string{"GOMAXPROCS=2"}})
	if n := runtime.GOMAXPROCS(0); n != 2 {
		t.Errorf("%d processors, and 2 were asked for", n)
	}
	Frugal(cli.Env{})
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("%d processors, want 1", n)
	}
}

func TestGarbageWaitsForTheEndOfABurstUnlessItIsToldWhen(t *testing.T) {
	was := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(was) })
	if collecting(cli.Env{Environ: []string{"GOGC=50"}}) != nil {
		t.Error("what GOGC says is changed")
	}
	busy := collecting(cli.Env{})
	for _, step := range []struct {
		busy bool
		want int
	}{{true, garbageBusy}, {false, garbage}} {
		busy(step.busy)
		if now := debug.SetGCPercent(step.want); now != step.want {
			t.Errorf("busy %v: %d %%, want %d", step.busy, now, step.want)
		}
	}
}
