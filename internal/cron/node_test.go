package cron

import (
	"testing"
	"time"
)

func TestEachTickStartsOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("j", `{"schedule":"@every 10s","cmd":["true"]}`)
		for host, off := range map[string]time.Duration{"a": -3 * time.Second, "b": 0, "c": 3 * time.Second} {
			w.node(host).step(off)
		}
		w.until(5*time.Minute + 5*time.Second)
		w.everyTick("j", 10, 300, 10)
	})
}

func TestOverlap(t *testing.T) {
	inWorld(t, func(w *world) {
		w.add("forbid", `{"schedule":"@every 10s","cmd":["sleep","25s"]}`)
		w.node("a")
		w.node("b")
		w.until(71 * time.Second)
		w.want("forbid", "10 success", "20 skipped overlap", "30 skipped overlap", "40 success", "50 skipped overlap", "60 skipped overlap")
		if w.most["forbid"] != 1 {
			t.Errorf("%d at once", w.most["forbid"])
		}
	})
}
