package cron

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster of daemons on one etcd in memory, in a bubble of fake time. It begins at 2000-01-01 00:00 UTC, as bubbles do.
type world struct {
	*testing.T
	m     *coordtest.Medium
	start time.Time

	mu     sync.Mutex
	starts []begun
	alive  map[string]int // by job
	most   map[string]int // the highest that was
	door   int
	// lingering: a process whose hold is lost goes on for as long as its guard may let it.
	lingering bool
}

// doors is how many members there are. Each daemon has one for itself, the test the first.
const doors = 24

// begun is a process that was started.
type begun struct {
	job, host string
	id        record.ID
	kind      record.Kind
	attempt   int
	at        time.Time // true time
}

// machine is a host: its daemon, and its clock.
type machine struct {
	w      *world
	host   string
	client *clientv3.Client
	door   int
	cancel context.CancelFunc
	ended  chan error
	dead   chan struct{} // closed by kill: the guard ends what runs
	once   sync.Once
	// testament: the guard reports what it ended.
	testament bool

	mu     sync.Mutex
	offset time.Duration
}

func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			T: t, m: coordtest.Start(t, coordtest.Options{Members: doors}), start: time.Now(), alive: map[string]int{}, most: map[string]int{},
		}
		f(w)
	})
}

func (w *world) mono() time.Duration { return time.Since(w.start) }

// now is a host's wall clock.
func (h *machine) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.offset)
}

// slowly has little to renew, for tests of days.
func slowly(o *Options) { o.TTL = 2 * time.Minute }

// step sets a host's clock.
func (h *machine) step(by time.Duration) {
	h.mu.Lock()
	h.offset += by
	h.mu.Unlock()
}

// node starts a daemon, which ends with the test.
func (w *world) node(host string, change ...func(*Options)) *machine {
	w.Helper()
	w.door++
	door := w.door%(doors-1) + 1
	client, err := w.m.NewClient(door)
	w.must(err)
	h := &machine{w: w, host: host, client: client, door: door, ended: make(chan error, 1), dead: make(chan struct{})}
	var log *slog.Logger
	if os.Getenv("CRON_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", host)
	}
	ready := make(chan struct{})
	o := Options{
		Client: client, Host: host, Runner: h, User: "root", Now: h.now, Mono: w.mono, Logger: log, Version: "test",
		Registered: func() { close(ready) },
	}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	go func() { h.ended <- Run(ctx, o) }()
	w.Cleanup(h.leave)
	select {
	case <-ready:
	case err := <-h.ended:
		w.Fatalf("%s: %v", host, err)
	}
	return h
}

// leave stops a daemon as an operator does.
func (h *machine) leave() {
	h.once.Do(func() {
		h.cancel()
		if err := <-h.ended; err != nil {
			h.w.Errorf("%s: %v", h.host, err)
		}
		_ = h.client.Close()
	})
}

// kill is kill -9 of a daemon, or the death of its host: it says nothing more to etcd, and what it ran is ended at once by its guard.
// Whether the guard says so is up to testament.
func (h *machine) kill(testament bool) {
	h.once.Do(func() {
		h.w.m.Kill(h.door) // first of all: not a word comes through any more
		h.testament = testament
		close(h.dead)
		h.cancel()
		h.w.Cleanup(func() { // what is left of it in this process
			<-h.ended
			_ = h.client.Close()
		})
	})
}

// Run is the process of a simulation: it does what its command says, for as long as that takes, in no time of the processor's.
func (h *machine) Run(ctx context.Context, s Start, held hold.Hold) Ended {
	h.w.begin(begun{s.Job, h.host, s.ID, s.Kind, s.Attempt, time.Now()})
	defer h.w.over(s.Job)
	verb, arg := s.Spec.Cmd[0], ""
	if len(s.Spec.Cmd) > 1 {
		arg = s.Spec.Cmd[1]
	}
	if verb == "slow" { // to be started
		d, _ := time.ParseDuration(arg)
		time.Sleep(d) // fake time: it passes at once when all wait
	}
	s.Started(1)
	how := Ended{Started: h.now(), Pid: 1}
	var timer <-chan time.Time
	switch verb {
	case "sleep":
		d, _ := time.ParseDuration(arg)
		timer = time.After(d)
	case "exit":
		how.Code, _ = strconv.Atoi(arg)
		return how
	case "missing":
		return Ended{Err: hold.ErrNotFound}
	default:
		return how
	}
	select {
	case <-timer:
	case <-ctx.Done():
		how.Signal = "SIGTERM"
	case <-held.Lost():
		how.Lost = held.Cause()
		if h.w.lingering {
			select {
			case <-time.After(held.Deadlines().Kill - h.w.mono()): // the guard's last moment
			case <-h.dead:
			}
		}
	case <-h.dead:
		how.Lost = hold.ErrLost
		if e, ok := store.ReadTestament(held.Testament()); ok && h.testament {
			cli := h.w.m.Client(h.w.T, 0)
			h.w.must(store.Execute(context.Background(), cli, e, time.Now()))
		}
	}
	return how
}

func (w *world) begin(b begun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts = append(w.starts, b)
	w.alive[b.job]++
	w.most[b.job] = max(w.most[b.job], w.alive[b.job])
}

func (w *world) over(job string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alive[job]--
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// add puts a job.
func (w *world) add(name, spec string) {
	w.Helper()
	_, err := w.m.Put(record.JobKey(name), spec, 0)
	w.must(err)
}

// until lets time pass, up to that long after the start.
func (w *world) until(at time.Duration) {
	w.Helper()
	time.Sleep(time.Until(w.start.Add(at))) // fake time: it passes at once when all wait
	synctest.Wait()
}

// ran tells the starts of a job: seconds after the start of the world, in order.
func (w *world) ran(job string) []begun {
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []begun
	for _, b := range w.starts {
		if b.job == job {
			got = append(got, b)
		}
	}
	slices.SortStableFunc(got, func(a, b begun) int { return cmp.Compare(a.id.Tick, b.id.Tick) })
	return got
}

// results are those of a job, in order.
func (w *world) results(job string) []record.Result {
	w.Helper()
	var all []record.Result
	for _, kv := range w.m.List(record.Range(record.Results, job)) {
		r, ok := record.Decode[record.Result](kv.Value)
		if !ok {
			w.Fatalf("%s: %s", kv.Key, kv.Value)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b record.Result) int {
		x, _ := a.ID()
		y, _ := b.ID()
		return x.Compare(y)
	})
	return all
}

// tell is a result in a few words: second, kind, status, reason.
func (w *world) tell(r record.Result) string {
	id, _ := r.ID()
	words := []string{strings.Replace(id.String(), strconv.FormatInt(r.Tick, 10), w.second(r.Tick), 1)}
	if r.Ticks > 0 {
		words = append(words, fmt.Sprintf("%dx from %s", r.Ticks, w.second(r.From)))
	}
	if r.Kind != record.Scheduled {
		words = append(words, string(r.Kind))
	}
	words = append(words, string(r.Status))
	if r.Reason != "" {
		words = append(words, string(r.Reason))
	}
	return strings.Join(words, " ")
}

func (w *world) second(tick int64) string { return strconv.FormatInt(tick-w.start.Unix(), 10) }

// want holds the results of a job against a list.
func (w *world) want(job string, want ...string) {
	w.Helper()
	var got []string
	for _, r := range w.results(job) {
		got = append(got, w.tell(r))
	}
	if !slices.Equal(got, want) {
		w.Errorf("%s: results\n  %s\nwant\n  %s", job, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// everyTick holds the starts of a job against the seconds first, first+step, ... last: each once.
func (w *world) everyTick(job string, first, last, step int) {
	w.Helper()
	got := map[int64]int{}
	for _, b := range w.ran(job) {
		got[b.id.Tick-w.start.Unix()]++
	}
	n := 0
	for s := first; s <= last; s += step {
		if got[int64(s)] != 1 {
			w.Errorf("%s: tick %d was started %d times", job, s, got[int64(s)])
		}
		n++
	}
	if len(got) != n {
		w.Errorf("%s: %d ticks were started, want %d: %v", job, len(got), n, got)
	}
}
