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
	seeds   = flag.Int("sim.seeds", 2000, "how many worlds are lived through")
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // half of the time a world waits for one goroutine of its own
	debug.SetGCPercent(400)            // worlds come and go by the hundred, and leave nothing
	goleak.VerifyTestMain(m)
}

// rates is by how much clocks may differ.
const rates = 1.1

func TestOneLeads(t *testing.T) {
	t.Parallel()
	green(t, design{spread: rates}, 75)
}

func TestSeatsAreNotOversold(t *testing.T) {
	t.Parallel()
	green(t, design{spread: rates, seats: 2}, 20)
}

func TestEachTickStartsOnce(t *testing.T) {
	t.Parallel()
	green(t, design{spread: rates, jobs: true}, 5)
}

// green lives through a share of the worlds, in percent, in which nothing may be wrong.
func green(t *testing.T, d design, share int) {
	if *oneSeed >= 0 {
		w := inBubble(t, d, uint64(*oneSeed))
		t.Log("\n" + strings.Join(w.tale, "\n"))
		w.judge(t, t.Name())
		return
	}
	const batches = 3
	most := uint64(*seeds * share / 100)
	for batch := range uint64(batches) {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			worlds, starts := 0, 0
			for seed := batch; seed < most && !t.Failed(); seed += batches {
				w := inBubble(t, d, seed)
				w.judge(t, strings.Split(t.Name(), "/")[0])
				worlds++
				starts += w.starts
			}
			t.Logf("%d worlds, %d starts", worlds, starts)
		})
	}
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
func (w *world) judge(t *testing.T, name string) {
	if len(w.wrong) > 0 {
		t.Errorf("%s\n\nwrong: %s\n\nreplay: go test ./test/sim -run '^%s$' -sim.seed=%d -v",
			strings.Join(w.tale, "\n"), strings.Join(w.wrong, "\n       "), name, w.seed)
	}
}
