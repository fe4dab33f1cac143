package sim

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

var (
	oneSeed = flag.Int64("sim.seed", -1, "live through the world of this seed only, and tell what happens in it")
	seeds   = flag.Int("sim.seeds", 1000, "how many worlds of each kind are lived through")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // worlds come and go by the hundred, and leave nothing
	goleak.VerifyTestMain(m)
}

// rates is by how much clocks may differ.
const rates = 1.1

func TestOneLeads(t *testing.T) {
	t.Parallel()
	green(t, design{spread: rates})
}

func TestSeatsAreNotOversold(t *testing.T) {
	t.Parallel()
	green(t, design{spread: rates, seats: 2})
}

func TestEachTickStartsOnce(t *testing.T) {
	t.Parallel()
	green(t, design{spread: rates, jobs: true})
}

// green lives through many worlds in which nothing may be wrong.
func green(t *testing.T, d design) {
	if *oneSeed >= 0 {
		w := inBubble(t, d, uint64(*oneSeed))
		t.Log("\n" + strings.Join(w.tale, "\n"))
		judge(t, w)
		return
	}
	starts := 0
	for seed := range *seeds {
		w := inBubble(t, d, uint64(seed))
		judge(t, w)
		starts += w.starts
		if t.Failed() {
			return
		}
	}
	t.Logf("%d worlds, %d starts", *seeds, starts)
}

// inBubble lives through one world.
func inBubble(t *testing.T, d design, seed uint64) (w *world) {
	defer func() {
		if p := recover(); p != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, p))
		}
	}()
	synctest.Test(t, func(t *testing.T) { w = live(t, d, seed) })
	return w
}

// judge fails the test if something was wrong in a world.
func judge(t *testing.T, w *world) {
	if len(w.wrong) == 0 {
		return
	}
	t.Errorf("%s\n\nwrong: %s\n\nreplay: go test ./test/sim -run '^%s$' -sim.seed=%d -v",
		strings.Join(w.tale, "\n"), strings.Join(w.wrong, "\n       "), t.Name(), w.seed)
}
