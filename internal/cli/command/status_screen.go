package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/view"
	"github.com/go-coord/coord/internal/view/live"
)

const (
	// drawEvery is how often a screen is drawn although nothing has changed: ages and times go on.
	drawEvery = time.Second
	// drawAtMost is the least time between two pictures.
	drawAtMost = 100 * time.Millisecond
	// leftEvery is how often the leases that are on the screen are asked for what they have left.
	leftEvery = 2 * time.Second
)

// screen keeps the table of "conch status --watch" up to date on a terminal. It draws over its own last picture, and what
// stood on the terminal before has gone up into its history. Nothing of the terminal's modes is changed but while a picture
// is drawn: whenever and however it ends, the last picture stays, and there is nothing to restore.
type screen struct {
	to      io.Writer
	size    func() (rows, columns int)
	client  *clientv3.Client
	f       *statusFlags
	changed chan struct{} // full when there is something new to draw

	mu      sync.Mutex
	missing map[string]bool // what is followed that nobody has told of yet
	names   map[view.Name]view.Standing
	runs    map[string][]view.Run // by what is followed
	pauses  map[string][]view.Pause
	watcher *coord.HostWatcher
	since   map[string]time.Time // what is stale, and since when
	left    map[int64]time.Duration

	begun bool // a picture was drawn
}

// newScreen is nil where stdout is no terminal.
func newScreen(stdout io.Writer, client *clientv3.Client, f *statusFlags) *screen {
	if _, _, ok := terminalSize(stdout); !ok {
		return nil
	}
	missing := map[string]bool{}
	for _, of := range f.follows() {
		missing[of] = true
	}
	return &screen{
		to: stdout, client: client, f: f, changed: make(chan struct{}, 1), missing: missing,
		names: map[view.Name]view.Standing{}, runs: map[string][]view.Run{}, pauses: map[string][]view.Pause{}, since: map[string]time.Time{},
		size: func() (rows, columns int) { rows, columns, _ = terminalSize(stdout); return rows, columns },
	}
}

// terminalSize is the size of the terminal that w is, if it is one: what all have, where it has not been told.
func terminalSize(w io.Writer) (rows, columns int, ok bool) {
	rows, columns = 24, 80
	_ = onFile(w, func(fd int) {
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if ok = err == nil; ok && size.Row > 0 && size.Col > 0 {
			rows, columns = int(size.Row), int(size.Col)
		}
	})
	return rows, columns, ok
}

// run draws until the following ends.
func (s *screen) run(ctx context.Context, follow func(context.Context, onlooker) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { cancel(follow(ctx, s)) })
	wg.Go(func() { s.askLeft(ctx) })
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-s.changed:
		case <-tick.C:
		case <-ctx.Done():
			continue
		}
		if err := s.draw(time.Now()); err != nil {
			cancel(err)
		}
		select {
		case <-time.After(drawAtMost):
		case <-ctx.Done():
		}
	}
	wg.Wait()
	if s.begun {
		_, _ = io.WriteString(s.to, "\n") // what comes next begins on a line of its own
	}
	return context.Cause(ctx)
}

func (s *screen) change() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// resized is for signals: after one of SIGWINCH the picture is another one.
func (s *screen) resized(sig os.Signal) {
	if sig == syscall.SIGWINCH {
		s.change()
	}
}

// askLeft asks what the leases on the screen have left.
func (s *screen) askLeft(ctx context.Context) {
	ask := time.NewTicker(leftEvery)
	defer ask.Stop()
	for {
		rows, _ := s.size()
		leases := s.overview().leases()
		left := live.Left(ctx, s.client, leases[:min(len(leases), rows)])
		s.mu.Lock()
		s.left = left
		s.mu.Unlock()
		s.change()
		select {
		case <-ask.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *screen) turn(book *view.Book, names []view.Name) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.missing, ofHolds)
	for _, n := range names {
		if is := book.Standing(n); s.f.asksFor(n) && is.Known() {
			s.names[n] = is
		} else {
			delete(s.names, n)
		}
	}
	s.change()
	return nil
}

func (s *screen) jobs(of string, r *view.Roster) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.missing, of)
	var is overview
	is.take(s.f, r, time.Now())
	s.runs[of], s.pauses[of] = is.runs, is.pauses
	s.change()
	return nil
}

func (s *screen) host(ev coord.HostEvent, all *coord.HostWatcher) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watcher = all; ev.Kind == coord.SnapshotDone {
		delete(s.missing, ofHosts)
	}
	s.change()
	return nil
}

func (s *screen) stale(of string, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since[of] = time.Now().Add(-statusStale)
	s.change()
}

func (s *screen) fresh(of string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, of)
	s.change()
}

// overview is all that is known now.
func (s *screen) overview() overview {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.f.overview()
	for _, is := range s.names {
		is.Seats = slices.Clone(is.Seats) // what leases have left is noted in them
		o.standings = append(o.standings, is)
	}
	now := time.Now()
	for _, of := range []string{ofRuns, ofJobs} { // of which one has the runs, and the cluster's pause
		o.runs = append(o.runs, s.runs[of]...)
		o.pauses = append(o.pauses, s.pauses[of]...)
	}
	o.pauses = slices.DeleteFunc(o.pauses, func(p view.Pause) bool { return !p.In(now) })
	slices.SortFunc(o.standings, func(a, b view.Standing) int { return a.Name.Compare(b.Name) })
	if s.watcher != nil {
		for _, h := range s.watcher.Snapshot().Hosts {
			if s.f.means(h.Metadata.HostUUID, h.Metadata.Hostname) {
				o.hosts = append(o.hosts, live.HostOf(h, now))
			}
		}
	}
	o.setLeft(s.left)
	return o
}

// head is the first line: what moment the picture is of.
func (s *screen) head(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	var since time.Time
	for _, t := range s.since {
		if since.IsZero() || t.Before(since) {
			since = t
		}
	}
	if !since.IsZero() {
		return fmt.Sprintf("etcd does not answer since %s: what follows may be out of date", stamp(since))
	}
	return "as of " + stamp(now)
}

// draw draws a picture, with one write, once everything is known that belongs to it.
func (s *screen) draw(now time.Time) error {
	s.mu.Lock()
	missing := len(s.missing)
	s.mu.Unlock()
	if missing > 0 {
		return nil
	}
	rows, columns := s.size()
	lines := append([]string{s.head(now), ""}, s.overview().table(now)...)
	// The last line stays free, for the cursor.
	if room := max(rows-1, 2); len(lines) > room {
		more := len(lines) - room + 1
		lines = append(lines[:room-1], fmt.Sprintf("... and %d lines more", more))
	}
	var out bytes.Buffer
	if !s.begun {
		s.begun = true
		out.WriteString(strings.Repeat("\n", rows-1)) // what stands there goes up into the terminal's history
	}
	out.WriteString("\x1b[?7l") // lines end at the margin, while this is drawn
	for i, line := range lines {
		fmt.Fprintf(&out, "\x1b[%d;1H\x1b[2K%s", i+1, cutLine(line, columns))
	}
	fmt.Fprintf(&out, "\x1b[%d;1H\x1b[J\x1b[?7h", len(lines)+1)
	return printLine(s.to, out.Bytes())
}

// cutLine is a line of at most so many characters, with a mark where something was left out.
func cutLine(line string, columns int) string {
	if runes := []rune(line); len(runes) > columns {
		return string(runes[:columns-1]) + ">"
	}
	return line
}
