package sim

import (
	"strings"
	"testing"
)

// TestWhatIsBrokenIsSeen lives through the worlds of the other tests with one thing broken, until something is wrong. A
// simulation in which nothing can go wrong shows nothing.
func TestWhatIsBrokenIsSeen(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]design{
		"clocks differ by 30 %":                 {spread: 1.3},
		"clocks differ by 30 %, in a semaphore": {spread: 1.3, seats: 1},
		"nobody settles":                        {spread: rates, broken: broken{settling: true}},
		"nobody settles, in a semaphore":        {spread: rates, seats: 1, broken: broken{settling: true}},
		"the guard has no deadlines":            {spread: rates, broken: broken{deadlines: true}},
		"the guard has no deadlines, with jobs": {spread: rates, jobs: true, broken: broken{deadlines: true}},
		"deadlines count from the reply":        {spread: rates, broken: broken{sent: true}},
		"the guard comes too late":              {spread: rates, broken: broken{punctual: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(brokenMost) {
				w := inBubble(t, d, seed)
				for _, wrong := range w.wrong {
					if strings.HasPrefix(wrong, "I1") {
						t.Logf("seed %d: %s", seed, wrong)
						return
					}
				}
			}
			t.Errorf("nothing was wrong in %d worlds", brokenMost)
		})
	}
}

// brokenMost is how many worlds it may take.
const brokenMost = 3000
