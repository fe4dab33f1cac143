package guard

import (
	"slices"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// How the release program is executed.
const (
	frozenAfter  = 500 * time.Millisecond // from KindGone to closing the record of a wrapper that says nothing
	releaseTries = 6                      // executions for one testament
	releasePause = 100 * time.Millisecond // after the first failure, doubled each time
	releaseLimit = 4                      // executions at one time
)

// will is a testament and how far its execution has come.
type will struct {
	run       string
	testament []byte
	at        hold.Instant // serving: when to close the record, 0 for never; orphaned: not before this
	tries     int
	active    bool // the release program is at it
}

// bequeath remembers the latest testament of a run.
func (t *table) bequeath(id string, testament []byte) {
	for _, w := range t.wills {
		if w.run == id {
			w.testament = testament
			return
		}
	}
	t.wills = append(t.wills, &will{run: id, testament: testament})
}

// forget drops the testament: the hold behind it was released.
func (t *table) forget(id string) {
	t.wills = slices.DeleteFunc(slices.Clone(t.wills), func(w *will) bool { return w.run == id })
}

// covers reports whether a run is done under this testament: the run of the same name, or a hook of it, which is
// named after it with a slash ("7/on-lose").
func (w *will) covers(id string) bool {
	return id == w.run || strings.HasPrefix(id, w.run+"/")
}

// blocked lists the testaments whose execution has to wait until something is gone that is alive. A run that
// no testament covers might be about any of them: it blocks all. In one pass over all runs: asked of each testament by itself,
// a thousand of them would take seconds, and deadlines are kept by the same loop.
func (t *table) blocked() map[*will]bool {
	byRun := make(map[string]*will, len(t.wills))
	for _, w := range t.wills {
		byRun[w.run] = w
	}
	blocked := map[*will]bool{}
	for _, r := range t.runs {
		covered := false
		for at := len(r.id); at >= 0; at = strings.LastIndexByte(r.id[:at], '/') {
			if w := byRun[r.id[:at]]; w != nil {
				blocked[w], covered = true, true
			}
		}
		if !covered {
			for _, w := range t.wills {
				blocked[w] = true
			}
			return blocked
		}
	}
	return blocked
}

// watchFrozen is called when a run is gone that the guard ended by its own deadline. A wrapper that is
// alive says so soon, by dropping the testament.
func (t *table) watchFrozen(id string, now hold.Instant) {
	for _, w := range t.wills {
		if w.covers(id) && t.mode == serving {
			w.at = now + frozenAfter
		}
	}
}

// stepWills executes what is due. The order is the safety of it: nothing is released while its run is alive.
func (t *table) stepWills(now hold.Instant) {
	due := func(w *will) bool {
		return !w.active && (t.mode == serving && passed(w.at, now) || t.mode == orphaned && now >= w.at)
	}
	room := releaseLimit - t.active()
	if room <= 0 || !slices.ContainsFunc(t.wills, due) {
		return
	}
	blocked := t.blocked()
	for _, w := range t.wills {
		if room == 0 || !due(w) || blocked[w] {
			continue
		}
		room--
		w.active = true
		if t.mode == serving {
			// Once: a wrapper that wakes up finds its key still there, and releases by itself.
			w.at = 0
			t.hands.release(w, true)
			continue
		}
		w.tries++
		t.hands.release(w, false)
	}
}

// active counts the executions under way.
func (t *table) active() int {
	n := 0
	for _, w := range t.wills {
		if w.active {
			n++
		}
	}
	return n
}

// released is the answer to release.
func (t *table) released(w *will, closing, ok bool, now hold.Instant) {
	w.active = false
	switch {
	case closing:
	case ok || w.tries >= releaseTries:
		t.forget(w.run)
	default:
		w.at = now + releasePause<<(w.tries-1)
	}
}

// nextWill is the earliest moment at which stepWills has something to do that no other event brings.
func (t *table) nextWill() hold.Instant {
	var at hold.Instant
	waits := func(w *will) bool { return !w.active && w.at != 0 }
	if t.mode == leaving || t.active() >= releaseLimit || !slices.ContainsFunc(t.wills, waits) {
		return at
	}
	blocked := t.blocked()
	for _, w := range t.wills {
		if waits(w) && !blocked[w] {
			at = earlier(at, w.at)
		}
	}
	return at
}
